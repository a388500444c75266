#include "vgpu/track.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/macros.h"

static struct track *fresh(void)
{
	return mmap(NULL, sizeof(struct track), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void done(struct track *t)
{
	for (unsigned i = 0; i < TRACK_CHUNKS && t->chunks[i] != NULL; i++)
		munmap(t->chunks[i], TRACK_CHUNK_RECORDS * sizeof(struct record));
	if (t->buckets != NULL)
		munmap(t->buckets, sizeof(uint32_t) << t->bits);
	munmap(t, sizeof *t);
}

static void put(struct track *t, enum track_kind kind, uint64_t key, uint64_t bytes)
{
	struct record *r = track_new(t);

	assert_non_null(r);
	r->kind = (uint8_t)kind;
	r->key = key;
	r->bytes = bytes;
	track_put(t, r);
}

static void keeps_what_it_is_given(void **state)
{
	struct track *t = fresh();
	struct record *r;

	(void)state;
	assert_null(track_take(t, TRACK_POINTER, 5));
	assert_null(track_hold(t, TRACK_POINTER, 5));
	put(t, TRACK_POINTER, 5, 100);
	put(t, TRACK_HANDLE, 5, 200);
	put(t, TRACK_POINTER, 5, 300); /* the same address, younger */
	assert_null(track_take(t, TRACK_MAPPING, 5));
	r = track_hold(t, TRACK_HANDLE, 5);
	assert_int_equal(r->bytes, 200);
	track_release(t, TRACK_HANDLE, 5);
	r = track_take(t, TRACK_POINTER, 5);
	assert_int_equal(r->bytes, 300);
	track_free(t, r);
	r = track_take(t, TRACK_POINTER, 5);
	assert_int_equal(r->bytes, 100);
	track_free(t, r);
	assert_null(track_take(t, TRACK_POINTER, 5));
	track_free(t, NULL);
	done(t);
}

static void counts_references(void **state)
{
	struct track *t = fresh();
	struct record *spare = track_new(t), *second = track_new(t);

	(void)state;
	assert_false(track_unref(t, TRACK_PAGE, 7));
	spare->kind = second->kind = TRACK_PAGE;
	spare->key = second->key = 7;
	assert_true(track_ref(t, spare));
	assert_false(track_ref(t, second));
	assert_false(track_unref(t, TRACK_PAGE, 7));
	assert_true(track_unref(t, TRACK_PAGE, 7));
	assert_false(track_unref(t, TRACK_PAGE, 7));
	track_free(t, second);
	done(t);
}

static void counts_two_ways(void **state)
{
	struct track *t = fresh();
	struct record *old = track_new(t), *young = track_new(t);

	(void)state;
	old->kind = young->kind = TRACK_HANDLE;
	old->key = young->key = 9;
	old->refs = young->refs = 1;
	track_put(t, old);
	track_put(t, young);
	assert_false(track_count(t, old, 1, 0));
	assert_false(track_count(t, old, 0, 1));
	assert_false(track_count(t, old, -1, 0));
	assert_false(track_count(t, old, 0, -1));
	assert_false(track_count(t, old, 0, -1)); /* stays 0 */
	assert_true(track_count(t, old, -1, 0));
	assert_ptr_equal(track_hold(t, TRACK_HANDLE, 9), young);
	track_release(t, TRACK_HANDLE, 9);
	track_put(t, old);
	track_remove(t, young); /* from behind the other */
	assert_ptr_equal(track_take(t, TRACK_HANDLE, 9), old);
	assert_null(track_take(t, TRACK_HANDLE, 9));
	done(t);
}

static void count_one(const struct record *r, void *sum)
{
	*(uint64_t *)sum += r->bytes;
}

static void follows_the_model(void **state)
{
	enum { KEYS = 5000 };
	static uint64_t model[KEYS];
	struct track *t = fresh();
	uint64_t sum = 0, seen = 0;

	(void)state;
	srand(3);
	for (unsigned i = 0; i < 300000; i++) {
		unsigned key = (unsigned)rand() % KEYS;
		struct record *r = track_take(t, TRACK_POINTER, (uint64_t)key << 21);

		assert_int_equal(r != NULL ? r->bytes : 0, model[key]);
		if (r != NULL) {
			track_free(t, r);
			model[key] = 0;
		} else {
			model[key] = 1 + (uint64_t)rand() % 1000;
			put(t, TRACK_POINTER, (uint64_t)key << 21, model[key]);
		}
	}
	for (unsigned i = 0; i < KEYS; i++)
		sum += model[i];
	track_each(t, count_one, &seen);
	assert_int_equal(seen, sum);
	assert_true(t->fresh <= KEYS + 1); /* records are used again */
	done(t);
}

static void grows_and_forgets_nothing(void **state)
{
	enum { COUNT = 200000 };
	struct track *t = fresh();

	(void)state;
	for (uint64_t i = 0; i < COUNT; i++)
		put(t, TRACK_POINTER, i % (COUNT / 2) << 9, i);
	assert_true(t->bits > TRACK_FIRST_BITS + TRACK_STEP_BITS);
	for (uint64_t i = COUNT; i-- > 0;) { /* of two with one address the younger comes first */
		struct record *r = track_take(t, TRACK_POINTER, i % (COUNT / 2) << 9);

		assert_non_null(r);
		assert_int_equal(r->bytes, i);
		track_free(t, r);
	}
	done(t);
}

static struct track *shared;

static void *hammers(void *arg)
{
	uint64_t base = (uintptr_t)arg << 40;

	for (unsigned round = 0; round < 20; round++) {
		for (uint64_t i = 0; i < 2000; i++) {
			struct record *spare = track_new(shared);

			put(shared, TRACK_POINTER, base + i, i + 1);
			spare->kind = TRACK_PAGE;
			spare->key = i;
			if (!track_ref(shared, spare))
				track_free(shared, spare);
		}
		for (uint64_t i = 0; i < 2000; i++) {
			struct record *r = track_take(shared, TRACK_POINTER, base + i);

			if (r == NULL || r->bytes != i + 1)
				return arg;
			track_free(shared, r);
			track_unref(shared, TRACK_PAGE, i);
		}
	}
	return NULL;
}

static void threads_do_not_lose_records(void **state)
{
	pthread_t t[8];
	uint64_t left = 0;
	void *failed;

	(void)state;
	shared = fresh();
	for (uintptr_t i = 0; i < HM_COUNT(t); i++)
		assert_int_equal(pthread_create(&t[i], NULL, hammers, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < HM_COUNT(t); i++) {
		pthread_join(t[i], &failed);
		assert_null(failed);
	}
	track_each(shared, count_one, &left);
	assert_int_equal(left, 0);
	for (uint64_t i = 0; i < 2000; i++)
		assert_null(track_hold(shared, TRACK_PAGE, i));
	done(shared);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_it_is_given),    cmocka_unit_test(counts_references),
		cmocka_unit_test(counts_two_ways),           cmocka_unit_test(follows_the_model),
		cmocka_unit_test(grows_and_forgets_nothing), cmocka_unit_test(threads_do_not_lose_records),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
