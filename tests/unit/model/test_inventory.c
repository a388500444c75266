#include "model/inventory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"
#include "unit/model/make_inventory.h"

static struct inventory *two_cards(void)
{
	struct inventory *inv = make_inventory(2, 1000);

	set_link(inv, 0, 1, LINK_NVLINK, 2);
	snprintf(inv->driver_version, sizeof inv->driver_version, "550.54.15");
	inv->cuda_version = 12040;
	inv->skipped = calloc(1, sizeof *inv->skipped);
	inv->skipped[0] = strdup("GPU 2: GPU is lost");
	inv->skipped_count = 1;
	return inv;
}

static void test_find(void **state)
{
	hm_auto(inventory) *inv = two_cards();

	(void)state;
	assert_ptr_equal(inventory_find(inv, "GPU-00000000-0000-0000-0000-000000000001"), &inv->cards[1]);
	assert_null(inventory_find(inv, "GPU-00000000-0000-0000-0000-00000000000"));
	assert_null(inventory_find(inv, ""));
}

static void test_link(void **state)
{
	hm_auto(inventory) *inv = two_cards();
	hm_auto(inventory) *empty = inventory_new();

	(void)state;
	assert_int_equal(inventory_link(inv, 1, 0).kind, LINK_NVLINK);
	assert_int_equal(inventory_link(inv, 0, 1).nvlinks, 2);
	assert_int_equal(inventory_link(inv, 0, 2).kind, LINK_NONE);
	assert_int_equal(inventory_link(empty, 0, 0).kind, LINK_NONE);
}

/* Each member that a scan fills makes a difference. */
static void test_equal(void **state)
{
	hm_auto(inventory) *a = two_cards();

	(void)state;
	for (unsigned change = 0; change <= 14; change++) {
		hm_auto(inventory) *b = two_cards();
		struct card *c = &b->cards[1];

		switch (change) {
		case 0: assert_true(inventory_equal(a, b)); continue;
		case 1: c->uuid[8] = 'x'; break;
		case 2: c->model[0] = 'x'; break;
		case 3: c->pci_bus_id[0] = 'x'; break;
		case 4: c->index++; break;
		case 5: c->minor++; break;
		case 6: c->memory_bytes--; break;
		case 7: c->reserved_bytes++; break;
		case 8: c->numa_node = 0; break;
		case 9: c->mig_enabled = true; break;
		case 10: b->links[1].nvlinks = 1; break;
		case 11: b->driver_version[0] = 'x'; break;
		case 12: b->cuda_version++; break;
		case 13: b->skipped[0][4] = '1'; break;
		default: b->count = 1; break;
		}
		if (inventory_equal(a, b) || inventory_equal(b, a))
			fail_msg("change %u makes no difference", change);
	}
}

static void test_free_null(void **state)
{
	(void)state;
	inventory_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_link),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_free_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
