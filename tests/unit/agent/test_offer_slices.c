/* hami.com/vgpu: what the kubelet is told of the cards; what ids amount to is test_allocate's and test_service's. */
#include "agent/serve/offer_slices.h"

#include <stdlib.h>

#include "agent/claims/claims.h"
#include "base/log.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/agent/agent_node.h"

static struct agent_node node;

static void hush(const char *line, size_t n, void *arg)
{
	(void)line, (void)n, (void)arg;
}

static int setup(void **state)
{
	struct hm_err e;

	log_set_sink(hush, NULL);
	if (temp_setup(state) < 0)
		return -1;
	node_setup(&node);
	return node_open(&node, &e);
}

static int teardown(void **state)
{
	node_teardown(&node);
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

static struct fleet *fleet_of(const struct fleet *before, struct inventory *take)
{
	struct fleet *f;
	struct hm_err e;

	if (fleet_new(before, take, &f, &e) < 0)
		fail_msg("%s", e.msg);
	inventory_free(take);
	return f;
}

static void the_list_has_health_and_numa(void **state)
{
	struct inventory *all = make_inventory(2, 1000);
	hm_auto(offer) *o = NULL;
	struct fleet_devices d;
	struct hm_err e;

	(void)state;
	all->cards[1].numa_node = 1;
	node.options.cores_per_device = 2;
	hm_auto(fleet) *f = fleet_of(NULL, all);
	hm_auto(fleet) *lost = fleet_of(f, NULL);
	assert_int_equal(offer_slices_new(&node.options, &node.paths, node.claims, &o, &e), 0);
	assert_int_equal(o->class->list(o, &d, &e), -HM_EAGAIN);
	assert_int_equal(o->class->take(o, f, &e), 0);
	assert_int_equal(o->class->list(o, &d, &e), 0);
	assert_int_equal(d.count, 4);
	assert_string_equal(d.items[3].id, "GPU-00000000-0000-0000-0000-000000000001::1");
	assert_int_equal(d.items[3].numa_node, 1);
	assert_int_equal(d.items[0].numa_node, -1);
	assert_true(d.items[3].healthy);
	fleet_devices_fini(&d);
	node.options.enable_topology = false;
	assert_int_equal(o->class->take(o, lost, &e), 0);
	assert_int_equal(o->class->list(o, &d, &e), 0);
	assert_int_equal(d.items[3].numa_node, -1);
	assert_false(d.items[3].healthy);
	fleet_devices_fini(&d);
}

/* The cut that was good stays. */
static void a_cut_that_does_not_fit_changes_nothing(void **state)
{
	hm_auto(fleet) *f = fleet_of(NULL, make_inventory(1, 1000));
	hm_auto(offer) *o = NULL;
	struct fleet_devices d;
	struct hm_err e;

	(void)state;
	assert_int_equal(offer_slices_new(&node.options, &node.paths, node.claims, &o, &e), 0);
	assert_int_equal(o->class->take(o, f, &e), 0);
	node.options.memory_mb_per_core = 500;
	assert_int_equal(o->class->take(o, f, &e), -HM_EINVAL);
	assert_int_equal(o->class->list(o, &d, &e), 0);
	assert_int_equal(d.count, 4);
	fleet_devices_fini(&d);
}

static int scenario(void *arg)
{
	hm_auto(offer) *o = NULL;
	struct fleet_devices d;
	struct hm_err e;

	if (offer_slices_new(&node.options, &node.paths, node.claims, &o, &e) < 0 || o->class->take(o, arg, &e) < 0 ||
	    o->class->list(o, &d, &e) < 0)
		return -1;
	fleet_devices_fini(&d);
	return 0;
}

static void allocation_failures(void **state)
{
	struct sweep_result r = sweep_run(scenario, node.fleet);

	(void)state;
	assert_false(r.failed);
	assert_true(r.allocations > 5);
	assert_int_equal(r.leaked, 0); /* the node file's failures are said, not returned */
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_list_has_health_and_numa),
		TEST(a_cut_that_does_not_fit_changes_nothing),
		TEST(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
