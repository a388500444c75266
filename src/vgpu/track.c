#include "vgpu/track.h"

#include <sched.h>
#include <stdatomic.h>
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

static uint64_t hash_of(enum track_kind kind, uint64_t key)
{
	return (key + (uint64_t)kind) * UINT64_C(0x9e3779b97f4a7c15);
}

/* The highest bits choose the lock, and some more the bucket: a bucket has the same lock in tables of all sizes. */
static _Atomic uint32_t *lock_of(struct track *t, uint64_t hash)
{
	return &t->locks[hash >> 56];
}

static uint32_t *bucket_of(struct track *t, uint64_t hash)
{
	return &t->buckets[hash >> (64 - t->bits)];
}

static void link_in(uint32_t *bucket, struct record *r)
{
	r->next = *bucket;
	*bucket = r->number;
}

/* Chains are turned around twice, so that of two records with one key the younger stays in front. */
static void move_chain(struct track *t, uint32_t number)
{
	uint32_t reversed = 0;

	while (number != 0) {
		struct record *r = record_at(t, number);
		uint32_t next = r->next;

		r->next = reversed;
		reversed = number;
		number = next;
	}
	while (reversed != 0) {
		struct record *r = record_at(t, reversed);

		reversed = r->next;
		link_in(bucket_of(t, hash_of(r->kind, r->key)), r);
	}
}

static void replace_table(struct track *t, uint32_t *fresh, unsigned bits)
{
	uint32_t *old = t->buckets;
	size_t count = old != NULL ? (size_t)1 << t->bits : 0;

	t->buckets = fresh;
	t->bits = bits;
	for (size_t i = 0; i < count; i++)
		move_chain(t, old[i]);
	if (old != NULL)
		munmap(old, count * sizeof *old);
}

/* As many buckets as records, or more. Without memory for that (false), chains get longer. True at once while another
 * thread is at it. */
static bool grow(struct track *t)
{
	uint32_t *fresh = NULL;
	unsigned bits;

	if (atomic_exchange(&t->growing, 1) != 0)
		return true;
	bits = t->buckets == NULL ? TRACK_FIRST_BITS : t->bits + TRACK_STEP_BITS;
	if (bits <= TRACK_LAST_BITS)
		fresh = map_pages(sizeof *fresh << bits);
	for (unsigned i = 0; fresh != NULL && i < TRACK_SHARDS; i++)
		lock(&t->locks[i]);
	if (fresh != NULL) {
		replace_table(t, fresh, bits);
		for (unsigned i = 0; i < TRACK_SHARDS; i++)
			unlock(&t->locks[i]);
	}
	atomic_store(&t->growing, 0);
	return fresh != NULL;
}

static bool have_table(struct track *t)
{
	while (HM_UNLIKELY(__atomic_load_n(&t->buckets, __ATOMIC_ACQUIRE) == NULL)) {
		if (!grow(t))
			return false;
		sched_yield();
	}
	return true;
}

struct record *track_new(struct track *t)
{
	unsigned list = own_list();
	uint32_t number;

	if (!have_table(t))
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
	if (number >> t->bits != 0)
		(void)grow(t);
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
	uint64_t hash = hash_of(r->kind, r->key);

	lock(lock_of(t, hash));
	link_in(bucket_of(t, hash), r);
	unlock(lock_of(t, hash));
}

struct record *track_hold(struct track *t, enum track_kind kind, uint64_t key)
{
	uint64_t hash = hash_of(kind, key);
	uint32_t *at;

	if (__atomic_load_n(&t->buckets, __ATOMIC_ACQUIRE) == NULL)
		return NULL;
	lock(lock_of(t, hash));
	at = find(t, bucket_of(t, hash), kind, key);
	if (*at != 0)
		return record_at(t, *at);
	unlock(lock_of(t, hash));
	return NULL;
}

void track_release(struct track *t, enum track_kind kind, uint64_t key)
{
	unlock(lock_of(t, hash_of(kind, key)));
}

struct record *track_take(struct track *t, enum track_kind kind, uint64_t key)
{
	uint64_t hash = hash_of(kind, key);
	struct record *r = NULL;
	uint32_t *at;

	if (__atomic_load_n(&t->buckets, __ATOMIC_ACQUIRE) == NULL)
		return NULL;
	lock(lock_of(t, hash));
	at = find(t, bucket_of(t, hash), kind, key);
	if (*at != 0) {
		r = record_at(t, *at);
		*at = r->next;
	}
	unlock(lock_of(t, hash));
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
	uint64_t hash = hash_of(spare->kind, spare->key);
	uint32_t *at;
	bool used;

	lock(lock_of(t, hash));
	at = find(t, bucket_of(t, hash), spare->kind, spare->key);
	used = *at == 0;
	if (used) {
		spare->refs = 1;
		link_in(bucket_of(t, hash), spare);
	} else {
		record_at(t, *at)->refs++;
	}
	unlock(lock_of(t, hash));
	return used;
}

static void unlink_this(struct track *t, struct record *r)
{
	uint32_t *at = bucket_of(t, hash_of(r->kind, r->key));

	while (*at != 0 && *at != r->number)
		at = &record_at(t, *at)->next;
	if (*at != 0)
		*at = r->next;
}

void track_remove(struct track *t, struct record *r)
{
	_Atomic uint32_t *word = lock_of(t, hash_of(r->kind, r->key));

	lock(word);
	unlink_this(t, r);
	unlock(word);
}

bool track_count(struct track *t, struct record *r, int refs, int mappings)
{
	_Atomic uint32_t *word = lock_of(t, hash_of(r->kind, r->key));
	bool gone;

	lock(word);
	if (refs > 0 || r->refs > 0)
		r->refs += (unsigned)refs;
	if (mappings > 0 || r->mappings > 0)
		r->mappings += (unsigned)mappings;
	gone = r->refs == 0 && r->mappings == 0;
	if (gone)
		unlink_this(t, r);
	unlock(word);
	return gone;
}

bool track_unref(struct track *t, enum track_kind kind, uint64_t key)
{
	uint64_t hash = hash_of(kind, key);
	struct record *gone = NULL;
	uint32_t *at;

	if (__atomic_load_n(&t->buckets, __ATOMIC_ACQUIRE) == NULL)
		return false;
	lock(lock_of(t, hash));
	at = find(t, bucket_of(t, hash), kind, key);
	if (*at != 0 && --record_at(t, *at)->refs == 0) {
		gone = record_at(t, *at);
		*at = gone->next;
	}
	unlock(lock_of(t, hash));
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
