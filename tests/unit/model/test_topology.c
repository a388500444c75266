#include "model/topology.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "core/macros.h"
#include "unit/model/make_inventory.h"

static void test_pair(void **state)
{
	static const struct {
		enum link_kind kind;
		unsigned nvlinks;
		int numa[2];
		struct closeness want;
	} rows[] = {
		{ LINK_NONE, 0, { -1, -1 }, { 0, 0, 0 } },
		{ LINK_NVLINK, 12, { 0, 1 }, { 12, 0, 7 } },
		{ LINK_NVLINK, 4, { 1, 1 }, { 4, 1, 7 } },
		{ LINK_NVLINK, 4, { -1, -1 }, { 4, 0, 7 } },
		{ LINK_SYSTEM, 0, { 0, 1 }, { 0, 0, 1 } },
		{ LINK_SYSTEM, 0, { -1, -1 }, { 0, 0, 1 } },
		{ LINK_NODE, 0, { 0, 0 }, { 0, 1, 2 } },
		{ LINK_NODE, 0, { -1, -1 }, { 0, 1, 2 } }, /* the path says so where the system does not */
		{ LINK_HOSTBRIDGE, 0, { 0, -1 }, { 0, 0, 3 } },
		{ LINK_BOARD, 0, { 2, 2 }, { 0, 1, 6 } },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(inventory) *inv = make_inventory(2, 1000);
		struct closeness c;

		inv->cards[0].numa_node = rows[i].numa[0];
		inv->cards[1].numa_node = rows[i].numa[1];
		set_link(inv, 0, 1, rows[i].kind, rows[i].nvlinks);
		c = topology_pair(inv, 0, 1);
		assert_int_equal(c.nvlinks, rows[i].want.nvlinks);
		assert_int_equal(c.numa_pairs, rows[i].want.numa_pairs);
		assert_int_equal(c.path, rows[i].want.path);
	}
}

static void test_compare(void **state)
{
	static const struct closeness from_far_to_close[] = {
		{ 0, 0, 1 }, { 0, 0, 9 }, { 0, 1, 0 }, { 1, 0, 0 }, { 1, 0, 1 }, { 1, 2, 0 }, { 2, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(from_far_to_close); i++) {
		for (size_t j = 0; j < HM_COUNT(from_far_to_close); j++) {
			int want = (i > j) - (i < j);

			assert_int_equal(closeness_compare(from_far_to_close[i], from_far_to_close[j]), want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pair),
		cmocka_unit_test(test_compare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
