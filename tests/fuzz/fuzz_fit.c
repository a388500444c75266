/* A pod's wishes, a line each, then a node and the pod's asks from the bytes behind: whatever is granted is there, and
 * to be had at the same time. */
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "fuzz/fuzz.h"
#include "model/placement/fit.h"

enum { WISHES = 9, MOST_CARDS = 8, MOST_CONTAINERS = 5 };

struct bytes {
	const uint8_t *p, *end;
};

static unsigned next(struct bytes *b, unsigned below)
{
	return b->p < b->end ? *b->p++ % below : 0;
}

/* The next line, to be freed; NULL for an empty one. */
static char *next_line(struct bytes *b)
{
	const uint8_t *from = b->p;
	const uint8_t *stop = memchr(from, '\n', (size_t)(b->end - from));
	size_t n = (size_t)((stop == NULL ? b->end : stop) - from);

	b->p = stop == NULL ? b->end : stop + 1;
	return n == 0 ? NULL : strndup((const char *)from, n);
}

static void add_profiles(struct node_state *n)
{
	static const struct {
		const char *name;
		int32_t memory, cores, slices;
		uint32_t size, step, places;
	} profiles[] = { { "1g.5gb", 5000, 14, 1, 1, 1, 7 },
			 { "2g.10gb", 10000, 28, 2, 2, 2, 3 },
			 { "7g.40gb", 40000, 100, 7, 8, 1, 1 } };

	for (size_t i = 0; i < HM_COUNT(profiles); i++) {
		struct card_profile p = { .memory_mib = profiles[i].memory,
					  .cores = profiles[i].cores,
					  .slices = profiles[i].slices };
		struct mig_placement places[8];

		memcpy(p.name, profiles[i].name, strlen(profiles[i].name) + 1);
		for (uint32_t k = 0; k < profiles[i].places; k++)
			places[k] = (struct mig_placement) { k * profiles[i].step, profiles[i].size };
		CHECK(node_state_add_profile(n, &p, places, profiles[i].places, NULL) == 0);
	}
}

static void add_cards(struct node_state *n, struct bytes *b)
{
	static const char *const types[] = { "NVIDIA A100", "NVIDIA-Tesla T4", "Other" };
	static const int32_t cores[] = { 100, 0, 50, 200 };
	unsigned count = next(b, MOST_CARDS + 1);

	for (unsigned i = 0; i < count; i++) {
		struct node_card c = { .uuid = { 'G', 'P', 'U', '-', (char)('0' + i) }, .index = i };

		c.count = (int32_t)next(b, 11);
		c.memory_mib = (int32_t)next(b, 256) * 200;
		c.cores = cores[next(b, 4)];
		c.numa = (int32_t)next(b, 3) - 1;
		c.healthy = next(b, 8) != 0;
		c.type = types[next(b, 3)];
		c.mode = next(b, 3) == 0 ? "mig" : "hami-core";
		CHECK(node_state_add_card(n, &c, NULL) == 0);
		if (strcmp(c.mode, "mig") == 0)
			add_profiles(n);
		n->cards[i].cordoned = next(b, 8) == 1;
	}
	for (unsigned i = 0; i < count; i++)
		if (next(b, 2) == 1) {
			struct card_use use = { .slots = 1 };

			use.memory_mib = next(b, 256) * 100;
			use.cores = next(b, 101);
			node_state_take(n, i, &use);
		}
	for (unsigned i = 0; i < count; i++)
		if (n->cards[i].mig && next(b, 2) == 1)
			CHECK(node_state_occupy(n, i, (struct mig_placement) { next(b, 7), 1 }, NULL) == 0);
	for (unsigned i = 0; i + 1 < count; i++)
		CHECK(node_state_set_pair_score(n, i, i + 1, (int32_t)next(b, 200), NULL) == 0);
}

static void add_asks(struct pod_ask *ask, struct bytes *b)
{
	unsigned count = next(b, MOST_CONTAINERS + 1);
	unsigned init = next(b, MOST_CONTAINERS + 1);

	for (unsigned i = 0; i < count; i++) {
		struct card_ask c = { .kind = ASK_APP };

		if (i < init)
			c.kind = next(b, 2) == 0 ? ASK_INIT : ASK_SIDECAR;
		c.count = next(b, 5);
		c.memory_mib = (int32_t)next(b, 256) * 100;
		c.cores = next(b, 101);
		c.percent = c.memory_mib > 0 ? 0 : 1 + next(b, 100);
		CHECK(pod_ask_add(ask, &c, NULL) == 0);
	}
}

/* Nothing is sold that is not there, over the pod's life. */
static void check_cards(const struct node_state *n, const struct grant *g, const enum ask_kind *kinds,
			size_t kind_count)
{
	struct card_hold *holds hm_auto_heap = calloc(g->count + 1, sizeof *holds);
	size_t count = pod_use_by_card(g->shares, g->count, kinds, kind_count, holds);

	for (size_t i = 0; i < count; i++) {
		const struct node_card *c = &n->cards[holds[i].card];
		const struct card_use *used = &n->used[holds[i].card];

		CHECK(c->healthy && !c->cordoned && c->nvidia);
		if (c->mig)
			continue; /* its places say what there is */
		CHECK(used->slots + holds[i].use.slots <= c->count);
		CHECK(used->memory_mib + holds[i].use.memory_mib <= c->memory_mib);
		CHECK(used->cores + holds[i].use.cores <= c->cores);
	}
}

static void check_shares(const struct node_state *n, const struct pod_ask *ask, const struct grant *g)
{
	size_t at = 0;

	for (uint32_t i = 0; i < ask->count; i++)
		for (uint32_t k = 0; k < ask->containers[i].count; k++, at++)
			CHECK(at < g->count && g->shares[at].container == i && g->shares[at].card < n->count);
	CHECK(at == g->count);
	for (size_t a = 0; a < g->count; a++) {
		const struct card_share *s = &g->shares[a];

		CHECK((mig_place_bits(s->at) != 0) == n->cards[s->card].mig &&
		      (mig_place_bits(s->at) & n->cards[s->card].busy) == 0);
		for (size_t b = 0; b < a; b++) {
			const struct card_share *t = &g->shares[b];
			bool same = s->at.start == t->at.start && s->at.size == t->at.size;

			if (s->card != t->card)
				continue;
			CHECK(n->cards[s->card].mig || s->container != t->container);
			/* The same instance for one container after the other, or apart. */
			CHECK((mig_place_bits(s->at) & mig_place_bits(t->at)) == 0 ||
			      (same && s->container != t->container && ask->containers[t->container].kind == ASK_INIT));
		}
	}
}

static void check_grant(const struct node_state *n, const struct pod_ask *ask, const struct grant *g,
			struct quota_amount room)
{
	enum ask_kind kinds[MOST_CONTAINERS];

	for (size_t i = 0; i < ask->count; i++)
		kinds[i] = ask->containers[i].kind;
	check_shares(n, ask, g);
	check_cards(n, g, kinds, ask->count);
	CHECK(quota_fits(room, quota_of_shares(g->shares, g->count, kinds, ask->count)));
}

static void fit(struct bytes *b, struct pod_ask *ask, const char *policy)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(node_state) *n = node_state_new("n", texts);
	hm_auto(fitter) *f = fitter_new();
	hm_auto_grant g = { 0 };
	struct quota_amount room = { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT };
	struct refusal why;
	uint32_t sum = 0;
	int fits;

	add_cards(n, b);
	add_asks(ask, b);
	if (next(b, 3) == 1) {
		room.memory_mib = next(b, 256) * 200;
		room.cores = next(b, 256);
	}
	if (fitter_read(f, ask, policy, NULL) < 0)
		return;
	fitter_set_quota(f, room);
	fits = fit_pod(f, n, &g, &why, NULL);
	CHECK(fits == 0 || fits == 1);
	if (fits == 1) {
		check_grant(n, ask, &g, room);
		return;
	}
	for (int i = 0; i < REASON_COUNT; i++)
		sum += why.counts[i];
	CHECK(why.too_few_cards ? sum == 0 : sum > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = { data, data + size };
	char *lines[WISHES];
	hm_auto_pod_ask ask = { 0 };

	for (size_t i = 0; i < WISHES; i++)
		lines[i] = next_line(&b);
	ask.wishes = (struct pod_wishes) { NULL,     lines[0], lines[1], lines[2], lines[3],
					   lines[4], lines[5], lines[6], lines[7] };
	fit(&b, &ask, lines[8] != NULL ? lines[8] : "spread");
	for (size_t i = 0; i < WISHES; i++)
		free(lines[i]);
	return 0;
}
