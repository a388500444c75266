#include "agent/serve/allocate.h"

#include <string.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/agent/checkpoint_text.h"
#include "unit/model/make_inventory.h"

#define GPU0 "GPU-00000000-0000-0000-0000-000000000000"
#define GPU1 "GPU-00000000-0000-0000-0000-000000000001"
#define SLOT(gpu, n) gpu "::" #n

static struct inventory *inventory;
static struct slots *slots;
static struct claims *claims;

static int setup(void **state)
{
	const struct slots_config config = { 4, 0, SLICING_STATIC };
	struct hm_err e;

	inventory = make_inventory(2, 16000);
	return slots_new(inventory, &config, &slots, &e) < 0 || temp_setup(state) < 0 ||
			       claims_open(temp_path("claims"), &claims, &e) < 0
		       ? -1
		       : 0;
}

static int teardown(void **state)
{
	claims_free(claims);
	slots_free(slots);
	inventory_free(inventory);
	return temp_teardown(state);
}

static void a_claim_says_what_the_ids_amount_to(void **state)
{
	static const char *const ids[] = { SLOT(GPU1, 2), SLOT(GPU0, 3), SLOT(GPU0, 1) };
	struct claim c;
	struct hm_err e;
	bool broken;

	(void)state;
	assert_int_equal(allocate_claim(slots, "hami.com/vgpu", ids, 3, 17, &c, &broken, &e), 0);
	assert_int_equal(c.number, 17);
	assert_int_equal(c.state, CLAIM_ALLOCATED);
	assert_string_equal(c.resource, "hami.com/vgpu");
	assert_string_equal(c.cdi, "");
	assert_int_equal(c.card_count, 2);
	assert_string_equal(c.cards[0].uuid, GPU0);
	assert_int_equal(c.cards[0].memory_bytes, 2ULL * 4000 << 20);
	assert_int_equal(c.cards[0].cores, 50);
	assert_int_equal(c.cards[0].slot, 1);
	assert_string_equal(c.cards[1].uuid, GPU1);
	assert_int_equal(c.cards[1].memory_bytes, 4000ULL << 20);
	assert_int_equal(c.cards[1].slot, 2);
	assert_true(claim_has_set(&c, ids, 3));
	assert_true(broken);
	claim_fini(&c);
	assert_int_equal(allocate_claim(slots, "r", ids, 2, 1, &c, &broken, &e), 0);
	assert_false(broken);
	claim_fini(&c);
}

static void bad_ids_are_never_a_card(void **state)
{
	static const struct {
		const char *ids[2];
		size_t count;
		int code;
		const char *text;
	} rows[] = {
		{ { NULL }, 0, HM_EINVAL, "no device" },
		{ { SLOT(GPU0, 4) }, 1, HM_ENOTFOUND, GPU0 },
		{ { "GPU-other::0" }, 1, HM_ENOTFOUND, "GPU-other" },
		{ { GPU0 }, 1, HM_EPROTO, GPU0 },
		{ { "all" }, 1, HM_EPROTO, "all" },
		{ { "" }, 1, HM_EPROTO, "" },
		{ { SLOT(GPU0, 0), SLOT(GPU0, 0) }, 2, HM_EINVAL, "twice" },
		{ { SLOT(GPU0, 00) }, 1, HM_EPROTO, "" },
		{ { SLOT(GPU0, -1) }, 1, HM_EPROTO, "" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct claim c;
		struct hm_err e = { 0 };
		int r = allocate_claim(slots, "r", rows[i].ids, rows[i].count, 1, &c, NULL, &e);

		if (r >= 0)
			fail_msg("row %zu was granted", i);
		if ((r != -rows[i].code && rows[i].code != HM_EPROTO) || strstr(e.msg, rows[i].text) == NULL)
			fail_msg("row %zu: %d %s", i, r, e.msg);
	}
}

static const char *prefer(const char *const *available, size_t n, const char *const *must, size_t must_n, int64_t size)
{
	const struct dp_preferred_request req = { available, must, n, must_n, size };
	static char text[512];
	const char *out[16];
	size_t count, at = 0;
	struct hm_err e;

	if (allocate_prefer(slots, claims, &req, out, &count, &e) < 0)
		fail_msg("%s", e.msg);
	text[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		const char *from = strstr(out[i], "::") != NULL && strlen(out[i]) > 40 ? out[i] + 39 : out[i];

		at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i > 0 ? " " : "", from);
	}
	return text;
}

static void preferred_steers_away_from_what_claims_hold(void **state)
{
	static const char *const all[] = { SLOT(GPU0, 0), SLOT(GPU0, 1), SLOT(GPU0, 2) };

	(void)state;
	assert_string_equal(prefer(all, 3, NULL, 0, 1), "0::0");
	put_claim(claims, make_claim(1, "p", "", SLOT(GPU0, 0), NULL));
	assert_string_equal(prefer(all, 3, NULL, 0, 1), "0::1");
	struct claim ended = make_claim(1, "p", "", SLOT(GPU0, 0), NULL);
	ended.state = CLAIM_ENDED;
	put_claim(claims, ended);
	assert_string_equal(prefer(all, 3, NULL, 0, 1), "0::0");
}

static void preferred_always_answers(void **state)
{
	static const char *const strange[] = { "GPU-lost::0", SLOT(GPU0, 1), "nonsense" };
	static const char *const must[] = { "GPU-lost::0" };

	(void)state;
	assert_string_equal(prefer(strange, 3, NULL, 0, 1), "0::1");
	assert_string_equal(prefer(strange, 3, NULL, 0, 2), "GPU-lost::0 0::1");
	assert_string_equal(prefer(strange, 3, must, 1, 2), "GPU-lost::0 0::1");
	assert_string_equal(prefer(strange, 1, NULL, 0, 9), "GPU-lost::0");
	assert_string_equal(prefer(strange, 3, NULL, 0, 0), "");
	assert_string_equal(prefer(strange, 3, NULL, 0, -1), "");
}

static int scenario(void *arg)
{
	static const char *const ids[] = { SLOT(GPU0, 0), SLOT(GPU0, 1) };
	const struct dp_preferred_request req = { ids, NULL, 2, 0, 1 };
	const char *out[2];
	size_t count;
	struct claim c;
	struct hm_err e;

	(void)arg;
	if (allocate_claim(slots, "r", ids, 2, 1, &c, NULL, &e) < 0)
		return -1;
	claim_fini(&c);
	return allocate_prefer(slots, claims, &req, out, &count, &e);
}

static void allocation_failures(void **state)
{
	(void)state;
	sweep_check("allocate", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(a_claim_says_what_the_ids_amount_to),
		TEST(bad_ids_are_never_a_card),
		TEST(preferred_steers_away_from_what_claims_hold),
		TEST(preferred_always_answers),
		TEST(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
