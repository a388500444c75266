/* CPU and memory of nodes: what their pods leave of it. */
#include "make_hold.h"

#include "harness/sweep.h"

/* Free milli of CPU and MiB of the node. */
static void expect_host(const struct cluster *c, const char *node, int64_t cpu_milli, int64_t host_mib)
{
	const struct node_state *n = cluster_node(c, node);

	assert_non_null(n);
	assert_int_equal(n->cpu_milli, cpu_milli);
	assert_int_equal(n->host_mib, host_mib);
}

static void take_host(struct cluster *c, const char *uid, const char *node, int64_t cpu_milli, int64_t host_mib)
{
	struct hm_err e;

	assert_int_equal(cluster_take_host(c, uid, node, (struct host_amount) { cpu_milli, host_mib }, &e), 0);
}

static void put_with_host(struct cluster *c, const char *name, int cards, int64_t cpu_milli, int64_t host_mib)
{
	struct node_state *n = make_node(c, &(struct made_node) { name, cards, 10, 40000, 100, NULL });
	struct hm_err e;

	assert_non_null(n);
	n->cpu_milli = cpu_milli;
	n->host_mib = host_mib;
	assert_int_equal(cluster_put_node(c, n, &e), 0);
}

static void the_host_is_what_pods_leave(void **state)
{
	hm_auto(cluster) *c = two_nodes();

	(void)state;
	take_host(c, "before", "n1", 1000, 100);
	expect_host(c, "n1", -1, -1);
	cluster_set_host(c, "n1", (struct host_amount) { 8000, 1000 });
	expect_host(c, "n1", 7000, 900);
	take_host(c, "no cards", "n1", 3000, 0);
	take_host(c, "no cards", "n1", 3000, 0); /* told again */
	expect_host(c, "n1", 4000, 900);
	take_host(c, "no cards", "n1", 2000, 50); /* resized */
	expect_host(c, "n1", 5000, 850);
	put_with_host(c, "n1", 1, 8000, 1000); /* other cards */
	expect_host(c, "n1", 5000, 850);
	put_with_host(c, "n1", 2, 2500, -1); /* and a smaller host: never less than nothing */
	expect_host(c, "n1", 0, -1);
	cluster_remove_node(c, "n1");
	cluster_release(c, "before");
	put_with_host(c, "n1", 2, 8000, 1000);
	expect_host(c, "n1", 6000, 950);
	take_host(c, "no cards", "n3", 2000, 50); /* bound elsewhere, where nothing is known of */
	expect_host(c, "n1", 8000, 1000);
	cluster_release(c, "no cards");
	cluster_release(c, "no cards");
	assert_int_equal(node_count(c), 2);
}

/* A promise counts until it is taken back; what the watch says is no promise. */
static void promises_take_of_the_host(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	struct card_ask container = { ASK_APP, 1, 1000, 0, 0 };
	struct pod_ask ask = { "a", "ns", "a", &container, 1, 1, 3000, 300, { 0 } };
	struct card_share share = { .card = 0, .memory_mib = 1000, .profile = NO_PROFILE };
	struct grant g = { &share, 1, 1 };
	struct hm_err e;

	(void)state;
	put_with_host(c, "n1", 1, 8000, 1000);
	put_with_host(c, "n2", 1, 8000, 1000);
	assert_int_equal(cluster_reserve(c, &ask, "n1", &g, 1000, &e), 0);
	expect_host(c, "n1", 5000, 700);
	assert_int_equal(cluster_reserve(c, &ask, "n2", &g, 1000, &e), 0);
	expect_host(c, "n1", 8000, 1000);
	expect_host(c, "n2", 5000, 700);
	assert_int_equal(cluster_expire(c, 1000), 1);
	expect_host(c, "n2", 8000, 1000);
	assert_int_equal(cluster_reserve(c, &ask, "n2", &g, 2000, &e), 0);
	assert_int_equal(cluster_confirm(c, "a", "n2", &e), 0);
	cluster_roll_back(c, "a");
	expect_host(c, "n2", 8000, 1000);
	/* The watch first, our own answer later: it counts once. */
	assert_int_equal(cluster_reserve(c, &ask, "n2", &g, 3000, &e), 0);
	take_host(c, "a", "n2", 3000, 300);
	expect_host(c, "n2", 5000, 700);
	cluster_bound(c, "a");
	cluster_release(c, "a");
	expect_host(c, "n2", 8000, 1000);
	/* Somebody else bound it to the other node. */
	assert_int_equal(cluster_reserve(c, &ask, "n1", &g, 4000, &e), 0);
	take_host(c, "a", "n2", 3000, 300);
	expect_host(c, "n1", 8000, 1000);
	assert_int_equal(cluster_expire(c, 4000), 1);
	expect_host(c, "n2", 5000, 700);
}

/* A promise has its share of the cards and of the host, or nothing. */
static int promise_scenario(void *arg)
{
	hm_auto(cluster) *c = cluster_new(1);
	struct card_ask container = { ASK_APP, 1, 1000, 0, 0 };
	struct pod_ask ask = { "a", "ns", "a", &container, 1, 1, 3000, 300, { 0 } };
	struct card_share share = { .card = 0, .memory_mib = 1000, .profile = NO_PROFILE };
	struct grant g = { &share, 1, 1 };
	struct node_state *n = c != NULL ? make_node(c, &(struct made_node) { "n1", 1, 10, 40000, 100, NULL }) : NULL;
	struct hm_err e;
	int err;

	(void)arg;
	if (n == NULL)
		return -HM_ENOMEM;
	err = cluster_put_node(c, n, &e);
	if (err < 0)
		return err;
	cluster_set_host(c, "n1", (struct host_amount) { 8000, 1000 });
	err = cluster_reserve(c, &ask, "n1", &g, 1000, &e);
	expect_used(c, "n1", err < 0 ? "0/0/0" : "1/1000/0");
	expect_host(c, "n1", err < 0 ? 8000 : 5000, err < 0 ? 1000 : 700);
	if (err == 0)
		err = cluster_take_host(c, "a", "n2", (struct host_amount) { 3000, 300 }, &e);
	if (err == 0)
		expect_host(c, "n1", 8000, 1000);
	return err;
}

static void survives_lack_of_memory(void **state)
{
	(void)state;
	sweep_check("a promise", promise_scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_host_is_what_pods_leave),
		cmocka_unit_test(promises_take_of_the_host),
		cmocka_unit_test(survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
