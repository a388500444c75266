#include "agent/serve/offer_mig.h"

#include <stdio.h>
#include <string.h>

#include "agent/serve/offer_single.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/model/make_inventory.h"

static struct option_spec table[AGENT_OPTION_COUNT];
static struct agent_options options;
static struct claims *claims;
static struct inventory *inventory;
static struct fleet *fleet;

static void add_device(struct card *c, const char *uuid, const char *profile, unsigned gi, bool whole)
{
	struct mig_device *d = &c->mig.devices[c->mig.device_count++];

	*d = (struct mig_device) { .gi = gi, .at = { gi, 1 }, .memory_mib = 4864, .whole = whole };
	snprintf(d->uuid, sizeof d->uuid, "%s", uuid);
	snprintf(d->profile, sizeof d->profile, "%s", profile);
}

static int setup(void **state)
{
	struct hm_err e;

	agent_options_init(&options, table);
	inventory = make_inventory(2, 1000);
	for (size_t i = 0; i < 2; i++)
		inventory->cards[i].mig_enabled = inventory->cards[i].mig.enabled = true;
	add_device(&inventory->cards[0], "MIG-a", "1g.5gb", 1, true);
	add_device(&inventory->cards[1], "MIG-b", "1g.5gb", 2, true);
	return temp_setup(state) < 0 || claims_open(temp_path("claims"), &claims, &e) < 0;
}

static int teardown(void **state)
{
	fleet_free(fleet);
	fleet = NULL;
	inventory_free(inventory);
	claims_free(claims);
	return temp_teardown(state);
}

static struct offer *make(const char *profile)
{
	const struct offer_mig_config config = { &options, claims, "nvidia.com/x", profile, NULL, NULL };
	struct offer *o;
	struct hm_err e;

	assert_int_equal(offer_mig_new(&config, &o, &e), 0);
	return o;
}

static int take(struct offer *o, struct hm_err *e)
{
	fleet_free(fleet);
	fleet = NULL;
	assert_int_equal(fleet_new(NULL, inventory, &fleet, e), 0);
	return o->class->take(o, fleet, e);
}

static void only_whole_devices_of_the_profile_are_listed(void **state)
{
	hm_auto(offer) *o = make("1g.5gb");
	struct fleet_devices list;
	struct hm_err e;

	(void)state;
	add_device(&inventory->cards[1], "MIG-c", "1g.5gb+me", 3, true);
	add_device(&inventory->cards[1], "MIG-d", "1g.5gb", 4, false);
	add_device(&inventory->cards[1], "MIG-e", "", 5, true);
	assert_int_equal(o->class->list(o, &list, &e), -HM_EAGAIN);
	assert_int_equal(take(o, &e), 0);
	assert_int_equal(o->class->list(o, &list, &e), 0);
	assert_int_equal(list.count, 2);
	assert_string_equal(list.items[0].id, "MIG-a");
	assert_string_equal(list.items[1].id, "MIG-b");
	assert_true(list.items[1].healthy);
	fleet_devices_fini(&list);
}

static void ids_are_claims_of_their_cards(void **state)
{
	hm_auto(offer) *o = make("1g.5gb");
	const char *ids[] = { "MIG-b", "MIG-a" }, *none[] = { "MIG-z" };
	const struct prestart_target target = { .number = 9 };
	struct claim c, again;
	struct hm_err e;

	(void)state;
	assert_int_equal(take(o, &e), 0);
	assert_int_equal(o->class->claim(o, ids, 2, 9, &c, &e), 0);
	assert_int_equal(c.card_count, 2);
	assert_string_equal(c.cards[0].mig, "MIG-b");
	assert_string_equal(c.cards[0].uuid, inventory->cards[1].uuid);
	assert_int_equal(c.cards[0].gi, 2);
	assert_int_equal(c.cards[0].memory_bytes, 4864ULL << 20);
	assert_true(claim_is_mig(&c));
	assert_int_equal(o->class->claim(o, none, 1, 10, &again, &e), -HM_ENOTFOUND);
	assert_int_equal(o->class->claim(o, none, 0, 10, &again, &e), -HM_EINVAL);
	/* Made anew it has other numbers, and a container that starts again gets those; gone, it waits. */
	snprintf(c.pod_name, sizeof c.pod_name, "p");
	inventory->cards[1].mig.devices[0].gi = 8;
	assert_int_equal(take(o, &e), 0);
	assert_int_equal(o->class->start(o, &target, ids, 2, &c, &again, &e), 0);
	assert_int_equal(again.cards[0].gi, 8);
	assert_string_equal(again.pod_name, "p");
	claim_fini(&again);
	inventory->cards[1].mig.device_count = 0;
	assert_int_equal(take(o, &e), 0);
	assert_int_equal(o->class->start(o, &target, ids, 2, &c, &again, &e), -HM_EAGAIN);
	claim_fini(&c);
}

static void what_is_held_is_preferred_last(void **state)
{
	hm_auto(offer) *o = make("");
	const char *available[] = { "MIG-a", "MIG-b" }, *out[4], *held[] = { "MIG-a" };
	struct dp_preferred_request req = { .available = available, .available_count = 2, .size = 1 };
	struct claim c;
	struct hm_err e;
	size_t count;

	(void)state;
	assert_int_equal(take(o, &e), 0);
	assert_int_equal(o->class->claim(o, held, 1, 1, &c, &e), 0);
	assert_int_equal(claims_put(claims, &c, &e), 0);
	assert_int_equal(o->class->prefer(o, &req, out, &count, &e), 0);
	assert_int_equal(count, 1);
	assert_string_equal(out[0], "MIG-b");
	req.must = held;
	req.must_count = 1;
	req.size = 2;
	assert_int_equal(o->class->prefer(o, &req, out, &count, &e), 0);
	assert_int_equal(count, 2);
	assert_string_equal(out[0], "MIG-a");
	assert_string_equal(out[1], "MIG-b");
}

static void uniform(int want, const char *text)
{
	struct hm_err e;
	int r = offer_mig_uniform(inventory, &e);

	if (r != want || (r < 0 && strstr(e.msg, text) == NULL))
		fail_msg("%d: %s", r, r < 0 ? e.msg : "");
}

static void single_is_all_or_nothing(void **state)
{
	hm_auto(offer) *o = make("");
	struct hm_err e;

	(void)state;
	uniform(1, "");
	add_device(&inventory->cards[0], "MIG-c", "2g.10gb", 3, true);
	uniform(-HM_EINVAL, "MIG devices of profile 1g.5gb and of 2g.10gb");
	assert_int_equal(take(o, &e), -HM_EINVAL);
	inventory->cards[0].mig.devices[1].whole = false;
	uniform(-HM_EINVAL, "MIG-c of GPU 0 has not all");
	inventory->cards[0].mig.device_count = 0;
	uniform(-HM_EINVAL, "GPU 0");
	inventory->cards[0].mig_enabled = false;
	uniform(-HM_EINVAL, "is not in MIG mode, others are");
	inventory->cards[1].mig_enabled = false;
	uniform(0, "");
}

/* What stands for the cards as a whole. */
static unsigned started_on_whole;

static int whole_take(struct offer *o, const struct fleet *f, struct hm_err *e)
{
	(void)o, (void)f, (void)e;
	return 0;
}

static int whole_list(const struct offer *o, struct fleet_devices *out, struct hm_err *e)
{
	(void)o;
	if (fleet_devices_init(1, out, e) < 0)
		return -e->code;
	snprintf(out->ids[0], sizeof *out->ids, "whole");
	out->items[out->count++] = (struct dp_device) { out->ids[0], true, -1 };
	return 0;
}

static void whole_started(struct offer *o, const struct claim *c)
{
	(void)o, (void)c;
	started_on_whole++;
}

static void whole_free(struct offer *o)
{
	(void)o;
}

static void single_changes_with_the_cards(void **state)
{
	static const struct offer_class class = {
		.name = "whole", .take = whole_take, .list = whole_list, .started = whole_started, .free = whole_free
	};
	static struct offer whole = { &class, "nvidia.com/gpu" };
	struct fleet_devices list;
	struct offer *single = NULL;
	struct claim c = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(offer_single_new(&whole, make(""), &single, &e), 0);
	assert_string_equal(single->resource, "nvidia.com/gpu");
	assert_int_equal(take(single, &e), 0);
	assert_true(single->class->ids_are_held);
	assert_int_equal(single->class->list(single, &list, &e), 0);
	assert_int_equal(list.count, 2);
	fleet_devices_fini(&list);
	single->class->started(single, &c);
	assert_int_equal(started_on_whole, 1);
	for (size_t i = 0; i < 2; i++)
		inventory->cards[i].mig_enabled = false;
	assert_int_equal(take(single, &e), 0);
	assert_false(single->class->ids_are_held);
	assert_int_equal(single->class->list(single, &list, &e), 0);
	assert_string_equal(list.items[0].id, "whole");
	fleet_devices_fini(&list);
	inventory->cards[0].mig_enabled = true;
	assert_int_equal(take(single, &e), -HM_EINVAL);
	assert_int_equal(single->class->list(single, &list, &e), 0); /* the former stay */
	assert_string_equal(list.items[0].id, "whole");
	fleet_devices_fini(&list);
	offer_free(single);
}

/* ---- every member of a class, by strategy single */

enum { TAKE, LIST, PREFER, CALL, CLAIM, ANSWERED, START, STARTED, FREE, CALLS };

struct spy {
	struct offer offer;
	unsigned calls[CALLS];
};

static int spied(const struct offer *o, int which)
{
	HM_CONTAINER(o, struct spy, offer)->calls[which]++;
	return 40 + which;
}

static int spy_take(struct offer *o, const struct fleet *f, struct hm_err *e)
{
	(void)f, (void)e;
	spied(o, TAKE);
	return 0;
}

static int spy_list(const struct offer *o, struct fleet_devices *out, struct hm_err *e)
{
	(void)out, (void)e;
	return spied(o, LIST);
}

static int spy_prefer(struct offer *o, const struct dp_preferred_request *req, const char **out, size_t *count,
		      struct hm_err *e)
{
	(void)req, (void)out, (void)count, (void)e;
	return spied(o, PREFER);
}

static void spy_call(struct offer *o)
{
	spied(o, CALL);
}

static int spy_claim(struct offer *o, const char *const *ids, size_t count, uint64_t number, struct claim *out,
		     struct hm_err *e)
{
	(void)ids, (void)count, (void)number, (void)out, (void)e;
	return spied(o, CLAIM);
}

static void spy_answered(struct offer *o, const struct claim *c, bool ok)
{
	(void)c, (void)ok;
	spied(o, ANSWERED);
}

static int spy_start(struct offer *o, const struct prestart_target *target, const char *const *ids, size_t count,
		     const struct claim *old, struct claim *out, struct hm_err *e)
{
	(void)target, (void)ids, (void)count, (void)old, (void)out, (void)e;
	return spied(o, START);
}

static void spy_started(struct offer *o, const struct claim *c)
{
	(void)c;
	spied(o, STARTED);
}

static void spy_free(struct offer *o)
{
	spied(o, FREE);
}

/* Without names of members: one that is added does not compile here until it is looked at below. */
_Static_assert(offsetof(struct offer_class, free) + sizeof(void *) == sizeof(struct offer_class),
	       "a member behind free");
static const struct offer_class spies[2] = {
	{ "whole", false, true, 7, spy_take, spy_list, spy_prefer, spy_call, spy_claim, spy_answered, spy_start,
	  spy_started, spy_free },
	{ "mig", true, false, 9, spy_take, spy_list, spy_prefer, spy_call, spy_claim, spy_answered, spy_start,
	  spy_started, spy_free },
};

static void use_all(struct offer *single, const struct offer_class *as)
{
	const struct offer_class *c = single->class;

	assert_string_equal(c->name, "single");
	assert_int_equal(c->ids_are_held, as->ids_are_held);
	assert_int_equal(c->others_start, as->others_start);
	assert_int_equal(c->allocate_wait_ms, as->allocate_wait_ms);
	assert_int_equal(c->list(single, NULL, NULL), 40 + LIST);
	assert_int_equal(c->prefer(single, NULL, NULL, NULL, NULL), 40 + PREFER);
	assert_non_null(c->call);
	c->call(single);
	assert_int_equal(c->claim(single, NULL, 0, 1, NULL, NULL), 40 + CLAIM);
	c->answered(single, NULL, true);
	assert_int_equal(c->start(single, NULL, NULL, 0, NULL, NULL, NULL), 40 + START);
	c->started(single, NULL);
}

static void single_passes_on_every_member(void **state)
{
	struct spy whole = { .offer = { &spies[0], "nvidia.com/gpu" } }, mig = { .offer = { &spies[1], "" } };
	struct offer *single = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(offer_single_new(&whole.offer, &mig.offer, &single, &e), 0);
	assert_int_equal(take(single, &e), 0);
	use_all(single, &spies[1]);
	for (size_t i = 0; i < 2; i++)
		inventory->cards[i].mig_enabled = false;
	assert_int_equal(take(single, &e), 0);
	use_all(single, &spies[0]);
	offer_free(single);
	for (int i = 0; i < CALLS; i++) {
		/* Only the whole cards' has marks of the scheduler's to set behind a start. */
		assert_int_equal(whole.calls[i], i == STARTED ? 2 : 1);
		assert_int_equal(mig.calls[i], i == STARTED ? 0 : 1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(only_whole_devices_of_the_profile_are_listed),
		TEST(ids_are_claims_of_their_cards),
		TEST(what_is_held_is_preferred_last),
		TEST(single_is_all_or_nothing),
		TEST(single_changes_with_the_cards),
		TEST(single_passes_on_every_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
