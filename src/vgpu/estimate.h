/* How long a kernel takes, learned from those that were measured: a moving average by function and grid, one table a
 * process, of fixed size. Races between threads cost an observation, nothing else. */
#ifndef HM_VGPU_ESTIMATE_H
#define HM_VGPU_ESTIMATE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	ESTIMATE_ROWS = 2048,
	ESTIMATE_PROBES = 8,
	ESTIMATE_LEARN = 4,        /* the first launches of a kind are all measured */
	ESTIMATE_UNMEASURED = 32,  /* of a kind, and then one is measured */
	ESTIMATE_MARK_NS = 200000, /* estimated GPU time that goes unmeasured at most */
};

struct estimate {
	_Atomic uint64_t key;     /* 0: free */
	_Atomic uint64_t ns;      /* 0: not known */
	_Atomic uint32_t seen;    /* measured ones, at most ESTIMATE_LEARN */
	_Atomic uint32_t skipped; /* launches since the last measured one */
};

struct estimates {
	struct estimate rows[ESTIMATE_ROWS];
	_Atomic uint64_t unmarked_ns; /* estimates of launches since any was measured */
};

uint64_t estimate_key(const void *function, uint64_t blocks, uint64_t block_threads);
/* The row of a key; a new one takes the place of another where all its places are taken. */
struct estimate *estimate_find(struct estimates *all, uint64_t key);
/* One more launch of a kind. True: measure it; *weight is then for how many launches it stands. */
bool estimate_wants_mark(struct estimates *all, struct estimate *row, uint32_t *weight);
/* A measured span. */
void estimate_learn(struct estimate *row, uint64_t span_ns);

#endif
