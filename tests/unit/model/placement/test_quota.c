#include "harness/unit.h"

#include <string.h>

#include "harness/sweep.h"
#include "model/placement/pod_sum.h"
#include "model/placement/quota.h"

#define NONE QUOTA_NO_LIMIT

static void set(struct quotas *q, const char *space, const char *name, int64_t memory, int64_t cores)
{
	struct hm_err e;

	assert_int_equal(quotas_set(q, space, name, (struct quota_limits) { memory, cores }, &e), 0);
}

static void expect_room(const struct quotas *q, const char *space, int64_t memory_mib, int64_t cores)
{
	struct quota_amount room = quotas_room(q, space);

	assert_true(room.memory_mib == memory_mib);
	assert_true(room.cores == cores);
}

static void several_quotas_hold_at_once(void **state)
{
	hm_auto(quotas) *q = quotas_new(0);

	(void)state;
	expect_room(q, "a", NONE, NONE);
	set(q, "a", "big", 20000, NONE);
	set(q, "a", "small", 8000, 200);
	set(q, "b", "other", 1, 1);
	expect_room(q, "a", 8000, 200);
	set(q, "a", "third", NONE, 500);
	expect_room(q, "a", 8000, 200);
	quotas_remove(q, "a", "third");
	set(q, "a", "small", 30000, 300);
	expect_room(q, "a", 20000, 300);
	quotas_remove(q, "a", "big");
	expect_room(q, "a", 30000, 300);
	quotas_remove(q, "a", "never");
	quotas_remove(q, "never", "small");
	quotas_remove(q, "a", "small");
	expect_room(q, "a", NONE, NONE);
	expect_room(q, "b", 1, 1);
}

static void what_is_held_outlives_the_quota(void **state)
{
	hm_auto(quotas) *q = quotas_new(1);
	struct quota_space *s = quotas_open(q, "a");

	(void)state;
	assert_string_equal(quota_space_name(s), "a");
	quota_space_add(s, (struct quota_amount) { 5000, 60 });
	expect_room(q, "a", NONE, NONE);
	set(q, "a", "x", 4000, 100);
	expect_room(q, "a", -1000, 40);
	quotas_remove(q, "a", "x");
	assert_ptr_equal(quotas_open(q, "a"), s);
	quota_space_add(s, (struct quota_amount) { -1000, -10 });
	assert_true(quota_space_held(s).memory_mib == 4000 && quota_space_held(s).cores == 50);
	set(q, "a", "x", 4000, 0);
	expect_room(q, "a", 0, -50);
	quota_space_add(s, (struct quota_amount) { -4000, -50 });
	quotas_close(q, s);
	quotas_close(q, s);
	expect_room(q, "a", 4000, 0);
}

/* A quota counts in the resource's unit; what is held is in MiB. */
static void the_memory_factor_is_the_quotas(void **state)
{
	static const struct {
		uint64_t factor;
		int64_t limit, room;
	} rows[] = {
		{ 0, 1000, 1000 }, { 1, 1000, 1000 }, { 256, 1000, 256000 }, { 2, 0, 0 }, { 2, INT64_MAX - 1, NONE },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(quotas) *q = quotas_new(rows[i].factor);
		set(q, "a", "x", rows[i].limit, 7);
		expect_room(q, "a", rows[i].room, 7);
	}
}

static void equality_fits_and_nothing_always_does(void **state)
{
	static const struct {
		struct quota_amount room, asked;
		bool fits;
	} rows[] = {
		{ { 4096, NONE }, { 2 * 2048, 0 }, true },
		{ { 4095, NONE }, { 2 * 2048, 0 }, false },
		{ { NONE, 30 }, { 9000, 30 }, true },
		{ { NONE, 29 }, { 9000, 30 }, false },
		{ { NONE, -5 }, { 1, 0 }, true },
		{ { -5, NONE }, { 0, 10 }, true },
		{ { 0, 0 }, { 1, 0 }, false },
		{ { NONE, NONE }, { INT64_MAX, 1000000 }, true },
		{ { 100, 100 }, { 100, 101 }, false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		assert_int_equal(quota_fits(rows[i].room, rows[i].asked), rows[i].fits);
}

static void a_view_for_each_namespace(void **state)
{
	hm_auto(quotas) *q = quotas_new(1);
	struct quota_view v;
	size_t at = 0, seen = 0;

	(void)state;
	set(q, "a", "x", 10, NONE);
	set(q, "b", "x", NONE, 20);
	while (quotas_next(q, &at, &v)) {
		assert_true(v.limits.memory == (strcmp(v.name_space, "a") == 0 ? 10 : NONE));
		assert_true(v.limits.cores == (strcmp(v.name_space, "a") == 0 ? NONE : 20));
		seen++;
	}
	assert_int_equal(seen, 2);
}

/* Each amount a different multiple. */
static struct card_use some(int64_t n)
{
	return (struct card_use) { n, 10 * n, 100 * n };
}

static bool is_some(struct card_use u, int64_t n)
{
	return u.slots == n && u.memory_mib == 10 * n && u.cores == 100 * n;
}

/* Kubernetes' rule, with amounts by hand: i = init container, s = sidecar, a = container. */
static void a_pod_sums_up_as_kubernetes_says(void **state)
{
	static const struct {
		const char *kinds;
		int64_t amounts[5], total;
	} rows[] = {
		{ "aa", { 3, 4 }, 7 },
		{ "ia", { 8, 5 }, 8 },
		{ "iia", { 8, 9, 5 }, 9 },
		{ "sa", { 8, 5 }, 13 },
		{ "isa", { 8, 2, 5 }, 8 },  /* the init container ends before the sidecar starts */
		{ "sia", { 2, 8, 5 }, 10 }, /* and here it runs beside it */
		{ "sisia", { 1, 8, 2, 7, 3 }, 10 },
		{ "", { 0 }, 0 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct pod_sum s = { 0 };
		for (size_t k = 0; rows[i].kinds[k] != '\0'; k++)
			pod_sum_add(&s, rows[i].kinds[k] == 'i', some(rows[i].amounts[k]));
		assert_true(is_some(pod_sum_total(&s), rows[i].total));
	}
}

static int scenario(void *arg)
{
	hm_auto(quotas) *q = quotas_new(1);
	struct quota_space *s;
	struct hm_err e;
	int r;

	(void)arg;
	if (q == NULL)
		return -HM_ENOMEM;
	s = quotas_open(q, "a");
	if (s == NULL)
		return -HM_ENOMEM;
	r = quotas_set(q, "b", "x", (struct quota_limits) { 1, 1 }, &e);
	if (r < 0)
		assert_true(quotas_room(q, "b").memory_mib == NONE);
	quotas_close(q, s);
	return r;
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	sweep_check("quotas", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(several_quotas_hold_at_once),
		cmocka_unit_test(what_is_held_outlives_the_quota),
		cmocka_unit_test(the_memory_factor_is_the_quotas),
		cmocka_unit_test(equality_fits_and_nothing_always_does),
		cmocka_unit_test(a_view_for_each_namespace),
		cmocka_unit_test(a_pod_sums_up_as_kubernetes_says),
		cmocka_unit_test(survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
