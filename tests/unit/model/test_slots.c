#include "model/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "harness/sweep.h"
#include "unit/model/make_inventory.h"

static struct slots *cut(const struct inventory *inv, uint64_t slots, uint64_t mib)
{
	struct slots_config config = { slots, mib, SLICING_STATIC };
	struct slots *s = NULL;
	struct hm_err e;

	if (slots_new(inv, &config, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

static void test_cut(void **state)
{
	static const struct {
		uint64_t card_mib, reserved_mib, slots, mib; /* in */
		uint64_t slot_mib, unused_mib, unbacked_mib; /* out */
		unsigned cores, unused_cores;
	} rows[] = {
		{ 15360, 0, 4, 0, 3840, 0, 0, 25, 0 },     /* T4 */
		{ 15360, 450, 4, 0, 3727, 452, 0, 25, 0 }, /* what the driver keeps is not cut */
		{ 40960, 0, 8, 5120, 5120, 0, 0, 12, 4 },  /* the whole of an A100, as configured */
		{ 40960, 450, 8, 5120, 5120, 0, 450, 12, 4 },
		{ 40960, 450, 8, 5060, 5060, 480, 0, 12, 4 },
		{ 46068, 0, 3, 0, 15356, 0, 0, 33, 1 },    /* L40S */
		{ 46068, 0, 23, 2000, 2000, 68, 0, 4, 8 }, /* one less than what does not fit */
		{ 81559, 559, 4, 0, 20250, 559, 0, 25, 0 },
		{ 1000, 0, 7, 100, 100, 300, 0, 14, 2 },
		{ 2000, 0, 100, 0, 20, 0, 0, 1, 0 },
		{ 2000, 0, 101, 0, 19, 81, 0, 1, 0 }, /* 101 percent: the least a slot has is 1 */
		{ 2000, 0, 1000, 0, 2, 0, 0, 1, 0 },
		{ 10, 0, 10, 0, 1, 0, 0, 10, 0 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(inventory) *inv = make_inventory(1, rows[i].card_mib);
		hm_auto(slots) *s = NULL;
		const struct slot_card *c;

		inv->cards[0].reserved_bytes = rows[i].reserved_mib << 20;
		s = cut(inv, rows[i].slots, rows[i].mib);
		c = slots_card(s, 0);
		assert_int_equal(slots_total(s), rows[i].slots);
		assert_int_equal(c->slots, rows[i].slots);
		assert_int_equal(c->slot_memory_bytes, rows[i].slot_mib << 20);
		assert_int_equal(c->unused_memory_bytes, rows[i].unused_mib << 20);
		assert_int_equal(c->unbacked_memory_bytes, rows[i].unbacked_mib << 20);
		assert_int_equal(c->slot_cores, rows[i].cores);
		assert_int_equal(c->unused_cores, rows[i].unused_cores);
	}
}

/* Parts of a card never sum to more than the card, whatever its size. */
static void test_sums(void **state)
{
	(void)state;
	for (uint64_t mib = 1; mib < 100000; mib = mib * 3 / 2 + 1) {
		for (uint64_t n = 1; n <= 1000 && n <= mib; n += n < 20 ? 1 : 37) {
			hm_auto(inventory) *inv = make_inventory(1, mib);
			hm_auto(slots) *s = cut(inv, n, 0);
			const struct slot_card *c = slots_card(s, 0);

			assert_true(c->slots * c->slot_memory_bytes <= mib << 20);
			assert_int_equal(c->slots * c->slot_memory_bytes + c->unused_memory_bytes, mib << 20);
			assert_true((mib << 20) - c->slots * c->slot_memory_bytes < (n << 20));
			assert_true(n > 100 || c->slots * c->slot_cores + c->unused_cores == 100);
		}
	}
}

static void test_beyond_the_card(void **state)
{
	static const struct {
		uint64_t mib, unbacked_mib;
		bool good;
	} rows[] = {
		{ 2300, 0, true },       /* fits */
		{ 4000, 6500, true },    /* 16,000 of 10,000 less 500 */
		{ 40000, 150500, true }, /* 16 times */
		{ 40001, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct slots_config config = { 4, rows[i].mib, SLICING_STATIC, true };
		hm_auto(inventory) *inv = make_inventory(1, 10000);
		hm_auto(slots) *s = NULL;
		struct hm_err e;

		inv->cards[0].reserved_bytes = 500 << 20;
		assert_int_equal(slots_new(inv, &config, &s, &e), rows[i].good ? 0 : -HM_EINVAL);
		if (!rows[i].good)
			continue;
		assert_int_equal(slots_card(s, 0)->slot_memory_bytes, rows[i].mib << 20);
		assert_int_equal(slots_card(s, 0)->unbacked_memory_bytes, rows[i].unbacked_mib << 20);
		assert_int_equal(slots_card(s, 0)->unused_memory_bytes, i == 0 ? 800 << 20 : 0);
	}
}

static void test_refused(void **state)
{
	static const struct {
		uint64_t slots, mib;
		const char *says[4];
	} rows[] = {
		{ 24, 2000, { "GPU 1", "Test T1", "24 slots of 2000 MiB", "46068 MiB" } },
		{ 24, 1920, { "GPU 1", "24 slots of 1920 MiB", "46068 MiB", "at most 1919 MiB" } },
		{ 1, 46069, { "GPU 1", "46069 MiB", "46068 MiB", "or 0 slots" } },
		{ 4, UINT64_MAX / 2, { "GPU 0", "4 slots of 9223372036854775807 MiB" } },
		{ 0, 0, { "0 slots", "between 1 and 1000" } },
		{ 1001, 0, { "1001 slots", "between 1 and 1000" } },
	};
	hm_auto(inventory) *inv = make_inventory(2, 46068);

	(void)state;
	inv->cards[0].memory_bytes = UINT64_MAX; /* fits anything: the second one is named */
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct slots_config config = { rows[i].slots, rows[i].mib, SLICING_DYNAMIC };
		struct slots *s = NULL;
		struct hm_err e;

		assert_int_equal(slots_new(inv, &config, &s, &e), -HM_EINVAL);
		assert_null(s);
		for (size_t j = 0; j < 4 && rows[i].says[j] != NULL; j++) {
			if (strstr(e.msg, rows[i].says[j]) == NULL)
				fail_msg("\"%s\" does not say \"%s\"", e.msg, rows[i].says[j]);
		}
	}
}

static void test_too_small_card(void **state)
{
	hm_auto(inventory) *inv = make_inventory(1, 10);
	struct slots_config config = { 11, 0, SLICING_STATIC };
	struct slots *s = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(slots_new(inv, &config, &s, &e), -HM_EINVAL);
	assert_non_null(strstr(e.msg, "less than 1 MiB"));
	inv->cards[0].reserved_bytes = UINT64_MAX; /* a driver that talks nonsense */
	config.cores_per_device = 1;
	assert_int_equal(slots_new(inv, &config, &s, &e), -HM_EINVAL);
}

static void test_too_many_cards(void **state)
{
	hm_auto(inventory) *inv = make_inventory(17, 1000);
	struct slots_config config = { 4, 0, SLICING_STATIC };
	struct slots *s = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(slots_new(inv, &config, &s, &e), -HM_ELIMIT);
}

/* In MIG mode, or of unknown memory. */
static void test_a_card_that_cannot_be_cut_is_left_out(void **state)
{
	hm_auto(inventory) *inv = make_inventory(4, 1000);
	hm_auto(slots) *s = NULL;
	struct slot_ref r = { 9, 9 };
	struct hm_err e;

	(void)state;
	inv->cards[1].mig_enabled = true;
	inv->cards[3].memory_bytes = 0;
	s = cut(inv, 2, 0);
	assert_int_equal(slots_card_count(s), 2);
	assert_int_equal(slots_total(s), 4);
	assert_ptr_equal(slots_card(s, 1)->card, &inv->cards[2]);
	assert_int_equal(slot_id_parse(s, "GPU-00000000-0000-0000-0000-000000000002::1", &r, &e), 0);
	assert_int_equal(r.card, 1);
	assert_int_equal(slot_id_parse(s, "GPU-00000000-0000-0000-0000-000000000001::1", &r, &e), -HM_ENOTFOUND);
}

static void test_ids(void **state)
{
	static const struct {
		const char *id;
		int code;
	} rows[] = {
		{ "GPU-00000000-0000-0000-0000-000000000000::0", 0 },
		{ "GPU-00000000-0000-0000-0000-000000000001::3", 0 },
		{ "GPU-00000000-0000-0000-0000-000000000001::4", -HM_ENOTFOUND },
		{ "GPU-00000000-0000-0000-0000-000000000001::4294967296", -HM_EPROTO },
		{ "GPU-00000000-0000-0000-0000-000000000002::0", -HM_ENOTFOUND },
		{ "GPU-00000000-0000-0000-0000-000000000001::03", -HM_EPROTO },
		{ "GPU-00000000-0000-0000-0000-000000000001::", -HM_EPROTO },
		{ "GPU-00000000-0000-0000-0000-000000000001::-1", -HM_EPROTO },
		{ "GPU-00000000-0000-0000-0000-000000000001::0 ", -HM_EPROTO },
		{ "GPU-00000000-0000-0000-0000-000000000001::0::1", -HM_EPROTO },
		{ "GPU-00000000-0000-0000-0000-000000000001:0", -HM_EPROTO },
		{ "GPU-00000000-0000-0000-0000-000000000001", -HM_EPROTO },
		{ "::0", -HM_EPROTO },
		{ "", -HM_EPROTO },
		{ "../../etc/passwd::0", -HM_ENOTFOUND },
		{ "GPU-0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000::0",
		  -HM_ENOTFOUND },
		{ "GPU-00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000::0",
		  -HM_EPROTO },
	};
	hm_auto(inventory) *inv = make_inventory(2, 1000);
	hm_auto(slots) *s = cut(inv, 4, 0);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct slot_ref r = { 99, 99 };
		char back[HM_DEVICE_ID_BYTES];
		struct hm_err e;
		int code = slot_id_parse(s, rows[i].id, &r, &e);

		if (code != rows[i].code)
			fail_msg("\"%s\": %d, not %d", rows[i].id, code, rows[i].code);
		if (code == 0) {
			slot_id_format(s, r, back);
			assert_string_equal(back, rows[i].id);
		}
	}
}

static void test_grant(void **state)
{
	static const struct {
		struct slot_ref refs[6];
		size_t count;
		size_t cards;
		unsigned counts[2], first[2], cores[2];
		bool broken[2];
	} rows[] = {
		{ { { 0, 1 } }, 1, 1, { 1 }, { 1 }, { 12 }, { false } },
		{ { { 0, 2 }, { 0, 1 } }, 2, 1, { 2 }, { 1 }, { 24 }, { false } },
		{ { { 0, 7 }, { 0, 5 } }, 2, 1, { 2 }, { 5 }, { 24 }, { true } },
		{ { { 1, 7 }, { 0, 5 }, { 1, 0 } }, 3, 2, { 1, 2 }, { 5, 0 }, { 12, 24 }, { false, true } },
		{ { { 0, 0 } }, 0, 0, { 0 }, { 0 }, { 0 }, { false } },
	};
	hm_auto(inventory) *inv = make_inventory(2, 1000);
	hm_auto(slots) *s = cut(inv, 8, 0);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct grant g;
		struct hm_err e;

		assert_int_equal(slots_grant(s, rows[i].refs, rows[i].count, &g, &e), 0);
		assert_int_equal(g.count, rows[i].cards);
		for (size_t j = 0; j < g.count; j++) {
			assert_int_equal(g.cards[j].count, rows[i].counts[j]);
			assert_int_equal(g.cards[j].memory_bytes, rows[i].counts[j] * (125ull << 20));
			assert_int_equal(g.cards[j].first_number, rows[i].first[j]);
			assert_int_equal(g.cards[j].cores, rows[i].cores[j]);
			assert_int_equal(g.cards[j].broken_run, rows[i].broken[j]);
		}
	}
}

static void test_grant_refused(void **state)
{
	hm_auto(inventory) *inv = make_inventory(2, 1000);
	hm_auto(slots) *s = cut(inv, 8, 0);
	struct slot_ref twice[] = { { 1, 3 }, { 1, 4 }, { 1, 3 } }, slot[] = { { 0, 8 } }, card[] = { { 2, 0 } };
	struct grant g;
	struct hm_err e;

	(void)state;
	assert_int_equal(slots_grant(s, twice, 3, &g, &e), -HM_EINVAL);
	assert_non_null(strstr(e.msg, "slot 3 of GPU GPU-00000000-0000-0000-0000-000000000001"));
	assert_int_equal(slots_grant(s, slot, 1, &g, &e), -HM_ENOTFOUND);
	assert_int_equal(slots_grant(s, card, 1, &g, &e), -HM_ENOTFOUND);
}

/* A whole card in more than 100 slots is 100 percent, not more. */
static void test_grant_of_many(void **state)
{
	hm_auto(inventory) *inv = make_inventory(1, 40960);
	hm_auto(slots) *s = cut(inv, 1000, 0);
	struct slot_ref refs[1000];
	struct grant g;
	struct hm_err e;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		refs[i] = (struct slot_ref) { 0, 999 - i };
	assert_int_equal(slots_grant(s, refs, 1000, &g, &e), 0);
	assert_int_equal(g.cards[0].cores, 100);
	assert_int_equal(g.cards[0].memory_bytes, 40000ull << 20);
	assert_false(g.cards[0].broken_run);
}

static int sweep_cut(void *arg)
{
	struct slots_config config = { 4, 0, SLICING_STATIC };
	hm_auto(slots) *s = NULL;
	struct hm_err e;

	return slots_new(arg, &config, &s, &e);
}

static void test_sweep(void **state)
{
	hm_auto(inventory) *inv = make_inventory(2, 1000);

	(void)state;
	sweep_check("slots_new", sweep_cut, inv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_sums),
		cmocka_unit_test(test_beyond_the_card),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_too_small_card),
		cmocka_unit_test(test_too_many_cards),
		cmocka_unit_test(test_a_card_that_cannot_be_cut_is_left_out),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_grant),
		cmocka_unit_test(test_grant_refused),
		cmocka_unit_test(test_grant_of_many),
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
