/* A policy that looks at every node is asked about one again only when that node, the pod or the policy is another. */
#include "make_hold.h"

#include "core/splitmix.h"
#include "harness/sweep.h"
#include "model/placement/fgd.h"
#include "model/placement/place.h"

struct policy {
	size_t asked;
	uint64_t state;
};

static double by_free_memory(void *arg, const struct node_state *n, const struct pod_ask *ask, const struct grant *g)
{
	struct policy *p = arg;

	(void)ask, (void)g;
	p->asked++;
	return -(double)(n->totals.all.memory_mib - n->totals.used.memory_mib);
}

static uint64_t state_of(void *arg)
{
	return ((struct policy *)arg)->state;
}

static uint64_t host_of(void *arg, const struct node_state *n)
{
	(void)arg;
	return (uint64_t)n->cpu_milli;
}

static struct node_order order_of(struct policy *p)
{
	return (struct node_order) {
		.name = "mine", .after = by_free_memory, .state = state_of, .host = host_of, .arg = p
	};
}

static const struct card_ask one_card = { .kind = ASK_APP, .count = 1, .memory_mib = 1000 };

static struct pod_ask ask_for(struct card_ask *container, const char *uid)
{
	return (struct pod_ask) { .uid = uid, .name_space = "ns", .name = uid, .containers = container, .count = 1 };
}

static const char *placed(struct placer *p, struct cluster *c, const struct pod_ask *ask)
{
	struct place_result r;
	struct hm_err e;

	assert_true(place_pod(p, c, &(struct place_request) { .ask = ask }, &r, &e) >= 0);
	return r.node == NULL ? "" : r.node->name;
}

/* How often the policy was asked to place the pod. */
static size_t asked(struct policy *mine, struct placer *p, struct cluster *c, const struct pod_ask *ask)
{
	size_t before = mine->asked;

	placed(p, c, ask);
	return mine->asked - before;
}

static void what_is_as_it_was_is_not_asked_again(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	hm_auto(placer) *p = placer_new("mine", "spread");
	struct policy mine = { 0 };
	struct node_order order = order_of(&mine);
	struct card_ask container = one_card, other = one_card;
	struct pod_ask ask = ask_for(&container, "a"), alike = ask_for(&other, "b");

	(void)state;
	placer_set_policy(p, &order);
	assert_int_equal(asked(&mine, p, c, &ask), 2);
	assert_int_equal(asked(&mine, p, c, &ask), 0);
	assert_int_equal(asked(&mine, p, c, &alike), 0);
	other.memory_mib++;
	assert_int_equal(asked(&mine, p, c, &alike), 2);
	hold_one(c, "h", "n1", HOLD_BOUND, "n1-0", 500, 0);
	assert_int_equal(asked(&mine, p, c, &ask), 1);
	cluster_release(c, "h");
	assert_int_equal(asked(&mine, p, c, &ask), 0); /* as before */
	mine.state = 1;
	assert_int_equal(asked(&mine, p, c, &ask), 2);
}

static void a_policy_without_a_state_is_always_asked(void **state)
{
	hm_auto(cluster) *c = two_nodes();
	hm_auto(placer) *p = placer_new("mine", "spread");
	struct policy mine = { 0 };
	struct node_order order = order_of(&mine);
	struct card_ask container = one_card;
	struct pod_ask ask = ask_for(&container, "a");

	(void)state;
	order.state = NULL;
	placer_set_policy(p, &order);
	for (size_t i = 0; i < 3; i++)
		assert_int_equal(asked(&mine, p, c, &ask), 2);
}

static void a_quota_counts_where_it_might_refuse(void **state)
{
	static const struct {
		int64_t limit_mib;
		const char *node; /* once one MiB of it is taken */
	} rows[] = { { 100000, "n1" }, { 1001, "n1" }, { 1000, "" }, { 999, "" } };
	struct card_ask container = one_card;
	struct pod_ask ask = ask_for(&container, "a");
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cluster) *c = two_nodes();
		hm_auto(placer) *p = placer_new("mine", "spread");
		struct policy mine = { 0 };
		struct node_order order = order_of(&mine);

		placer_set_policy(p, &order);
		assert_int_equal(quotas_set(cluster_quotas(c), "ns", "q",
					    (struct quota_limits) { rows[i].limit_mib, QUOTA_NO_LIMIT }, &e),
				 0);
		asked(&mine, p, c, &ask);
		/* On no card, so that the nodes stay as they are. */
		hold_one(c, "h", "elsewhere", HOLD_BOUND, "x", 1, 0);
		assert_string_equal(placed(p, c, &ask), rows[i].node);
		cluster_release(c, "h");
	}
}

/* Two states with one print: what is remembered of the one puts the other first. */
static void a_key_that_lies_gives_nothing_away(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	hm_auto(placer) *p = placer_new("mine", "spread");
	struct policy mine = { 0 };
	struct node_order order = order_of(&mine);
	struct card_ask container = one_card;
	struct pod_ask ask = ask_for(&container, "a");
	struct node_state *full;

	(void)state;
	placer_set_policy(p, &order);
	put_node(c, &(struct made_node) { "n2", 1, 10, 40000, 100, NULL });
	assert_string_equal(placed(p, c, &ask), "n2");
	full = make_node(c, &(struct made_node) { "n1", 1, 10, 500, 100, NULL });
	full->print = cluster_node(c, "n2")->print;
	assert_int_equal(cluster_put_node(c, full, NULL), 0);
	assert_string_equal(placed(p, c, &ask), "n2");
	assert_int_equal(mine.asked, 2);
}

/* ---- a random world: a placer that remembers says what one says that asks each time */

enum { NODES = 6, STEPS = 4000, SHAPES = 6, HOLDERS = 12 };

static uint64_t roll(uint64_t below)
{
	static uint64_t n;

	return splitmix_scramble(++n * SPLITMIX_STEP) % below;
}

static void any_node(struct cluster *c, const char *name)
{
	put_node(c, &(struct made_node) { name, 1 + (int)roll(3), 2 + (int32_t)roll(3),
					  30000 + 10000 * (int32_t)roll(2), 100, roll(4) == 0 ? "mig" : NULL });
	cluster_set_host(c, name, (struct host_amount) { 1000 * (int64_t)roll(9), 4096 });
}

static void any_holder(struct cluster *c, const char *node)
{
	char uid[16], card[32];
	struct hold_share s = { .uuid = card,
				.memory_mib = 5000 * (int32_t)(1 + roll(4)),
				.cores = (int32_t)roll(3) * 20 };

	snprintf(uid, sizeof uid, "h%u", (unsigned)roll(HOLDERS));
	snprintf(card, sizeof card, "%s-%u", node, (unsigned)roll(3));
	if (roll(3) == 0)
		cluster_release(c, uid);
	else if (roll(6) == 0)
		hold_unreadable(c, uid, node, &app, 1);
	else
		assert_int_equal(hold(c, uid, node, HOLD_BOUND, &s, 1, &app, 1), 0);
}

struct shape {
	struct card_ask containers[2];
	const char *use_uuids;
};

static const struct shape shapes[SHAPES] = {
	{ { { ASK_APP, 1, 5000, 0, 0 } }, NULL },  { { { ASK_APP, 1, 5000, 0, 50 } }, NULL },
	{ { { ASK_APP, 2, 8000, 0, 10 } }, NULL }, { { { ASK_INIT, 1, 20000, 0, 0 }, { ASK_APP, 1, 0, 20, 0 } }, NULL },
	{ { { ASK_APP, 1, 0, 100, 100 } }, NULL }, { { { ASK_APP, 1, 5000, 0, 0 } }, "n2-0,n3-1" },
};

static struct pod_ask ask_of_shape(size_t shape, struct card_ask containers[2], const char *uid)
{
	memcpy(containers, shapes[shape].containers, sizeof shapes[shape].containers);
	return (struct pod_ask) { .uid = uid,
				  .name_space = "ns",
				  .name = uid,
				  .containers = containers,
				  .count = containers[1].count > 0 ? 2 : 1,
				  .cpu_milli = 1000 * (int64_t)(shape % 3),
				  .host_mib = 512,
				  .wishes = { .use_uuids = shapes[shape].use_uuids } };
}

/* Takes MIG instances, too. */
static void any_promise(struct cluster *c, struct placer *p)
{
	struct card_ask containers[2];
	char uid[16];
	struct pod_ask ask = ask_of_shape(roll(SHAPES), containers, uid);
	struct place_result r;
	struct hm_err e;

	snprintf(uid, sizeof uid, "r%u", (unsigned)roll(HOLDERS));
	cluster_roll_back(c, uid);
	if (roll(2) == 0)
		return;
	assert_true(place_pod(p, c, &(struct place_request) { .ask = &ask }, &r, &e) >= 0);
	if (r.node != NULL)
		assert_int_equal(cluster_reserve(c, &ask, r.node->name, r.grant, 1000, &e), 0);
}

static void any_change(struct cluster *c, struct placer *p, const char *node)
{
	char text[64];
	struct hm_err e;

	snprintf(text, sizeof text, "%s-%u", node, (unsigned)roll(3));
	switch (roll(10)) {
	case 0: any_node(c, node); break;
	case 1: cluster_cordon_node(c, node, roll(2) == 0 ? text : NULL); break;
	case 2:
		assert_int_equal(
			cluster_take_host(c, text, node, (struct host_amount) { 1000 * (int64_t)roll(3), 1024 }, &e),
			0);
		break;
	case 3:
		assert_int_equal(quotas_set(cluster_quotas(c), "ns", "q",
					    (struct quota_limits) { 40000 * (int64_t)(1 + roll(9)), QUOTA_NO_LIMIT },
					    &e),
				 0);
		break;
	case 4:
	case 5: any_promise(c, p); break;
	default: any_holder(c, node);
	}
}

/* "n1 0 2", or how many were refused. */
static int tell(struct placer *p, struct cluster *c, size_t shape, char *out, size_t room)
{
	struct card_ask containers[2];
	const struct pod_ask ask = ask_of_shape(shape, containers, "asked");
	struct place_result r;
	struct hm_err e;
	int fits = place_pod(p, c, &(struct place_request) { .ask = &ask }, &r, &e);
	size_t at;

	if (fits < 0)
		return fits;
	at = (size_t)snprintf(out, room, "%s, %zu refused:", fits > 0 ? r.node->name : "", r.refused_count);
	for (size_t i = 0; fits > 0 && i < r.grant->count; i++)
		at += (size_t)snprintf(out + at, room - at, " %u", r.grant->shares[i].card);
	return 0;
}

static void add_to_mix(struct pod_mix *m)
{
	struct mix_shape s = { .cards = 1,
			       .each = { .memory_mib = 1000 * (int32_t)(1 + roll(20)) },
			       .cpu_milli = 1000 };
	struct hm_err e;

	assert_int_equal(pod_mix_add(m, &s, 1, &e), 0);
}

static void a_random_world(void **state)
{
	hm_auto(cluster) *c = cluster_new(1);
	hm_auto_pod_mix mix = { 0 };
	const struct fgd_weights weights = fgd_default_weights();
	hm_auto(fgd) *f = fgd_new(&mix, &weights), *g = fgd_new(&mix, &weights);
	hm_auto(placer) *remembers = placer_new("fgd", "fgd"), *asks = placer_new("fgd", "fgd");
	struct node_order each_time = *fgd_order(g);
	static const char *const names[NODES] = { "n1", "n2", "n3", "n4", "n5", "n6" };
	size_t fitted = 0;

	(void)state;
	add_to_mix(&mix);
	each_time.state = NULL;
	placer_set_policy(remembers, fgd_order(f));
	placer_set_policy(asks, &each_time);
	for (size_t i = 0; i < NODES; i++)
		any_node(c, names[i]);
	for (size_t i = 0; i < STEPS; i++) {
		size_t shape = roll(SHAPES);
		char got[128], want[128];

		if (roll(200) == 0)
			add_to_mix(&mix);
		any_change(c, asks, names[roll(NODES)]);
		assert_int_equal(tell(remembers, c, shape, got, sizeof got), 0);
		assert_int_equal(tell(asks, c, shape, want, sizeof want), 0);
		assert_string_equal(got, want);
		fitted += got[0] == 'n';
	}
	assert_in_range(fitted, STEPS / 3, STEPS - STEPS / 20);
}

/* ---- memory is short */

static struct short_world {
	struct cluster *c;
	struct pod_mix mix;
} world;

static int place_short(void *arg)
{
	const struct fgd_weights weights = { .copies = 1000 };
	hm_auto(fgd) *f = fgd_new(&world.mix, &weights);
	hm_auto(placer) *p = placer_new("fgd", "fgd");
	char *want = arg, got[128];
	int first, then;

	if (f == NULL || p == NULL)
		return -HM_ENOMEM;
	placer_set_policy(p, fgd_order(f));
	/* Once with the failure, once behind it. */
	first = tell(p, world.c, 0, got, sizeof got);
	then = tell(p, world.c, 0, got, sizeof got);
	if (then < 0)
		return then;
	if (want[0] == '\0')
		snprintf(want, sizeof got, "%s", got);
	assert_string_equal(got, want);
	return first;
}

static void what_failed_is_not_remembered(void **state)
{
	char want[128] = "";
	size_t nth = 0;

	(void)state;
	world.c = cluster_new(1);
	add_to_mix(&world.mix);
	add_to_mix(&world.mix);
	for (size_t i = 0; i < 3; i++) {
		static const char *const names[] = { "n1", "n2", "n3" };

		put_node(world.c, &(struct made_node) { names[i], 2, 4, 40000, 100, NULL });
		hold_one(world.c, names[i], names[i], HOLD_BOUND, (const char *[]) { "n1-0", "n2-0", "n3-0" }[i],
			 5000 * (int32_t)(i + 1), 0);
	}
	assert_int_equal(place_short(want), 0);
	while (sweep_once(place_short, want, ++nth))
		;
	assert_true(nth > 10);
	cluster_free(world.c);
	pod_mix_fini(&world.mix);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_as_it_was_is_not_asked_again),
		cmocka_unit_test(a_policy_without_a_state_is_always_asked),
		cmocka_unit_test(a_quota_counts_where_it_might_refuse),
		cmocka_unit_test(a_key_that_lies_gives_nothing_away),
		cmocka_unit_test(a_random_world),
		cmocka_unit_test(what_failed_is_not_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
