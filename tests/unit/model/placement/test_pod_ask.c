/* What a container's amounts mean. */
#include "model/placement/pod_ask.h"

#include "harness/unit.h"

#define SET(v)                                                                                                         \
	{                                                                                                              \
		true, v                                                                                                \
	}
#define NONE                                                                                                           \
	{                                                                                                              \
		false, 0                                                                                               \
	}

static const struct ask_rules plain = { 1, 0, 0 }, defaults = { 1, 2000, 10 }, factor = { 2, 3000, 0 };

static void amounts(void **state)
{
	static const struct {
		const char *what;
		struct ask_amounts in; /* count, memory, percent, cores */
		const struct ask_rules *rules;
		struct card_ask out;
	} cases[] = {
		{ "nothing", { NONE, NONE, NONE, NONE }, &plain, { 0 } },
		{ "no count", { NONE, SET(3000), NONE, SET(30) }, &plain, { 0 } },
		{ "count 0", { SET(0), SET(3000), NONE, NONE }, &plain, { 0 } },
		{ "a card", { SET(1), NONE, NONE, NONE }, &plain, { .count = 1, .percent = 100 } },
		{ "memory",
		  { SET(2), SET(3000), NONE, SET(30) },
		  &plain,
		  { .count = 2, .memory_mib = 3000, .cores = 30 } },
		{ "memory wins", { SET(1), SET(3000), SET(50), NONE }, &plain, { .count = 1, .memory_mib = 3000 } },
		{ "memory 0 is absent", { SET(1), SET(0), SET(50), NONE }, &plain, { .count = 1, .percent = 50 } },
		{ "percent above 100", { SET(1), NONE, SET(150), NONE }, &plain, { .count = 1, .percent = 100 } },
		{ "percent 0 is unset", { SET(1), NONE, SET(0), NONE }, &plain, { .count = 1, .percent = 100 } },
		{ "percent below 0", { SET(1), NONE, SET(-5), NONE }, &plain, { .count = 1, .percent = 100 } },
		{ "cores above 100",
		  { SET(1), SET(1), NONE, SET(250) },
		  &plain,
		  { .count = 1, .memory_mib = 1, .cores = 100 } },
		{ "defaults",
		  { SET(1), NONE, NONE, NONE },
		  &defaults,
		  { .count = 1, .memory_mib = 2000, .cores = 10 } },
		{ "percent, so no default",
		  { SET(1), NONE, SET(40), SET(0) },
		  &defaults,
		  { .count = 1, .percent = 40 } },
		{ "factor", { SET(1), SET(3000), NONE, NONE }, &factor, { .count = 1, .memory_mib = 6000 } },
		{ "the default has no factor",
		  { SET(1), NONE, NONE, NONE },
		  &factor,
		  { .count = 1, .memory_mib = 3000 } },
		{ "the most",
		  { SET(1), SET(1073741823), NONE, NONE },
		  &factor,
		  { .count = 1, .memory_mib = 2147483646 } },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct card_ask got;
		const struct card_ask *want = &cases[i].out;

		assert_int_equal(card_ask_make(ASK_INIT, &cases[i].in, cases[i].rules, &got, NULL), 0);
		if (got.count != want->count || got.memory_mib != want->memory_mib || got.percent != want->percent ||
		    got.cores != want->cores || got.kind != ASK_INIT)
			fail_msg("%s: %u x (%d MiB, %u %%, %u cores)", cases[i].what, got.count, got.memory_mib,
				 got.percent, got.cores);
	}
}

static void out_of_range(void **state)
{
	static const struct {
		struct ask_amounts in;
		const char *says;
	} cases[] = {
		{ { SET(1), SET(3221225472), NONE, NONE },
		  "nvidia.com/gpumem: 3221225472 is not between 0 and 1073741823" },
		{ { SET(1), SET(-1), NONE, NONE }, "nvidia.com/gpumem: -1 is not between 0 and 1073741823" },
		{ { SET(-1), NONE, NONE, NONE }, "nvidia.com/gpu: -1 is not between 0 and 2147483647" },
		{ { SET(1), NONE, NONE, SET(-7) }, "nvidia.com/gpucores: -7 is not between 0 and 2147483647" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct card_ask got;
		struct hm_err e;

		assert_int_equal(card_ask_make(ASK_APP, &cases[i].in, &factor, &got, &e), -HM_EINVAL);
		assert_string_equal(e.msg, cases[i].says);
		assert_int_equal(got.count, 0);
	}
}

static void on_a_card(void **state)
{
	struct card_ask absolute = { .count = 1, .memory_mib = 3000 }, third = { .count = 1, .percent = 33 };

	(void)state;
	assert_int_equal(card_ask_memory(&absolute, 100), 3000);
	assert_int_equal(card_ask_memory(&third, 81920), 27033);
	assert_int_equal(card_ask_memory(&third, 2147483647), 708669603); /* no overflow on the way */
}

static void a_pod(void **state)
{
	hm_auto_pod_ask p = { 0 };

	(void)state;
	assert_false(pod_ask_any(&p));
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(pod_ask_add(&p, &(struct card_ask) { .count = i == 5 }, NULL), 0);
	assert_true(pod_ask_any(&p));
	assert_int_equal(p.containers[5].count, 1);
}

/* The same numbers and texts of others in another place, too, are another pod. */
static void the_print(void **state)
{
	static struct card_ask app = { ASK_APP, 1, 2, 3, 4 }, init = { ASK_INIT, 1, 2, 3, 4 },
			       more = { ASK_APP, 2, 2, 3, 4 }, memory = { ASK_APP, 1, 3, 3, 4 },
			       percent = { ASK_APP, 1, 2, 4, 4 }, cores = { ASK_APP, 1, 2, 3, 5 },
			       two[] = { { ASK_APP, 1, 2, 3, 4 }, { ASK_APP, 1, 2, 3, 4 } };
	const struct pod_ask asks[] = {
		{ .uid = "u", .name_space = "n", .name = "p", .containers = &app, .count = 1 },
		{ .containers = &init, .count = 1 },
		{ .containers = &more, .count = 1 },
		{ .containers = &memory, .count = 1 },
		{ .containers = &percent, .count = 1 },
		{ .containers = &cores, .count = 1 },
		{ .containers = two, .count = 2 },
		{ .containers = &app, .count = 1, .cpu_milli = 5 },
		{ .containers = &app, .count = 1, .host_mib = 5 },
		{ .containers = &app, .count = 1, .wishes = { .node_policy = "x" } },
		{ .containers = &app, .count = 1, .wishes = { .node_policy = "" } },
		{ .containers = &app, .count = 1, .wishes = { .card_policy = "x" } },
		{ .containers = &app, .count = 1, .wishes = { .weights = "x" } },
		{ .containers = &app, .count = 1, .wishes = { .use_types = "x" } },
		{ .containers = &app, .count = 1, .wishes = { .no_types = "x" } },
		{ .containers = &app, .count = 1, .wishes = { .use_uuids = "x" } },
		{ .containers = &app, .count = 1, .wishes = { .no_uuids = "x" } },
		{ .containers = &app, .count = 1, .wishes = { .numa_bind = "x" } },
		{ .containers = &app, .count = 1, .wishes = { .mode = "x" } },
	};
	struct pod_ask alike = asks[0];

	(void)state;
	alike.uid = "v", alike.name_space = "o", alike.name = "q", alike.priority = 9;
	assert_true(pod_ask_print(&alike) == pod_ask_print(&asks[0]));
	for (size_t i = 0; i < HM_COUNT(asks); i++)
		for (size_t k = 0; k < i; k++)
			assert_true(pod_ask_print(&asks[i]) != pod_ask_print(&asks[k]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(amounts), cmocka_unit_test(out_of_range), cmocka_unit_test(on_a_card),
		cmocka_unit_test(a_pod),   cmocka_unit_test(the_print),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
