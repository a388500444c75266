#include "sim/lib/sim_visible.h"

#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "harness/unit.h"

static struct sim_node *node;

static int make_node(void **state HM_UNUSED)
{
	static const char *const uuids[] = { "GPU-aaaa0000-1", "GPU-aaaa1111-1", "GPU-bbbb0000-1" };

	node = calloc(1, sizeof *node);
	assert_non_null(node);
	node->card_count = HM_COUNT(uuids);
	for (size_t i = 0; i < HM_COUNT(uuids); i++)
		memcpy(node->cards[i].info.uuid, uuids[i], strlen(uuids[i]));
	return 0;
}

static int free_node(void **state HM_UNUSED)
{
	free(node);
	return 0;
}

static const struct {
	const char *text;
	const char *cards; /* their numbers, as digits */
} cases[] = {
	{ NULL, "012" },
	{ "all", "012" },
	{ "", "" },
	{ "none", "" },
	{ "void", "" },
	{ "1", "1" },
	{ "2,0", "02" }, /* the node's order */
	{ "0,0", "0" },
	{ "7", "" },
	{ "7,1", "1" },
	{ "-1", "" },
	{ "GPU-bbbb0000-1", "2" },
	{ "GPU-bbbb0000-1,GPU-aaaa0000-1", "02" },
	{ "GPU-bbbb", "" }, /* whole UUIDs only */
	{ "GPU-bbbb0000-12", "" },
	{ "gpu-bbbb0000-1", "" },
	{ "1,,2", "12" },
	{ ",", "" },
	{ " 1", "" },
};

static void lists(void **state HM_UNUSED)
{
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		unsigned cards[SIM_MAX_CARDS], n = sim_visible_cards_of(node, cases[i].text, cards);
		char text[SIM_MAX_CARDS + 1] = "";

		for (unsigned k = 0; k < n; k++)
			text[k] = (char)('0' + cards[k]);
		print_message("%s\n", cases[i].text != NULL ? cases[i].text : "(unset)");
		assert_string_equal(text, cases[i].cards);
	}
}

static void prefixes(void **state HM_UNUSED)
{
	static const unsigned cards[] = { 2, 0, 1 };

	assert_int_equal(sim_visible_find(node, cards, 3, "GPU-b", 5, true), 0);
	assert_int_equal(sim_visible_find(node, cards, 3, "GPU-aaaa1", 9, true), 2);
	assert_int_equal(sim_visible_find(node, cards, 3, "GPU-aaaa", 8, true), -1); /* two of them */
	assert_int_equal(sim_visible_find(node, cards, 3, "GPU-c", 5, true), -1);
	assert_int_equal(sim_visible_find(node, cards, 3, "GPU", 3, true), -1);
	assert_int_equal(sim_visible_find(node, cards, 3, "2", 1, true), 2); /* a number counts in the list */
	assert_int_equal(sim_visible_find(node, cards, 3, "3", 1, true), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(prefixes),
	};
	return cmocka_run_group_tests(tests, make_node, free_node);
}
