/* A bounded memory of numbers that are dear to work out again, by 64-bit keys: the older ones of a set give way. A key
 * stands for all that the number was made of, and looks random; equal keys are taken for the same. */
#ifndef HM_MODEL_PLACEMENT_RECALL_H
#define HM_MODEL_PLACEMENT_RECALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/cleanup.h"

enum { RECALL_WAYS = 4 }; /* of a set, which is a line of the processor's cache */

struct recalled {
	uint64_t key; /* 0: empty */
	int64_t number;
};

struct recall_set {
	struct recalled ways[RECALL_WAYS]; /* the newest first */
};

struct recall {
	unsigned bits; /* of the number of sets */
	struct recall_set *sets;
	void *memory; /* owned; they begin in it at a line's begin */
};

/* 2^bits sets, bits from 1 to 32. NULL where memory is short. What no key needs is no page of memory. */
struct recall *recall_new(unsigned bits);
void recall_free(struct recall *r);
HM_DEFINE_AUTO(recall, recall_free);

/* By the highest bits of `at`, so that a caller may have keys that are asked for together lie side by side. */
static inline struct recall_set *recall_set(const struct recall *r, uint64_t at)
{
	return &r->sets[at >> (64 - r->bits)];
}

/* NULL: not known. */
static inline const int64_t *recall_find(const struct recall_set *s, uint64_t key)
{
	for (size_t i = 0; i < RECALL_WAYS; i++)
		if (s->ways[i].key == key)
			return &s->ways[i].number;
	return NULL;
}

static inline void recall_keep(struct recall_set *s, uint64_t key, int64_t number)
{
	memmove(&s->ways[1], &s->ways[0], (RECALL_WAYS - 1) * sizeof s->ways[0]);
	s->ways[0] = (struct recalled) { key, number };
}

#endif
