#include "agent/hami/mig_holds.h"

#include <stdio.h>
#include <string.h>

#include "core/macros.h"
#include "harness/unit.h"

static struct mig_holds *holds;

static int setup(void **state)
{
	(void)state;
	holds = mig_holds_new();
	return holds == NULL;
}

static int teardown(void **state)
{
	(void)state;
	mig_holds_free(holds);
	return 0;
}

#define RECORD(container, device, gpu, profile, start, size, more)                                                     \
	"{\"containerIndex\":" #container ",\"deviceIndex\":" #device ",\"gpuUUID\":\"" gpu                            \
	"\",\"profile\":\"" profile "\",\"placement\":{\"start\":" #start ",\"size\":" #size "}" more "}"

static void take(const char *uid, const char *records, const char *allocated, bool terminal)
{
	struct pod_view v = { .terminal = terminal };
	struct hm_err e;

	snprintf(v.uid, sizeof v.uid, "%s", uid);
	snprintf(v.name, sizeof v.name, "pod-%s", uid);
	v.annotations[POD_MIG_ALLOCATIONS] = (char *)(uintptr_t)records;
	v.annotations[POD_ALLOCATED] = (char *)(uintptr_t)allocated;
	if (mig_holds_take(holds, &v, &e) < 0)
		fail_msg("%s", e.msg);
}

static void make_ready(struct mig_hold *h, const char *uuid, unsigned gi)
{
	h->ready = true;
	snprintf(h->made.uuid, sizeof h->made.uuid, "%s", uuid);
	h->made.gi = gi;
}

static struct mig_placement at(unsigned start, unsigned size)
{
	return (struct mig_placement) { start, size };
}

static void a_pod_holds_until_it_is_over(void **state)
{
	struct mig_hold *h;

	(void)state;
	take("u", "[" RECORD(0, 0, "GPU-a", "2g.10gb", 2, 2, "") "," RECORD(1, 0, "GPU-b", "1g.5gb", 6, 1, "") "]", "",
	     false);
	assert_int_equal(mig_holds_count(holds), 2);
	h = mig_holds_find(holds, "u", 1, 0);
	assert_non_null(h);
	assert_string_equal(h->gpu_uuid, "GPU-b");
	assert_string_equal(h->pod, "pod-u");
	assert_int_equal(h->at.start, 6);
	assert_false(h->ready || h->over || h->told);
	assert_null(mig_holds_find(holds, "u", 1, 1));
	assert_null(mig_holds_find(holds, "v", 1, 0));
	assert_true(mig_holds_place(holds, "GPU-a", at(2, 2)));
	assert_false(mig_holds_place(holds, "GPU-a", at(4, 2)));
	assert_true(mig_holds_card(holds, "GPU-b"));
	assert_false(mig_holds_card(holds, "GPU-c"));
	/* The same again changes nothing. */
	make_ready(h, "MIG-1", 7);
	take("u", "[" RECORD(0, 0, "GPU-a", "2g.10gb", 2, 2, "") "," RECORD(1, 0, "GPU-b", "1g.5gb", 6, 1, "") "]", "",
	     false);
	assert_int_equal(mig_holds_count(holds), 2);
	assert_true(mig_holds_find(holds, "u", 1, 0)->ready);
	/* It is told once the text says just that. */
	take("u",
	     "[" RECORD(1, 0, "GPU-b", "1g.5gb", 6, 1,
			",\"migUUID\":\"MIG-1\",\"gpuInstanceID\":8,\"computeInstanceID\":0") "]",
	     "", false);
	assert_false(mig_holds_find(holds, "u", 1, 0)->told);
	take("u",
	     "[" RECORD(1, 0, "GPU-b", "1g.5gb", 6, 1,
			",\"migUUID\":\"MIG-1\",\"gpuInstanceID\":7,\"computeInstanceID\":0") "]",
	     "", false);
	assert_true(mig_holds_find(holds, "u", 1, 0)->told);
	take("u", "[]", "", true);
	assert_true(mig_holds_find(holds, "u", 1, 0)->over && mig_holds_find(holds, "u", 0, 0)->over);
	assert_true(mig_holds_place(holds, "GPU-a", at(2, 2))); /* until it has ended */
	mig_holds_remove(holds, 0);
	mig_holds_remove(holds, 0);
	assert_false(mig_holds_card(holds, "GPU-a"));
}

static void a_reservation_that_moves_is_another(void **state)
{
	struct mig_hold *h;

	(void)state;
	take("u", "[" RECORD(0, 0, "GPU-a", "2g.10gb", 2, 2, "") "]", "", false);
	make_ready(mig_holds_at(holds, 0), "MIG-1", 3);
	take("u", "[" RECORD(0, 0, "GPU-a", "2g.10gb", 4, 2, "") "]", "", false);
	assert_int_equal(mig_holds_count(holds), 2);
	h = mig_holds_find(holds, "u", 0, 0);
	assert_int_equal(h->at.start, 4);
	assert_false(h->over || h->ready);
	assert_true(mig_holds_at(holds, 0)->over && mig_holds_at(holds, 0)->ready);
}

static void what_cannot_be_read_holds_its_cards(void **state)
{
	static const char *const bad[] = { "{", "\"zzz\"", "[{}]", "[" RECORD(0, 0, "GPU-a", "2g.10gb", 0, 0, "") "]",
					   "[" RECORD(0, 0, "GPU-a", "2g.10gb", 0, 2, ",\"migUUID\":\"MIG-1\"") "]" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		take("u", bad[i], "GPU-a,NVIDIA,4864,15:;", false);
		assert_int_equal(mig_holds_count(holds), 0);
		assert_true(mig_holds_blind(holds, "GPU-a"));
		assert_true(mig_holds_place(holds, "GPU-a", at(6, 1)));
		assert_false(mig_holds_blind(holds, "GPU-b"));
	}
	/* Not even the cards can be read: it may be any. */
	take("u", "{", "GPU-a,NVIDIA", false);
	assert_true(mig_holds_blind(holds, "GPU-b"));
	take("v", "{", NULL, false);
	take("u", "[]", "", false);
	assert_true(mig_holds_card(holds, "GPU-b"));
	mig_holds_gone(holds, &(struct pod_view) { .uid = "v" });
	assert_false(mig_holds_card(holds, "GPU-b"));
}

static void ids_that_the_text_has_are_known(void **state)
{
	const struct mig_hold *h;

	(void)state;
	take("u",
	     "[" RECORD(0, 0, "GPU-a", "1g.5gb", 3, 1,
			",\"migUUID\":\"MIG-9\",\"gpuInstanceID\":9,\"computeInstanceID\":0") "]",
	     "", false);
	h = mig_holds_find(holds, "u", 0, 0);
	assert_string_equal(h->made.uuid, "MIG-9");
	assert_int_equal(h->made.gi, 9);
	assert_false(h->ready); /* until NVML says so */
	take("n", NULL, "GPU-a,NVIDIA,4864,15:;", false);
	assert_int_equal(mig_holds_count(holds), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(a_pod_holds_until_it_is_over),
		TEST(a_reservation_that_moves_is_another),
		TEST(what_cannot_be_read_holds_its_cards),
		TEST(ids_that_the_text_has_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
