#include "agent/cards/xid.h"

#include <string.h>

#include "harness/unit.h"

/* By NVIDIA's catalogue (analyzing-xid-catalog.html), and what HAMi's plugin ignores: 13, 31, 43, 45, 68, 109. */
static void classes(void **state)
{
	static const struct {
		unsigned xid;
		enum xid_class class;
	} rows[] = {
		{ 13, XID_APPLICATION }, { 31, XID_APPLICATION },  { 43, XID_APPLICATION },  { 45, XID_APPLICATION },
		{ 68, XID_APPLICATION }, { 94, XID_APPLICATION },  { 109, XID_APPLICATION }, { 8, XID_APPLICATION },
		{ 69, XID_APPLICATION }, { 105, XID_APPLICATION }, { 135, XID_APPLICATION }, { 14, XID_NOTE },
		{ 63, XID_NOTE },        { 154, XID_NOTE },        { 172, XID_NOTE },        { 74, XID_CARD },
		{ 92, XID_CARD },        { 145, XID_CARD },        { 48, XID_RESET },        { 62, XID_RESET },
		{ 64, XID_RESET },       { 79, XID_RESET },        { 95, XID_RESET },        { 119, XID_RESET },
		{ 120, XID_RESET },      { 140, XID_RESET },       { 151, XID_RESET },       { 0, XID_CARD },
		{ 1, XID_CARD },         { 61, XID_CARD },         { 999, XID_CARD },        { 4000000000, XID_CARD },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		if (xid_class(rows[i].xid) != rows[i].class)
			fail_msg("Xid %u is %d", rows[i].xid, (int)xid_class(rows[i].xid));
	assert_string_equal(xid_action(79), "RESTART_BM");
	assert_string_equal(xid_action(31), "RESTART_APP");
	assert_string_equal(xid_action(3), "none");
	assert_non_null(strstr(xid_words(79), "bus"));
	assert_non_null(xid_words(3));
}

/* The table is searched by halves. */
static void the_table_is_in_order_and_whole(void **state)
{
	static const unsigned numbers[] = {
#define X(number, class, action, words) number,
#include "agent/cards/xids.def"
#undef X
	};

	(void)state;
	for (size_t i = 1; i < HM_COUNT(numbers); i++)
		assert_true(numbers[i - 1] < numbers[i]);
	for (size_t i = 0; i < HM_COUNT(numbers); i++)
		assert_string_not_equal(xid_words(numbers[i]), xid_words(3));
}

struct verdict {
	unsigned xid;
	enum xid_class class;
};

static void policies(void **state)
{
	static const struct {
		const char *checks, *disable, *enable;
		bool any, ecc, lost;
		struct verdict verdicts[4];
		const char *unread;
	} rows[] = {
		{ NULL, NULL, NULL, true, true, true, { { 79, XID_RESET }, { 31, XID_APPLICATION } }, "" },
		{ "all", "", "", true, true, true, { { 79, XID_RESET }, { 31, XID_APPLICATION } }, "" },
		/* The reference's vectors (E 9). */
		{ "all", "79, XIDS", "", false, false, false, { { 79, XID_NOTE }, { 48, XID_NOTE } }, "" },
		{ "all", "", "31", true, true, true, { { 31, XID_CARD }, { 13, XID_APPLICATION } }, "" },
		{ "all", "79", "", true, true, true, { { 79, XID_NOTE }, { 48, XID_RESET } }, "" },
		{ "all", "0", "", false, false, false, { { 79, XID_NOTE } }, "" },
		{ "all", "79", "79", true, true, true, { { 79, XID_RESET } }, "" },
		{ "all",
		  "aLL",
		  "xids",
		  true,
		  true,
		  true,
		  { { 79, XID_RESET }, { 13, XID_CARD }, { 14, XID_CARD } },
		  "" },
		/* All but one are disabled: HAMi's plugin never looks at that one. */
		{ "all", "all", "79", true, false, false, { { 79, XID_RESET }, { 48, XID_NOTE } }, "" },
		{ "all",
		  " 13 ,, junk,-1,99999999999",
		  "4711",
		  true,
		  true,
		  true,
		  { { 4711, XID_CARD } },
		  "junk,-1,99999999999" },
		{ "none", "", "", false, false, false, { { 79, XID_NOTE } }, "" },
		{ "none", "", "79", true, false, false, { { 79, XID_RESET }, { 48, XID_NOTE } }, "" },
		{ "xid", "", "", true, false, false, { { 79, XID_RESET } }, "" },
		{ "lost, ECC", "", "", true, true, true, { { 79, XID_NOTE } }, "" },
		{ "lost,power", "", "", true, false, true, { { 79, XID_NOTE } }, "power" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct health_policy p;
		hm_auto_str unread = { 0 };

		health_policy_init(&p, rows[i].checks, rows[i].disable, rows[i].enable, &unread);
		if (p.any != rows[i].any || p.ecc != rows[i].ecc || p.lost != rows[i].lost ||
		    strcmp(str_text(&unread), rows[i].unread) != 0)
			fail_msg("row %zu: any %d ecc %d lost %d unread \"%s\"", i, p.any, p.ecc, p.lost,
				 str_text(&unread));
		for (const struct verdict *v = rows[i].verdicts; v->xid != 0; v++)
			if (health_policy_class(&p, v->xid) != v->class)
				fail_msg("row %zu: Xid %u is %d", i, v->xid, (int)health_policy_class(&p, v->xid));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes),
		cmocka_unit_test(the_table_is_in_order_and_whole),
		cmocka_unit_test(policies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
