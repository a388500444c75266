#include "model/placement/cluster.h"

#include "base/map.h"
#include "model/placement/cluster_state.h"

const struct holding *cluster_find(const struct cluster *c, const char *uid)
{
	return map_get(c->holdings, uid);
}

const char *cluster_holding_node(const struct holding *h)
{
	return h->node->name;
}

const char *cluster_holding_space(const struct holding *h)
{
	return quota_space_name(h->space);
}

bool cluster_holding_waits(const struct holding *h)
{
	return node_book_waits(h->node, h);
}

struct hold_share cluster_holding_share(const struct holding *h, size_t i)
{
	const struct card_share *s = &h->shares[i];

	return (struct hold_share) {
		.container = s->container,
		.uuid = h->node->cards[s->card].uuid,
		.memory_mib = s->memory_mib,
		.cores = s->cores,
		.profile = holding_profile(h, s),
		.at = s->at,
		.made = holding_made(h, s),
	};
}

bool cluster_next_book(const struct cluster *c, size_t *at, const struct node_book **out)
{
	void *value;

	if (!map_next(c->books, at, NULL, &value))
		return false;
	*out = value;
	return true;
}

const struct node_book *cluster_book(const struct cluster *c, const char *node)
{
	return map_get(c->books, node);
}

bool cluster_next_node(const struct cluster *c, size_t *at, const struct node_state **out)
{
	const struct node_book *b;

	while (cluster_next_book(c, at, &b)) {
		*out = b->state;
		if (b->state != NULL)
			return true;
	}
	return false;
}

bool cluster_next_holding(const struct cluster *c, size_t *at, const struct holding **out)
{
	void *value;

	if (!map_next(c->holdings, at, NULL, &value))
		return false;
	*out = value;
	return true;
}

size_t cluster_holding_count(const struct cluster *c)
{
	return map_count(c->holdings);
}

/* The least is worked out when asked for: nodes change some times a second, and most changes do not touch it. */
struct cluster_extremes cluster_extremes(struct cluster *c)
{
	const struct node_state *n;
	int32_t least = 0;

	for (size_t at = 0; !c->least_known && cluster_next_node(c, &at, &n);)
		for (size_t i = 0; i < n->count; i++) {
			int32_t most = node_card_most_memory(n, &n->cards[i]);

			least = least == 0 ? most : HM_MIN(least, most);
		}
	if (!c->least_known)
		c->extremes.least_memory_mib = least;
	c->least_known = true;
	return c->extremes;
}
