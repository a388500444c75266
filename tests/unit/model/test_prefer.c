#include "model/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "harness/sweep.h"
#include "unit/model/make_inventory.h"

enum { MANY = 64 };

static struct slots *cut(const struct inventory *inv, uint64_t slots, enum slicing slicing)
{
	struct slots_config config = { slots, 0, slicing };
	struct slots *s = NULL;
	struct hm_err e;

	if (slots_new(inv, &config, &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s;
}

/* "0:5,6,7 1:0" to refs: card, slot numbers. Test texts are well formed. */
static size_t refs_of(const char *text, struct slot_ref *out)
{
	unsigned card = 0, number = 0;
	size_t n = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (*p >= '0' && *p <= '9')
			number = number * 10 + (unsigned)(*p - '0');
		if (*p == ':')
			card = number;
		else if (*p >= '0' && *p <= '9' && (p[1] == ',' || p[1] == ' ' || p[1] == '\0'))
			out[n++] = (struct slot_ref) { card, number };
		if (*p < '0' || *p > '9')
			number = 0;
	}
	return n;
}

static const char *text_of(const struct slot_ref *refs, size_t count)
{
	static char out[1024];
	int at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count; i++) {
		if (i > 0 && refs[i].card == refs[i - 1].card)
			at += snprintf(out + at, sizeof out - (size_t)at, ",%u", refs[i].number);
		else
			at += snprintf(out + at, sizeof out - (size_t)at, "%s%u:%u", i > 0 ? " " : "", refs[i].card,
				       refs[i].number);
	}
	return out;
}

struct held_set {
	struct slot_ref refs[MANY];
	size_t count;
};

static bool is_held(struct slot_ref r, void *arg)
{
	const struct held_set *held = arg;

	for (size_t i = 0; i < held->count; i++) {
		if (held->refs[i].card == r.card && held->refs[i].number == r.number)
			return true;
	}
	return false;
}

struct row {
	const char *name;
	enum slicing slicing;
	const char *available, *must, *held;
	size_t size;
	const char *want; /* NULL: refused */
};

static void run_rows(const struct inventory *inv, uint64_t slots, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		hm_auto(slots) *s = cut(inv, slots, rows[i].slicing);
		struct slot_ref available[MANY], must[MANY], out[MANY];
		struct held_set held = { 0 };
		struct slots_request req = { available, must, 0, 0, rows[i].size, NULL, &held };
		struct hm_err e;
		int r;

		req.available_count = refs_of(rows[i].available, available);
		req.must_count = refs_of(rows[i].must, must);
		held.count = refs_of(rows[i].held, held.refs);
		if (held.count > 0)
			req.held = is_held;
		r = slots_prefer(s, &req, out, &e);
		if (rows[i].want == NULL) {
			if (r != -HM_EINVAL)
				fail_msg("%s: %d, not refused", rows[i].name, r);
			continue;
		}
		if (r < 0)
			fail_msg("%s: %s", rows[i].name, e.msg);
		if (strcmp(text_of(out, rows[i].size), rows[i].want) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", rows[i].name, text_of(out, rows[i].size), rows[i].want);
	}
}

static void test_one_card(void **state)
{
	static const struct row rows[] = {
		{ "first", SLICING_STATIC, "0:0,1,2,3,4,5,6,7", "", "", 2, "0:0,1" },
		{ "smallest run", SLICING_STATIC, "0:0,1,2,4,5,7", "", "", 2, "0:4,5" },
		{ "smallest run, larger ones behind", SLICING_STATIC, "0:0,1,3,4,5", "", "", 2, "0:0,1" },
		{ "must with its neighbours, then a run", SLICING_STATIC, "0:0,1,2,4,5,6", "0:5", "", 4, "0:0,4,5,6" },
		{ "smallest run of one", SLICING_STATIC, "0:0,1,2,4,5,7", "", "", 1, "0:7" },
		{ "broken: largest and the rest", SLICING_STATIC, "0:0,2,3,5,6,7", "", "", 4, "0:0,5,6,7" },
		{ "broken: fewest pieces", SLICING_STATIC, "0:0,2,3,5,6,7", "", "", 5, "0:2,3,5,6,7" },
		{ "dynamic takes the lowest", SLICING_DYNAMIC, "0:0,2,3,5,6,7", "", "", 4, "0:0,2,3,5" },
		{ "must in a run", SLICING_STATIC, "0:0,1,2,3,4,5,6,7", "0:6", "", 3, "0:4,5,6" },
		{ "must in the larger run", SLICING_STATIC, "0:0,1,3,4,5,6", "0:5", "", 2, "0:4,5" },
		{ "must far apart", SLICING_STATIC, "0:0,1,2,3,4,5,6,7", "0:1,6", "", 4, "0:1,2,3,6" },
		{ "must, dynamic", SLICING_DYNAMIC, "0:0,1,2,3,4,5,6,7", "0:6", "", 3, "0:0,1,6" },
		{ "all must", SLICING_STATIC, "0:1,3,5", "0:1,3,5", "", 3, "0:1,3,5" },
		{ "held is left", SLICING_STATIC, "0:0,1,2,3", "", "0:0", 2, "0:1,2" },
		{ "held is last", SLICING_STATIC, "0:0,1,2,3", "", "0:0,1", 3, "0:0,2,3" },
		{ "held, but must", SLICING_STATIC, "0:0,1,2,3", "0:0", "0:0", 2, "0:0,1" },
		{ "nothing", SLICING_STATIC, "0:0", "", "", 0, "" },
		{ "nothing of nothing", SLICING_DYNAMIC, "", "", "", 0, "" },
		{ "twice is once", SLICING_STATIC, "0:0,0,1", "0:1,1", "", 2, "0:0,1" },
		{ "too few", SLICING_STATIC, "0:0,1", "", "", 3, NULL },
		{ "too few, doubled", SLICING_STATIC, "0:0,0,0", "", "", 2, NULL },
		{ "must not offered", SLICING_STATIC, "0:0,1", "0:2", "", 1, NULL },
		{ "more must than asked for", SLICING_STATIC, "0:0,1,2", "0:0,1", "", 1, NULL },
		{ "unknown slot", SLICING_STATIC, "0:0,8", "", "", 1, NULL },
		{ "unknown card", SLICING_STATIC, "0:0 1:1", "", "", 1, NULL },
		{ "unknown must", SLICING_STATIC, "0:0", "0:9", "", 1, NULL },
	};
	hm_auto(inventory) *inv = make_inventory(1, 1000);

	(void)state;
	run_rows(inv, 8, rows, HM_COUNT(rows));
}

static void test_several_cards(void **state)
{
	static const struct row rows[] = {
		{ "fullest that fits", SLICING_STATIC, "0:0,1,2,3 1:2,3 2:1,2,3", "", "", 2, "1:2,3" },
		{ "fullest that fits 3", SLICING_DYNAMIC, "0:0,1,2,3 1:2,3 2:1,2,3", "", "", 3, "2:1,2,3" },
		{ "equal: the first", SLICING_STATIC, "0:0,1,2,3 1:0,1,2,3", "", "", 3, "0:0,1,2" },
		{ "unbroken before full", SLICING_STATIC, "0:0,2 1:0,1,2,3", "", "", 2, "1:0,1" },
		{ "dynamic: full before unbroken", SLICING_DYNAMIC, "0:0,2 1:0,1,2,3", "", "", 2, "0:0,2" },
		{ "two cards, no third", SLICING_STATIC, "0:0 1:0,1,2 2:2,3 3:1", "", "", 5, "1:0,1,2 2:2,3" },
		{ "two cards, least left over", SLICING_STATIC, "0:0,1,2,3 1:0,1,2 2:1,2", "", "", 5, "1:0,1,2 2:1,2" },
		{ "rest on the emptiest", SLICING_STATIC, "0:0,1,2,3 1:0,1,2,3 2:0", "", "", 6, "0:0,1,2,3 1:0,1" },
		{ "must decides the card", SLICING_STATIC, "0:0,1,2,3 1:2,3", "0:3", "", 2, "0:2,3" },
		{ "must on two cards", SLICING_STATIC, "0:0,1,2,3 1:2,3", "0:3 1:3", "", 2, "0:3 1:3" },
		{ "must and more", SLICING_STATIC, "0:0,1,2,3 1:2,3 2:0,1,2", "1:3", "", 4, "1:2,3 2:0,1" },
		{ "held does not make a card fit", SLICING_STATIC, "0:0,1 1:0,1,2,3", "", "0:1", 2, "1:0,1" },
		{ "held only as far as needed", SLICING_DYNAMIC, "0:0,1 1:0,1 2:3", "", "0:0,1 1:1", 3, "1:0,1 2:3" },
	};
	hm_auto(inventory) *inv = make_inventory(4, 1000);

	(void)state;
	run_rows(inv, 4, rows, HM_COUNT(rows));
}

static void test_closest(void **state)
{
	static const struct row rows[] = {
		{ "NVLink pair", SLICING_STATIC, "0:0,1 1:0,1 2:0,1 3:0,1", "", "", 4, "1:0,1 3:0,1" },
		{ "NVLink before least left over", SLICING_STATIC, "0:0 1:0,1 2:0 3:0,1", "", "", 3, "1:0,1 3:0" },
		{ "NUMA where no NVLink", SLICING_DYNAMIC, "0:0,1 1:0,1 2:0,1", "", "", 4, "0:0,1 2:0,1" },
		{ "must, then close", SLICING_STATIC, "0:0,1 1:0,1 2:0,1 3:0,1", "3:0", "", 3, "1:0,1 3:0" },
	};
	hm_auto(inventory) *inv = make_inventory(4, 1000);

	(void)state;
	for (size_t i = 0; i < 4; i++)
		inv->cards[i].numa_node = (int)(i % 2); /* {0, 2} and {1, 3} */
	set_link(inv, 1, 3, LINK_NVLINK, 4);
	set_link(inv, 0, 1, LINK_SYSTEM, 0);
	set_link(inv, 0, 2, LINK_NODE, 0);
	set_link(inv, 2, 3, LINK_NVLINK, 2);
	set_link(inv, 1, 2, LINK_SYSTEM, 0);
	set_link(inv, 0, 3, LINK_SYSTEM, 0);
	run_rows(inv, 2, rows, HM_COUNT(rows));
}

/* The known case: a card of 8, 5 taken (0-4), 4 asked for: no card has room, so the kubelet does not ask at all. Then 2
 * of the 5 come back: room for 4, but nowhere 4 in a row. */
static void test_fragments(void **state)
{
	static const struct row rows[] = {
		{ "3 of 8 left, 4 asked for", SLICING_STATIC, "0:5,6,7", "", "", 4, NULL },
		{ "3 of 8 left, 4 asked for", SLICING_DYNAMIC, "0:5,6,7", "", "", 4, NULL },
		{ "another card is empty", SLICING_STATIC, "0:5,6,7 1:0,1,2,3,4,5,6,7", "", "", 4, "1:0,1,2,3" },
		{ "another card is empty", SLICING_DYNAMIC, "0:5,6,7 1:0,1,2,3,4,5,6,7", "", "", 4, "1:0,1,2,3" },
		{ "1 and 3 came back", SLICING_STATIC, "0:1,3,5,6,7", "", "", 4, "0:1,5,6,7" },
		{ "1 and 3 came back", SLICING_DYNAMIC, "0:1,3,5,6,7", "", "", 4, "0:1,3,5,6" },
		{ "0 and 1 came back", SLICING_STATIC, "0:0,1,5,6,7", "", "", 4, "0:0,5,6,7" },
		{ "3 and 4 came back: a row again", SLICING_STATIC, "0:3,4,5,6,7", "", "", 4, "0:3,4,5,6" },
		{ "another card has a row", SLICING_STATIC, "0:1,3,5,6,7 1:0,1,2,3,4,5,6,7", "", "", 4, "1:0,1,2,3" },
		{ "best fit by share", SLICING_DYNAMIC, "0:1,3,5,6,7 1:0,1,2,3,4,5,6,7", "", "", 4, "0:1,3,5,6" },
	};
	hm_auto(inventory) *inv = make_inventory(2, 40960);

	(void)state;
	run_rows(inv, 8, rows, HM_COUNT(rows));
}

/* Whatever four of the free slots the kubelet picks in that case, the grant is four slots' worth. */
static void test_fragments_are_granted(void **state)
{
	static const unsigned free_slots[][5] = { { 1, 3, 5, 6, 7 }, { 0, 1, 5, 6, 7 }, { 3, 4, 5, 6, 7 } };
	hm_auto(inventory) *inv = make_inventory(2, 40960);

	(void)state;
	for (unsigned mode = 0; mode < 2 * HM_COUNT(free_slots); mode++) {
		hm_auto(slots) *s = cut(inv, 8, mode % 2 == 0 ? SLICING_STATIC : SLICING_DYNAMIC);
		unsigned picks = 0, broken = 0;

		/* 5 free ones on card 0 (bits 0-4), 8 on card 1 (bits 5-12) */
		for (unsigned set = 0; set < 1u << 13; set++) {
			struct slot_ref refs[4];
			struct grant g;
			struct hm_err e;
			unsigned on[2] = { 0, 0 };
			size_t n = 0;

			if (__builtin_popcount(set) != 4)
				continue;
			for (unsigned bit = 0; bit < 13; bit++) {
				if ((set >> bit & 1) == 0)
					continue;
				refs[n++] = bit < 5 ? (struct slot_ref) { 0, free_slots[mode / 2][bit] }
						    : (struct slot_ref) { 1, bit - 5 };
				on[bit >= 5]++;
			}
			assert_int_equal(slots_grant(s, refs, 4, &g, &e), 0);
			assert_int_equal(g.count, (on[0] > 0) + (on[1] > 0));
			for (size_t i = 0; i < g.count; i++) {
				unsigned card = g.cards[i].on == slots_card(s, 1);

				assert_int_equal(g.cards[i].count, on[card]);
				assert_int_equal(g.cards[i].memory_bytes, on[card] * (5120ull << 20));
				assert_int_equal(g.cards[i].cores, on[card] * 12);
				broken += g.cards[i].broken_run;
			}
			picks++;
		}
		assert_int_equal(picks, 715); /* 13 over 4 */
		assert_true(broken > 0);
	}
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* 16 cards of 1,000 slots, all offered as text: parsed and answered within 2 ms, the best of 20. */
static void test_16000(void **state)
{
	enum { ALL = 16000 };
	hm_auto(inventory) *inv = make_inventory(16, 40960);
	hm_auto(slots) *s = cut(inv, 1000, SLICING_STATIC);
	char(*ids)[HM_DEVICE_ID_BYTES] = calloc(ALL, sizeof *ids);
	struct slot_ref *refs = calloc(ALL, sizeof *refs), *all = calloc(ALL, sizeof *all), out[8];
	struct slots_request req = { refs, NULL, ALL, 0, 8, NULL, NULL };
	uint64_t best = UINT64_MAX;
	struct hm_err e;

	(void)state;
	assert_true(ids != NULL && refs != NULL && all != NULL);
	for (unsigned i = 0; i < ALL; i++)
		slot_id_format(s, (struct slot_ref) { i % 16, i / 16 }, ids[i]);
	for (unsigned round = 0; round < 20; round++) {
		uint64_t start = now_us(), took;

		for (unsigned i = 0; i < ALL; i++)
			assert_int_equal(slot_id_parse(s, ids[i], &refs[i], &e), 0);
		assert_int_equal(slots_prefer(s, &req, out, &e), 0);
		took = now_us() - start;
		best = took < best ? took : best;
	}
	assert_string_equal(text_of(out, 8), "0:0,1,2,3,4,5,6,7");
	print_message("8 of 16,000: %llu us\n", (unsigned long long)best);
	req.size = ALL;
	assert_int_equal(slots_prefer(s, &req, all, &e), 0);
	assert_int_equal(all[ALL - 1].card, 15);
	assert_int_equal(all[ALL - 1].number, 999);
	req.size = 7500; /* 8 of 16 cards: the most sets to look at */
	assert_int_equal(slots_prefer(s, &req, all, &e), 0);
	free(ids);
	free(refs);
	free(all);
#if defined(__OPTIMIZE__) && !defined(HM_SANITIZED)
	assert_true(best < 2000);
#endif
}

static int sweep_prefer(void *arg)
{
	struct slot_ref available[] = { { 0, 0 }, { 1, 1 } }, out[2];
	struct slots_request req = { available, NULL, 2, 0, 2, NULL, NULL };
	struct hm_err e;

	return slots_prefer(arg, &req, out, &e);
}

static void test_sweep(void **state)
{
	hm_auto(inventory) *inv = make_inventory(2, 1000);
	hm_auto(slots) *s = cut(inv, 2, SLICING_STATIC);

	(void)state;
	sweep_check("slots_prefer", sweep_prefer, s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_card),
		cmocka_unit_test(test_several_cards),
		cmocka_unit_test(test_closest),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_fragments_are_granted),

		cmocka_unit_test(test_16000),
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
