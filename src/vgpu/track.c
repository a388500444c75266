#include "vgpu/track.h"

#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>

#include "core/macros.h"

enum { SPINS_BEFORE_YIELD = 100 };

static void lock(_Atomic uint32_t *word)
{
	unsigned spins = 0;

	while (__atomic_exchange_n((uint32_t *)word, 1, __ATOMIC_ACQUIRE) != 0) {
		if (++spins > SPINS_BEFORE_YIELD)
			sched_yield();
	}
}

static void unlock(_Atomic uint32_t *word)
{
	__atomic_store_n((uint32_t *)word, 0, __ATOMIC_RELEASE);
}

/* Memory that a forked child does not get: it starts with nothing. */
static void *map_pages(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	madvise(p, bytes, MADV_DONTFORK);
	return p;
}

static struct record *record_at(struct track *t, uint32_t number)
{
	return &t->chunks[number / TRACK_CHUNK_RECORDS][number % TRACK_CHUNK_RECORDS];
}

/* Threads have stacks of their own, far apart. */
static unsigned own_list(void)
{
	return (unsigned)((uintptr_t)__builtin_frame_address(0) >> 16) * 2654435761U >> 28;
}

static bool have_chunk(struct track *t, uint32_t chunk)
{
	struct record *none = NULL, *fresh;

	if (t->chunks[chunk] != NULL)
		return true;
	fresh = map_pages(TRACK_CHUNK_RECORDS * sizeof(struct record));
	if (fresh == NULL)
		return false;
	if (!__atomic_compare_exchange_n((struct record **)&t->chunks[chunk], &none, fresh, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE))
		munmap(fresh, TRACK_CHUNK_RECORDS * sizeof(struct record));
	return true;
}

/* A number never used before; 0 is none. */
static uint32_t fresh_number(struct track *t)
{
	uint32_t number = t->fresh;

	do {
		if (number + 1 >= (uint32_t)TRACK_CHUNKS * TRACK_CHUNK_RECORDS ||
		    !have_chunk(t, (number + 1) / TRACK_CHUNK_RECORDS))
			return 0;
	} while (!__atomic_compare_exchange_n((uint32_t *)&t->fresh, &number, number + 1, false, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return number + 1;
}

static uint32_t *buckets(struct track *t)
{
	uint32_t *have = t->buckets, *fresh;

	if (HM_LIKELY(have != NULL))
		return have;
	fresh = map_pages(TRACK_BUCKETS * sizeof *fresh);
	if (fresh == NULL)
		return NULL;
	if (__atomic_compare_exchange_n((uint32_t **)&t->buckets, &have, fresh, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return fresh;
	munmap(fresh, TRACK_BUCKETS * sizeof *fresh);
	return have;
}

struct record *track_new(struct track *t)
{
	unsigned list = own_list();
	uint32_t number;

	if (buckets(t) == NULL)
		return NULL;
	lock(&t->free_locks[list]);
	number = t->free[list];
	if (number != 0)
		t->free[list] = record_at(t, number)->next;
	unlock(&t->free_locks[list]);
	if (number == 0)
		number = fresh_number(t);
	if (number == 0)
		return NULL;
	*record_at(t, number) = (struct record) { .number = number };
	return record_at(t, number);
}

void track_free(struct track *t, struct record *r)
{
	unsigned list = own_list();

	if (r == NULL)
		return;
	r->kind = TRACK_NONE;
	lock(&t->free_locks[list]);
	r->next = t->free[list];
	t->free[list] = r->number;
	unlock(&t->free_locks[list]);
}

static uint32_t bucket_of(enum track_kind kind, uint64_t key)
{
	return (uint32_t)((key + (uint64_t)kind) * UINT64_C(0x9e3779b97f4a7c15) >> 44);
}

static void link_in(uint32_t *bucket, struct record *r)
{
	r->next = *bucket;
	*bucket = r->number;
}

/* The link that leads to the record, or to the chain's end. */
static uint32_t *find(struct track *t, uint32_t *bucket, enum track_kind kind, uint64_t key)
{
	while (*bucket != 0) {
		struct record *r = record_at(t, *bucket);

		if (r->key == key && r->kind == kind)
			break;
		bucket = &r->next;
	}
	return bucket;
}

void track_put(struct track *t, struct record *r)
{
	uint32_t bucket = bucket_of(r->kind, r->key);

	lock(&t->locks[bucket % TRACK_SHARDS]);
	link_in(&t->buckets[bucket], r);
	unlock(&t->locks[bucket % TRACK_SHARDS]);
}

struct record *track_hold(struct track *t, enum track_kind kind, uint64_t key)
{
	uint32_t bucket = bucket_of(kind, key), *at;

	if (t->buckets == NULL)
		return NULL;
	lock(&t->locks[bucket % TRACK_SHARDS]);
	at = find(t, &t->buckets[bucket], kind, key);
	if (*at != 0)
		return record_at(t, *at);
	unlock(&t->locks[bucket % TRACK_SHARDS]);
	return NULL;
}

void track_release(struct track *t, enum track_kind kind, uint64_t key)
{
	unlock(&t->locks[bucket_of(kind, key) % TRACK_SHARDS]);
}

struct record *track_take(struct track *t, enum track_kind kind, uint64_t key)
{
	uint32_t bucket = bucket_of(kind, key), *at;
	struct record *r = NULL;

	if (t->buckets == NULL)
		return NULL;
	lock(&t->locks[bucket % TRACK_SHARDS]);
	at = find(t, &t->buckets[bucket], kind, key);
	if (*at != 0) {
		r = record_at(t, *at);
		*at = r->next;
	}
	unlock(&t->locks[bucket % TRACK_SHARDS]);
	return r;
}

bool track_ref_known(struct track *t, enum track_kind kind, uint64_t key)
{
	struct record *r = track_hold(t, kind, key);

	if (r == NULL)
		return false;
	r->refs++;
	track_release(t, kind, key);
	return true;
}

bool track_ref(struct track *t, struct record *spare)
{
	uint32_t bucket = bucket_of(spare->kind, spare->key), *at;
	bool used;

	lock(&t->locks[bucket % TRACK_SHARDS]);
	at = find(t, &t->buckets[bucket], spare->kind, spare->key);
	used = *at == 0;
	if (used) {
		spare->refs = 1;
		link_in(&t->buckets[bucket], spare);
	} else {
		record_at(t, *at)->refs++;
	}
	unlock(&t->locks[bucket % TRACK_SHARDS]);
	return used;
}

bool track_unref(struct track *t, enum track_kind kind, uint64_t key)
{
	uint32_t bucket = bucket_of(kind, key), *at;
	struct record *gone = NULL;

	if (t->buckets == NULL)
		return false;
	lock(&t->locks[bucket % TRACK_SHARDS]);
	at = find(t, &t->buckets[bucket], kind, key);
	if (*at != 0 && --record_at(t, *at)->refs == 0) {
		gone = record_at(t, *at);
		*at = gone->next;
	}
	unlock(&t->locks[bucket % TRACK_SHARDS]);
	track_free(t, gone);
	return gone != NULL;
}

void track_each(struct track *t, void (*visit)(const struct record *r, void *arg), void *arg)
{
	uint32_t count = t->fresh;

	for (uint32_t i = 1; i <= count; i++) {
		struct record r = *record_at(t, i);

		if (r.kind != TRACK_NONE)
			visit(&r, arg);
	}
}
