/* Which refusals are for good (model/placement/fit_never.h): of pods whose containers are one by one small enough. */
#include "model/placement/fit_never.h"

#include "core/splitmix.h"
#include "make_fit.h"
#include "make_mig.h"

static void pods(void **state)
{
	static const struct {
		const char *what;
		int32_t memory_mib[2]; /* of the cards; 0: there is none */
		int32_t slots;
		int64_t used_mib; /* of each */
		struct card_ask asks[3];
		const char *policy, *want;
	} cases[] = {
		{ "two that are more than the card",
		  { 40960 },
		  10,
		  0,
		  { { ASK_APP, 1, 30720, 0, 0 }, { ASK_APP, 1, 30720, 0, 0 } },
		  "spread",
		  "1/1 CardInsufficientMemory for good" },
		{ "the first is refused for others",
		  { 40960 },
		  10,
		  20000,
		  { { ASK_APP, 1, 30720, 0, 0 }, { ASK_APP, 1, 30720, 0, 0 } },
		  "spread",
		  "1/1 CardInsufficientMemory for good" },
		{ "two of two cards, without others",
		  { 40960, 40960 },
		  10,
		  20000,
		  { { ASK_APP, 1, 30720, 0, 0 }, { ASK_APP, 1, 30720, 0, 0 } },
		  "spread",
		  "2/2 CardInsufficientMemory" },
		{ "three of two cards: no card has two of them",
		  { 49152, 49152 },
		  10,
		  0,
		  { { ASK_APP, 2, 30720, 0, 0 }, { ASK_APP, 1, 30720, 0, 0 } },
		  "spread",
		  "2/2 CardInsufficientMemory for good" },
		{ "a card that is too small for either is none",
		  { 40960, 30719 },
		  10,
		  0,
		  { { ASK_APP, 1, 30720, 0, 0 }, { ASK_APP, 1, 30720, 0, 0 } },
		  "spread",
		  "2/2 CardInsufficientMemory for good" },
		{ "parts of a card by percent",
		  { 40960 },
		  10,
		  0,
		  { { ASK_APP, 1, 0, 60, 0 }, { ASK_APP, 1, 0, 50, 0 } },
		  "spread",
		  "1/1 CardInsufficientMemory for good" },
		{ "an init container has gone before",
		  { 40960 },
		  10,
		  20000,
		  { { ASK_INIT, 1, 30720, 0, 0 }, { ASK_APP, 1, 30720, 0, 0 } },
		  "spread",
		  "1/1 CardInsufficientMemory" },
		{ "not before a sidecar that began earlier",
		  { 40960 },
		  10,
		  0,
		  { { ASK_SIDECAR, 1, 30720, 0, 0 }, { ASK_INIT, 1, 30720, 0, 0 } },
		  "spread",
		  "1/1 CardInsufficientMemory for good" },
		{ "but before one that begins later",
		  { 40960 },
		  10,
		  20000,
		  { { ASK_INIT, 1, 30720, 0, 0 }, { ASK_SIDECAR, 1, 30720, 0, 0 } },
		  "spread",
		  "1/1 CardInsufficientMemory" },
		{ "a later one is too large",
		  { 40960 },
		  10,
		  20000,
		  { { ASK_INIT, 1, 30720, 0, 0 }, { ASK_APP, 1, 40961, 0, 0 } },
		  "spread",
		  "1/1 CardInsufficientMemory for good" },
		{ "a later one wants too many",
		  { 40960 },
		  10,
		  20000,
		  { { ASK_INIT, 1, 30720, 0, 0 }, { ASK_APP, UINT32_MAX, 1, 0, 0 } },
		  "spread",
		  "1/1 CardInsufficientMemory for good" },
		{ "cores",
		  { 40960 },
		  10,
		  0,
		  { { ASK_APP, 1, 1000, 0, 60 }, { ASK_APP, 1, 1000, 0, 41 } },
		  "spread",
		  "1/1 CardInsufficientCore for good" },
		{ "cores, and one that asks for none",
		  { 40960 },
		  10,
		  0,
		  { { ASK_APP, 1, 1000, 0, 60 }, { ASK_APP, 1, 1000, 0, 0 }, { ASK_APP, 1, 1000, 0, 41 } },
		  "spread",
		  "1/1 CardInsufficientCore for good" },
		{ "all cores of the card leave it to nobody",
		  { 40960 },
		  10,
		  0,
		  { { ASK_APP, 1, 1000, 0, 100 }, { ASK_APP, 1, 1000, 0, 0 } },
		  "spread",
		  "1/1 CardComputeUnitsExhausted for good" },
		{ "places",
		  { 40960, 40960 },
		  1,
		  0,
		  { { ASK_APP, 2, 1000, 0, 0 }, { ASK_APP, 1, 1000, 0, 0 } },
		  "spread",
		  "2/2 CardTimeSlicingExhausted for good" },
		{ "a card each",
		  { 40960 },
		  10,
		  0,
		  { { ASK_APP, 1, 1000, 0, 0 }, { ASK_APP, 1, 1000, 0, 0 } },
		  "mutex",
		  "1/1 ExclusiveDeviceAllocateConflict for good" },
		/* Others on the large card alone, and the first container would leave it to the second. */
		{ "the wrong card is chosen first",
		  { 40960, 81920 },
		  10,
		  0,
		  { { ASK_APP, 1, 30720, 0, 0 }, { ASK_APP, 1, 81920, 0, 0 } },
		  "spread",
		  "2/2 CardInsufficientMemory" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(texts) *texts = texts_new();
		hm_auto(node_state) *n = node_state_new("n1", texts);
		struct card_ask asks[3];

		memcpy(asks, cases[i].asks, sizeof asks);
		for (unsigned k = 0; k < 2 && cases[i].memory_mib[k] > 0; k++) {
			struct node_card c = make_card(k);

			c.memory_mib = cases[i].memory_mib[k];
			c.count = cases[i].slots;
			add_card(n, c);
			if (cases[i].used_mib > 0)
				take(n, k, 1, cases[i].used_mib, 0);
		}
		expect_many(cases[i].what, n, asks, 3, cases[i].policy, cases[i].want);
	}
}

/* So many are not added up. */
static void more_containers_than_anybody_has(void **state)
{
	struct card_ask asks[65] = { { ASK_APP, 1, 30720, 0, 0 }, { ASK_APP, 1, 61440, 0, 0 } };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = equal_cards(texts, 1);

	(void)state;
	expect_many("64", n, asks, 64, "spread", "1/1 CardInsufficientMemory for good");
	expect_many("65", n, asks, 65, "spread", "1/1 CardInsufficientMemory");
}

/* How instances share a card is not known without trying. */
static void cards_that_are_cut(void **state)
{
	struct card_ask asks[2] = { { ASK_APP, 1, 20000, 0, 0 }, { ASK_APP, 1, 30000, 0, 0 } };
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n1", texts);

	(void)state;
	add_mig_card(n, 0);
	expect_many("two instances", n, asks, 2, "spread", "1/1 CardInsufficientMemory");
}

/* ---- nobody who is told never ever fits: small nodes and pods, whoever else is there and whoever is tried first */

static uint64_t number;

static uint64_t dice(uint64_t sides)
{
	return splitmix_scramble(number += SPLITMIX_STEP) % sides;
}

static double any_card(void *arg, const struct node_state *n, size_t card, const struct card_use *used,
		       const struct card_ask *ask)
{
	(void)arg, (void)n, (void)card, (void)used, (void)ask;
	return (double)dice(100);
}

static struct node_state *any_node(struct texts *texts)
{
	struct node_state *n = node_state_new("n1", texts);
	const unsigned count = 1 + (unsigned)dice(3);

	for (unsigned i = 0; i < count; i++) {
		struct node_card c = make_card(i);

		c.memory_mib = 20 * (1 + (int32_t)dice(4));
		c.count = 1 + (int32_t)dice(4);
		c.cores = dice(4) > 0 ? 100 : (int32_t)dice(3) * 75;
		c.numa = (int32_t)dice(2);
		add_card(n, c);
	}
	return n;
}

static struct card_ask any_ask(void)
{
	struct card_ask ask = { .count = 1 + (uint32_t)(dice(4) == 0),
				.cores = (uint32_t[]) { 0, 0, 30, 100 }[dice(4)] };

	ask.kind = (enum ask_kind[]) { ASK_INIT, ASK_SIDECAR, ASK_APP, ASK_APP }[dice(4)];
	if (dice(3) > 0)
		ask.memory_mib = 10 * (1 + (int32_t)dice(5));
	else
		ask.percent = 25 * (1 + (uint32_t)dice(4));
	return ask;
}

/* Of one card a part, or nothing. */
static struct card_use any_use(const struct node_card *c)
{
	if (dice(2) == 0)
		return (struct card_use) { 0 };
	return (struct card_use) { 1, (int64_t)dice((uint64_t)c->memory_mib + 1), (int64_t)dice(3) * c->cores / 4 };
}

/* 1 fits, 2 refused for good, 3 refused. */
static int try_beside_others(struct fitter *f, struct node_state *n, struct grant *g)
{
	struct card_use used[3];
	struct refusal why;
	int fits;

	for (size_t i = 0; i < n->count; i++) {
		used[i] = any_use(&n->cards[i]);
		node_state_take(n, i, &used[i]);
	}
	fits = fit_pod(f, n, g, &why, NULL);
	assert_in_range(fits, 0, 1);
	for (size_t i = 0; i < n->count; i++)
		node_state_give(n, i, &used[i]);
	return fits > 0 ? 1 : why.unresolvable ? 2 : 3;
}

static void never_is_never(void **state)
{
	enum { PODS = 10000, TRIES = 12 };
	hm_auto(fitter) *f = fitter_new();
	hm_auto_grant g = { 0 };
	size_t seen[4] = { 0 };

	(void)state;
	for (unsigned i = 0; i < PODS; i++) {
		hm_auto(texts) *texts = texts_new();
		hm_auto(node_state) *n = any_node(texts);
		struct card_ask asks[] = { any_ask(), any_ask(), any_ask() };
		struct pod_ask ask = { .containers = asks,
				       .count = 2 + dice(2),
				       .wishes = { .numa_bind = dice(4) == 0 ? "true" : NULL } };
		size_t got[4] = { 0 };

		assert_int_equal(fitter_read(f, &ask, dice(4) == 0 ? "mutex" : "spread", NULL), 0);
		fitter_set_rank(f, any_card, NULL);
		for (unsigned k = 0; k < TRIES; k++)
			got[try_beside_others(f, n, &g)]++;
		if (got[1] > 0 && got[2] > 0)
			fail_msg("pod %u fits %zu times, and %zu times never", i, got[1], got[2]);
		for (size_t k = 0; k < 4; k++)
			seen[k] += got[k] > 0;
	}
	assert_in_range(seen[1], PODS / 20, PODS);
	assert_in_range(seen[2], PODS / 20, PODS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods),
		cmocka_unit_test(more_containers_than_anybody_has),
		cmocka_unit_test(cards_that_are_cut),
		cmocka_unit_test(never_is_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
