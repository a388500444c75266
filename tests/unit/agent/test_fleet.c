#include "agent/cards/fleet.h"

#include <stdlib.h>
#include <string.h>

#include "agent/cards/card_health.h"
#include "harness/sweep.h"
#include "harness/unit.h"
#include "unit/model/make_inventory.h"

static struct fleet *next(const struct fleet *before, const struct inventory *scanned)
{
	struct fleet *f = NULL;
	struct hm_err e;

	if (fleet_new(before, scanned, &f, &e) < 0)
		fail_msg("%s", e.msg);
	return f;
}

/* "0+ 1-": the card's last digit and its health, in the fleet's order. */
static const char *cards(const struct fleet *f)
{
	static char text[256];
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < fleet_inventory(f)->count; i++) {
		const struct card *c = &fleet_inventory(f)->cards[i];

		at += (size_t)snprintf(text + at, sizeof text - at, "%s%c%c", i > 0 ? " " : "",
				       c->uuid[strlen(c->uuid) - 1], fleet_is_healthy(f, c) ? '+' : '-');
	}
	return text;
}

static void drop(struct inventory *inv, size_t at)
{
	for (size_t i = at; i + 1 < inv->count; i++)
		inv->cards[i] = inv->cards[i + 1];
	inv->count--;
}

static void a_lost_card_stays_unhealthy_until_it_is_back(void **state)
{
	hm_auto(inventory) *all = make_inventory(3, 1000), *two = make_inventory(3, 1000);
	hm_auto(fleet) *first = next(NULL, all);

	(void)state;
	set_link(all, 0, 2, LINK_NVLINK, 4);
	drop(two, 1);
	assert_string_equal(cards(first), "0+ 1+ 2+");
	hm_auto(fleet) *lost = next(first, two);
	assert_string_equal(cards(lost), "0+ 2+ 1-");
	assert_false(fleet_equal(first, lost));
	hm_auto(fleet) *still = next(lost, two);
	assert_true(fleet_equal(lost, still));
	hm_auto(fleet) *back = next(still, all);
	assert_string_equal(cards(back), "0+ 1+ 2+");
	assert_int_equal(inventory_link(fleet_inventory(back), 0, 2).nvlinks, 4);
	hm_auto(fleet) *none = next(back, NULL);
	assert_string_equal(cards(none), "0- 1- 2-");
}

static void on_turned(void *arg, const struct card_state *s)
{
	(void)arg, (void)s;
}

static void a_sick_card_is_unhealthy_though_it_is_seen(void **state)
{
	const struct gpu_event xid = { .kind = GPU_EVENT_XID, .xid = 79, .count = 1 };
	const struct card_listener listener = { on_turned, on_turned, NULL };
	hm_auto(inventory) *all = make_inventory(3, 1000), *two = make_inventory(3, 1000);
	hm_auto(card_health) *health = NULL;
	hm_auto(fleet) *first = next(NULL, all);
	hm_auto(fleet) *sick = NULL;
	hm_auto(fleet) *well = NULL;
	struct health_policy policy;
	struct hm_err e;

	(void)state;
	health_policy_init(&policy, NULL, NULL, NULL, NULL);
	assert_int_equal(card_health_new(&policy, 1, &listener, &health, &e), 0);
	card_health_scanned(health, all, (struct card_now) { 1, 1 });
	card_health_note(health, all->cards[1].uuid, &xid, 1, NULL, true, (struct card_now) { 1, 1 });
	assert_int_equal(fleet_judge(first, health, &sick, &e), 0);
	assert_string_equal(cards(sick), "0+ 1- 2+");
	assert_string_equal(cards(first), "0+ 1+ 2+");
	assert_false(fleet_equal(first, sick));
	/* What is seen is not forgotten, nor what is not. */
	drop(two, 2);
	hm_auto(fleet) *lost = next(sick, two);
	assert_int_equal(fleet_judge(lost, NULL, &well, &e), 0);
	assert_string_equal(cards(well), "0+ 1+ 2-");
}

static void no_driver_at_first_is_no_card(void **state)
{
	hm_auto(fleet) *f = next(NULL, NULL);

	(void)state;
	assert_int_equal(fleet_inventory(f)->count, 0);
}

static void never_more_cards_than_a_node_may_have(void **state)
{
	hm_auto(inventory) *full = make_inventory(HM_MAX_CARDS, 1000), *other = make_inventory(HM_MAX_CARDS, 1000);

	(void)state;
	for (size_t i = 0; i < other->count; i++)
		other->cards[i].uuid[4] = 'f';
	hm_auto(fleet) *first = next(NULL, full);
	hm_auto(fleet) *second = next(first, other);
	assert_int_equal(fleet_inventory(second)->count, HM_MAX_CARDS);
	assert_true(fleet_is_healthy(second, &fleet_inventory(second)->cards[HM_MAX_CARDS - 1]));
}

static int scenario(void *arg)
{
	hm_auto(fleet) *f = NULL;
	hm_auto(fleet) *g = NULL;
	hm_auto(fleet) *h = NULL;
	struct hm_err e;

	return fleet_new(NULL, arg, &f, &e) < 0 || fleet_new(f, NULL, &g, &e) < 0 || fleet_judge(g, NULL, &h, &e) < 0
		       ? -1
		       : 0;
}

static void allocation_failures(void **state)
{
	hm_auto(inventory) *all = make_inventory(2, 1000);

	(void)state;
	sweep_check("fleet", scenario, all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lost_card_stays_unhealthy_until_it_is_back),
		cmocka_unit_test(a_sick_card_is_unhealthy_though_it_is_seen),
		cmocka_unit_test(no_driver_at_first_is_no_card),
		cmocka_unit_test(never_more_cards_than_a_node_may_have),
		cmocka_unit_test(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
