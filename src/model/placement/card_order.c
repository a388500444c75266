#include "model/placement/card_order.h"

#include <string.h>

#include "core/macros.h"
#include "model/placement/words.h"

static void add_key(struct card_order *o, enum card_key key)
{
	for (size_t i = 0; i < o->count; i++)
		if (o->keys[i] == key)
			return;
	o->keys[o->count++] = key;
}

/* "numa, binpack": each word a key, in the order written. */
static void read_chain(struct card_order *o, const char *policy, bool numa_bind)
{
	static const struct {
		const char *word;
		enum card_key key;
	} words[] = { { "binpack", KEY_FULLER }, { "spread", KEY_EMPTIER }, { "numa", KEY_NUMA_UP } };
	struct cur list = cur_of(policy, strlen(policy));
	struct piece word;
	bool any = false;

	if (numa_bind)
		add_key(o, KEY_NUMA_UP);
	while (words_next(&list, &word))
		for (size_t i = 0; i < HM_COUNT(words); i++)
			if (piece_is(word, words[i].word)) {
				add_key(o, words[i].key);
				any = true;
			}
	if (!any)
		add_key(o, KEY_EMPTIER);
	add_key(o, KEY_INDEX);
}

struct card_order card_order_read(const char *policy, bool numa_bind)
{
	struct card_order o = { .mutex = words_have(policy, "mutex"),
				.topology = words_have(policy, "topology-aware") };
	bool pack = strcmp(policy, "binpack") == 0;

	if (strchr(policy, ',') != NULL || strcmp(policy, "numa") == 0) {
		read_chain(&o, policy, numa_bind);
	} else if (strcmp(policy, "mutex") == 0) {
		add_key(&o, KEY_FEWER_SLOTS);
		add_key(&o, KEY_NUMA_UP);
	} else if (numa_bind) {
		add_key(&o, pack ? KEY_NUMA_DOWN : KEY_NUMA_UP);
		add_key(&o, pack ? KEY_FULLER : KEY_EMPTIER);
	} else {
		add_key(&o, pack ? KEY_FULLER : KEY_EMPTIER);
		add_key(&o, KEY_NUMA_UP);
	}
	return o;
}

/* Negative: a comes before b. */
static int compare_key(enum card_key key, const struct card_rank *a, const struct card_rank *b)
{
	switch (key) {
	case KEY_FULLER: return (a->fullness > b->fullness) - (a->fullness < b->fullness);
	case KEY_EMPTIER: return (a->fullness < b->fullness) - (a->fullness > b->fullness);
	case KEY_NUMA_UP: return (a->numa > b->numa) - (a->numa < b->numa);
	case KEY_NUMA_DOWN: return (a->numa < b->numa) - (a->numa > b->numa);
	case KEY_FEWER_SLOTS: return (a->slots < b->slots) - (a->slots > b->slots);
	case KEY_INDEX: return (a->index > b->index) - (a->index < b->index);
	}
	return 0;
}

static bool comes_before(const struct card_order *o, const struct card_rank *a, const struct card_rank *b)
{
	if (a->rank != b->rank)
		return a->rank > b->rank;
	for (size_t i = 0; i < o->count; i++) {
		int c = compare_key(o->keys[i], a, b);

		if (c != 0)
			return c < 0;
	}
	return false;
}

/* By insertion: a node has few cards, and they are nearly in order already. */
void card_order_sort(const struct card_order *o, struct card_rank *cards, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct card_rank moved = cards[i];
		size_t at = i;

		for (; at > 0 && comes_before(o, &moved, &cards[at - 1]); at--)
			cards[at] = cards[at - 1];
		cards[at] = moved;
	}
}
