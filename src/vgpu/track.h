/* What this process holds on its cards: a hash of fixed-size records in mapped memory, at the same cost for one as for
 * a million. Records are made before the driver is called, so that keeping one cannot fail afterwards. */
#ifndef HM_VGPU_TRACK_H
#define HM_VGPU_TRACK_H

#include <stdbool.h>
#include <stdint.h>

enum {
	TRACK_SHARDS = 256,
	TRACK_FIRST_BITS = 12, /* 4,096 buckets at first: a program with few records stays in few cache lines */
	TRACK_STEP_BITS = 4,
	TRACK_LAST_BITS = 24,
	TRACK_CHUNK_RECORDS = 1 << 14,
	TRACK_CHUNKS = 1 << 11, /* 33 million records at most */
	TRACK_FREE_LISTS = 16,
};

enum track_kind {
	TRACK_NONE,
	TRACK_POINTER, /* of cuMemAlloc and its like, and of pools */
	TRACK_PAGE,    /* 2 MiB in which small allocations lie */
	TRACK_HANDLE,  /* of cuMemCreate */
	TRACK_MAPPING, /* of a handle */
	TRACK_POOL,
	TRACK_ARRAY, /* and mipmapped arrays */
	TRACK_BIND,  /* of a handle to a multicast object; `bytes` is the object's record, not a charge */
	TRACK_GREEN, /* the CUcontext of a green context; `owner` is its device, nothing is charged */
	TRACK_TILE,  /* of a sparse array, with memory mapped into it; `bytes` is the array's record, not a charge */
	TRACK_GRAPH, /* an instantiated graph with memory nodes, see graph.h; nothing is charged */
};

struct record {
	uint64_t key;
	uint64_t bytes; /* charged for it */
	uint64_t owner; /* a pointer's or an array's context, a pointer's pool; a mapping's, bind's or tile's handle
			   record */
	uint32_t number, next;
	uint32_t refs;     /* a page's allocations; a handle's references */
	uint32_t mappings; /* of a handle, and what else keeps its memory */
	uint8_t kind, card;
	uint8_t pooled;
	uint8_t small;  /* its charge stands in its pages; a handle: of a multicast object; an array: without memory of
			   its own */
	uint8_t shared; /* a handle that other processes may have */
};

struct track {
	_Atomic uint32_t locks[TRACK_SHARDS];
	_Atomic uint32_t free_locks[TRACK_FREE_LISTS];
	uint32_t free[TRACK_FREE_LISTS];
	uint32_t *buckets; /* 1 << bits of them; changed under all locks */
	unsigned bits;
	_Atomic uint32_t growing;
	struct record *_Atomic chunks[TRACK_CHUNKS];
	_Atomic uint32_t fresh; /* records ever made */
};

/* A record of nothing yet; NULL: no memory. */
struct record *track_new(struct track *t);
void track_free(struct track *t, struct record *r); /* NULL is nothing */

/* Files a record under its kind and key. */
void track_put(struct track *t, struct record *r);
/* Takes the youngest record of this kind and key out; NULL: there is none. */
struct record *track_take(struct track *t, enum track_kind kind, uint64_t key);

/* Takes this very record out. */
void track_remove(struct track *t, struct record *r);

/* The record stays in, its lock held until track_release; NULL (no lock held): there is none. */
struct record *track_hold(struct track *t, enum track_kind kind, uint64_t key);
void track_release(struct track *t, enum track_kind kind, uint64_t key);

/* Counts one more reference in the record of this key. False: there is none. */
bool track_ref_known(struct track *t, enum track_kind kind, uint64_t key);
/* The same, filing `spare` (its kind and key set) where there is none. True: spare was used. */
bool track_ref(struct track *t, struct record *spare);
/* Changes the counts of a record that is in; neither goes below 0. True: both are 0 now, and the record is out. */
bool track_count(struct track *t, struct record *r, int refs, int mappings);
/* One reference less. True: it was the last, and the record is gone. */
bool track_unref(struct track *t, enum track_kind kind, uint64_t key);

/* For each record there is, without a lock: `visit` looks, and takes out what it wants by track_take. */
void track_each(struct track *t, void (*visit)(const struct record *r, void *arg), void *arg);

#endif
