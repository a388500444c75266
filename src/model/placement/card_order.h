/* In which order a node's cards are tried: HAMi's policies, each a list of keys. */
#ifndef HM_MODEL_PLACEMENT_CARD_ORDER_H
#define HM_MODEL_PLACEMENT_CARD_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ascending; a card is tried the sooner the later it comes. */
enum card_key { KEY_FULLER, KEY_EMPTIER, KEY_NUMA_UP, KEY_NUMA_DOWN, KEY_FEWER_SLOTS, KEY_INDEX };

enum { CARD_ORDER_MAX_KEYS = 4 };

struct card_order {
	enum card_key keys[CARD_ORDER_MAX_KEYS];
	size_t count;
	bool mutex;    /* only cards that nobody has */
	bool topology; /* of all cards that would do, those joined best */
};

/* "binpack", "spread", "mutex", "topology-aware", or a chain such as "numa,binpack"; anything else is spread.
 * numa_bind: all of a container's cards shall be of one NUMA node. */
struct card_order card_order_read(const char *policy, bool numa_bind);

/* A card as it is compared. */
struct card_rank {
	uint32_t card; /* index in the node */
	uint32_t index;
	int32_t numa;
	int64_t slots; /* used */
	float fullness;
	double rank; /* above all keys: the smaller the sooner it is tried */
};

/* Stable: equals keep the order they came in. */
void card_order_sort(const struct card_order *o, struct card_rank *cards, size_t count);

#endif
