#include "agent/hami/mig_fill.h"

#include <stdio.h>
#include <string.h>

#include "harness/unit.h"
#include "unit/model/make_inventory.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"

static struct mig_holds *holds;
static struct inventory *inventory;
static struct claim claim;

static int setup(void **state)
{
	(void)state;
	holds = mig_holds_new();
	inventory = make_inventory(1, 40960);
	claim = (struct claim) { .card_count = 1 };
	snprintf(claim.cards[0].uuid, sizeof claim.cards[0].uuid, CARD);
	return holds == NULL || inventory == NULL;
}

static int teardown(void **state)
{
	(void)state;
	mig_holds_free(holds);
	inventory_free(inventory);
	return 0;
}

/* A pod's reservations: the device index of each, of container 0, one placement after the other. */
static void reserve(const unsigned *devices, size_t count, const char *gpu)
{
	char text[1024] = "[";
	struct pod_view v = { .uid = "u" };
	struct hm_err e;
	size_t n = 1;

	for (size_t i = 0; i < count; i++)
		n += (size_t)snprintf(
			text + n, sizeof text - n,
			"%s{\"containerIndex\":0,\"deviceIndex\":%u,\"gpuUUID\":\"%s\",\"profile\":\"1g.5gb\","
			"\"placement\":{\"start\":%zu,\"size\":1}}",
			i > 0 ? "," : "", devices[i], gpu, i);
	snprintf(text + n, sizeof text - n, "]");
	v.annotations[POD_MIG_ALLOCATIONS] = text;
	if (mig_holds_take(holds, &v, &e) < 0)
		fail_msg("%s", e.msg);
}

static void make_ready(void)
{
	for (size_t i = 0; i < mig_holds_count(holds); i++) {
		struct mig_hold *h = mig_holds_at(holds, i);

		h->ready = true;
		h->made = (struct mig_device) { .gi = 10 + h->device, .memory_mib = 4864 };
		snprintf(h->made.uuid, sizeof h->made.uuid, "MIG-%u", h->device);
	}
}

static int fill(size_t count, struct hm_err *e)
{
	return mig_fill(holds, inventory, "u", "main", 0, count, &claim, e);
}

/* HAMi counts from 0; the record may say any number, and the order is theirs. */
static void devices_in_the_order_of_their_numbers(void **state)
{
	static const unsigned devices[] = { 4000000000U, 7, 40 };
	struct hm_err e;

	(void)state;
	reserve(devices, 3, CARD);
	make_ready();
	if (fill(3, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(claim.card_count, 3);
	assert_string_equal(claim.cards[0].mig, "MIG-7");
	assert_string_equal(claim.cards[1].mig, "MIG-40");
	assert_string_equal(claim.cards[2].mig, "MIG-4000000000");
	assert_string_equal(claim.cards[2].uuid, CARD);
	assert_int_equal(claim.cards[0].memory_bytes, 4864ULL << 20);
	assert_int_equal(claim.cards[0].gi, 17);
}

static void what_does_not_fit_is_refused(void **state)
{
	static const unsigned devices[] = { 0, 1 };
	struct hm_err e;

	(void)state;
	assert_int_equal(fill(1, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "container main has 0 MIG reservations, requested 1 devices");
	reserve(devices, 2, CARD);
	assert_int_equal(fill(1, &e), -HM_EINVAL);
	assert_int_equal(fill(2, &e), -HM_EAGAIN);
	make_ready();
	snprintf(claim.cards[0].uuid, sizeof claim.cards[0].uuid, "GPU-b");
	assert_int_equal(fill(2, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "MIG reservation GPU " CARD " does not match allocated GPU GPU-b");
}

/* Two pods at one place: the first that is ready has it, one that is over has it until it is ended. */
static void a_place_is_one_pod_s(void **state)
{
	static const unsigned device = 0;
	struct pod_view v = { .uid = "v" }, u = { .uid = "u" };
	struct mig_hold *first, *second;
	struct hm_err e;

	(void)state;
	reserve(&device, 1, CARD);
	v.annotations[POD_MIG_ALLOCATIONS] = "[{\"containerIndex\":0,\"deviceIndex\":0,\"gpuUUID\":\"" CARD
					     "\",\"profile\":\"2g.10gb\",\"placement\":{\"start\":0,\"size\":2}}]";
	assert_int_equal(mig_holds_take(holds, &v, &e), 0);
	first = mig_holds_find(holds, "u", 0, 0);
	second = mig_holds_find(holds, "v", 0, 0);
	assert_false(mig_holds_rival(holds, first) || mig_holds_rival(holds, second));
	first->ready = true;
	assert_true(mig_holds_rival(holds, second));
	assert_false(mig_holds_rival(holds, first));
	mig_holds_gone(holds, &u);
	assert_true(mig_holds_rival(holds, second));
	assert_false(mig_holds_ended(holds, "u"));
	first->at.start = 2;
	assert_false(mig_holds_rival(holds, second));
	/* Its containers have ended: it keeps nobody away, and gives on what fits. */
	first->at.start = 0;
	u.terminal = true;
	mig_holds_gone(holds, &u);
	assert_false(mig_holds_rival(holds, second));
	assert_true(mig_holds_ended(holds, "u"));
	assert_false(mig_holds_passes_on(holds, first));
	first->at.size = 2;
	snprintf(first->profile, sizeof first->profile, "2g.10gb");
	assert_true(mig_holds_passes_on(holds, first));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(devices_in_the_order_of_their_numbers),
		TEST(what_does_not_fit_is_refused),
		TEST(a_place_is_one_pod_s),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
