#include "region/ledger.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"
#include "region/shared.h"
#include "region/slots.h"

void (*region_step_hook)(void);

static struct region_layout *fresh(void)
{
	return calloc(1, sizeof(struct region_layout));
}

static void attach(struct region_layout *r, uint32_t pid, struct ledger *l)
{
	const struct process_id me = { .pid = pid, .start_time = 7, .pid_namespace = 9 };

	assert_true(slot_claim(r, &me, l));
}

static void holds_the_limit_to_the_byte(void **state)
{
	struct region_layout *r = fresh();
	struct ledger a = { 0 }, b = { 0 };

	(void)state;
	attach(r, 1, &a);
	attach(r, 2, &b);
	assert_int_equal(ledger_reserve(&a, 3, 1000, 600), LEDGER_OK);
	assert_int_equal(ledger_reserve(&b, 3, 1000, 401), LEDGER_FULL);
	assert_int_equal(ledger_reserve(&b, 3, 1000, 400), LEDGER_OK);
	assert_int_equal(ledger_reserve(&b, 3, 1000, 1), LEDGER_FULL);
	assert_int_equal(ledger_reserve(&b, 3, 1000, UINT64_MAX), LEDGER_FULL);
	assert_int_equal(ledger_reserve(&b, 4, 1000, 1000), LEDGER_OK);
	assert_int_equal(ledger_used(r, 3), 1000);
	assert_int_equal(ledger_slot_used(r, a.slot, 3), 600);
	assert_int_equal(ledger_release(&a, 3, 600), LEDGER_OK);
	assert_int_equal(ledger_used(r, 3), 400);
	assert_int_equal(r->counters[3].peak_bytes, 1000);
	assert_true(ledger_clear_slot(r, b.slot));
	assert_int_equal(ledger_used(r, 3), 0);
	assert_int_equal(ledger_used(r, 4), 0);
	free(r);
}

static void takes_the_largest_numbers(void **state)
{
	struct region_layout *r = fresh();
	struct ledger l = { 0 };

	(void)state;
	attach(r, 1, &l);
	assert_int_equal(ledger_reserve(&l, 0, UINT64_MAX, REGION_MAX_BYTES), LEDGER_OK);
	assert_int_equal(ledger_reserve(&l, 0, UINT64_MAX, 1), LEDGER_FULL);
	assert_int_equal(ledger_slot_used(r, l.slot, 0), REGION_MAX_BYTES);
	assert_int_equal(ledger_release(&l, 0, REGION_MAX_BYTES), LEDGER_OK);
	assert_int_equal(ledger_used(r, 0), 0);
	free(r);
}

static void notices_a_lost_slot_and_a_scribbled_counter(void **state)
{
	struct region_layout *r = fresh();
	struct ledger l = { 0 };

	(void)state;
	attach(r, 1, &l);
	assert_int_equal(ledger_reserve(&l, 0, 1000, 10), LEDGER_OK);
	r->counters[0].used = 4;
	assert_int_equal(ledger_release(&l, 0, 10), LEDGER_LOST);
	assert_int_equal(ledger_used(r, 0), 0);
	r->heads[l.slot].who++;
	assert_int_equal(ledger_reserve(&l, 0, 1000, 10), LEDGER_LOST);
	assert_int_equal(ledger_used(r, 0), 0);
	free(r);
}

/* Whoever scribbles on the counter gets a process no further than the limit: it knows what it holds itself. */
static void a_forged_counter_gives_nobody_more(void **state)
{
	struct region_layout *r = fresh();
	struct ledger l = { 0 }, other = { 0 };

	(void)state;
	attach(r, 1, &l);
	attach(r, 2, &other);
	assert_int_equal(ledger_reserve(&l, 0, 1000, 600), LEDGER_OK);
	r->counters[0].used = 599;
	assert_int_equal(ledger_reserve(&l, 0, 1000, 1), LEDGER_LOST);
	assert_int_equal(ledger_used(r, 0), 599);
	assert_int_equal(ledger_release(&l, 0, 601), LEDGER_LOST);
	assert_int_equal(ledger_used(r, 0), 599);
	r->counters[0].used = 600;
	assert_int_equal(ledger_reserve(&other, 0, 1000, 400), LEDGER_OK);
	assert_int_equal(ledger_reserve(&l, 0, 1000, 1), LEDGER_FULL);
	assert_int_equal(ledger_release(&l, 0, 600), LEDGER_OK);
	assert_int_equal(ledger_reserve(&l, 0, 1000, 600), LEDGER_OK);
	free(r);
}

/* Random operations of several processes against plain sums. */
static void follows_the_model(void **state)
{
	enum { PROCESSES = 5, CARDS = 3, LIMIT = 100000 };
	struct region_layout *r = fresh();
	uint64_t held[PROCESSES][CARDS] = { 0 }, sum[CARDS] = { 0 };
	struct ledger l[PROCESSES] = { 0 };
	uint64_t x = 88172645463325252U;

	(void)state;
	for (unsigned i = 0; i < PROCESSES; i++)
		attach(r, 100 + i, &l[i]);
	for (int round = 0; round < 200000; round++) {
		unsigned p, c;
		uint64_t n;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		p = (unsigned)(x >> 8) % PROCESSES;
		c = (unsigned)(x >> 16) % CARDS;
		n = (x >> 24) % 9000 + 1;
		if ((x & 7) < 4) {
			enum ledger_result want = sum[c] + n <= LIMIT ? LEDGER_OK : LEDGER_FULL;

			assert_int_equal(ledger_reserve(&l[p], c, LIMIT, n), want);
			held[p][c] += want == LEDGER_OK ? n : 0;
			sum[c] += want == LEDGER_OK ? n : 0;
		} else if ((x & 7) < 7) {
			n = HM_MIN(n, held[p][c]);
			assert_int_equal(ledger_release(&l[p], c, n), LEDGER_OK);
			held[p][c] -= n;
			sum[c] -= n;
		} else if (x >> 40 & 1) {
			assert_true(ledger_clear_slot(r, l[p].slot));
			for (c = 0; c < CARDS; c++) {
				sum[c] -= held[p][c];
				held[p][c] = 0;
				l[p].held[c] = 0; /* the slot's next owner has nothing */
			}
			c = 0;
		}
		assert_int_equal(ledger_used(r, c), sum[c]);
		assert_int_equal(ledger_slot_used(r, l[p].slot, c), held[p][c]);
	}
	free(r);
}

enum { THREADS = 12, ROUNDS = 30000, THREAD_LIMIT = 5000 };
static struct ledger shared_ledgers[2];
static _Atomic int64_t driver;
static _Atomic int over;

static void *races(void *arg)
{
	struct ledger *l = &shared_ledgers[(uintptr_t)arg % 2];
	uint64_t held = 0;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t n = 1 + (i * 7 + (uintptr_t)arg) % 900;

		if (ledger_reserve(l, 0, THREAD_LIMIT, n) == LEDGER_OK) {
			if (atomic_fetch_add(&driver, (int64_t)n) + (int64_t)n > THREAD_LIMIT)
				over++;
			held += n;
		}
		if (i % 3 != 0 && held > 0) {
			n = HM_MIN(n, held);
			driver -= (int64_t)n;
			assert_int_equal(ledger_release(l, 0, n), LEDGER_OK);
			held -= n;
		}
	}
	driver -= (int64_t)held;
	assert_int_equal(ledger_release(l, 0, held), LEDGER_OK);
	return NULL;
}

static void threads_race_at_the_limit(void **state)
{
	struct region_layout *r = fresh();
	pthread_t t[THREADS];

	(void)state;
	attach(r, 1, &shared_ledgers[0]);
	attach(r, 2, &shared_ledgers[1]);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, races, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(over, 0);
	assert_true(r->counters[0].peak_bytes <= THREAD_LIMIT);
	assert_true(r->counters[0].peak_bytes > THREAD_LIMIT / 2);
	assert_int_equal(ledger_used(r, 0), 0);
	assert_int_equal(ledger_slot_used(r, shared_ledgers[0].slot, 0), 0);
	assert_int_equal(ledger_slot_used(r, shared_ledgers[1].slot, 0), 0);
	free(r);
}

/* Stops an operation before its Nth access, for every N, as a kill would; then lets another process overwrite the word
 * or not; then clears, itself stopped before its Mth access, for every M; then clears for good. */
static jmp_buf stopped;
static unsigned steps_left;

static void stop_here(void)
{
	if (steps_left-- == 0)
		longjmp(stopped, 1);
}

static bool run_stopped(unsigned after, void (*f)(void *), void *arg)
{
	steps_left = after;
	region_step_hook = stop_here;
	if (setjmp(stopped) != 0) {
		region_step_hook = NULL;
		return true;
	}
	f(arg);
	region_step_hook = NULL;
	return false;
}

static void reserves_7(void *l)
{
	ledger_reserve(l, 0, 100, 7);
}

static void releases_7(void *l)
{
	ledger_release(l, 0, 7);
}

static void clears(void *l)
{
	struct ledger *ledger = l;

	ledger_clear_slot(ledger->region, ledger->slot);
}

static bool stop_twice(void (*operation)(void *), unsigned n, bool overwritten, unsigned m, bool *first_stopped)
{
	struct region_layout *r = fresh();
	struct ledger dying = { 0 }, living = { 0 };
	bool again;

	attach(r, 1, &dying);
	attach(r, 2, &living);
	/* Held on two lanes, one with a negative balance, and after other operations on the same card. */
	ledger_reserve(&dying, 0, 100, 20);
	for (unsigned i = 0; i < REGION_LANES; i++)
		dying.lane_busy[i] = r->lanes[dying.slot][i].balance[0] != 0;
	ledger_release(&dying, 0, 9);
	memset(dying.lane_busy, 0, sizeof dying.lane_busy);
	ledger_reserve(&living, 0, 100, 30);
	*first_stopped = run_stopped(n, operation, &dying);
	if (ledger_slot_used(r, dying.slot, 0) + 30 != ledger_used(r, 0))
		fail_msg("stopped at %u: seen from outside, the slots' sum is not the counter", n);
	if (overwritten) {
		assert_int_equal(ledger_reserve(&living, 0, 100, 5), LEDGER_OK);
		assert_int_equal(ledger_release(&living, 0, 5), LEDGER_OK);
	}
	again = run_stopped(m, clears, &dying);
	if (overwritten) {
		assert_int_equal(ledger_reserve(&living, 0, 100, 5), LEDGER_OK);
		assert_int_equal(ledger_release(&living, 0, 5), LEDGER_OK);
	}
	assert_true(ledger_clear_slot(r, dying.slot));
	if (ledger_used(r, 0) != 30 || ledger_slot_used(r, dying.slot, 0) != 0 ||
	    ledger_slot_used(r, living.slot, 0) != 30)
		fail_msg("stopped at %u and %u, overwritten %d: %lu in use, %lu dead", n, m, overwritten,
			 ledger_used(r, 0), ledger_slot_used(r, dying.slot, 0));
	free(r);
	return again;
}

static void a_kill_between_any_two_accesses_loses_nothing(void **state)
{
	static void (*const operations[])(void *) = { reserves_7, releases_7 };
	unsigned cases = 0;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(operations); i++) {
		for (int overwritten = 0; overwritten < 2; overwritten++) {
			bool first = true;

			for (unsigned n = 0; first; n++) {
				bool again = true;

				for (unsigned m = 0; again; m++, cases++)
					again = stop_twice(operations[i], n, overwritten, m, &first);
			}
		}
	}
	assert_true(cases > 1000);
}

/* While `living` is held up before its Kth access, `dying` does J whole operations and is killed before the Nth access
 * of the next: marks repeat after 8 operations, and must not be taken for each other. */
static struct {
	struct ledger *dying;
	unsigned at, whole, stop;
	bool reached, was_stopped;
} intrusion;

static void intrude(void)
{
	if (intrusion.at-- != 0)
		return;
	intrusion.reached = true;
	region_step_hook = NULL;
	for (unsigned i = 0; i < intrusion.whole; i++) {
		/* Some on another card, so that the card's word keeps an old mark of this lane. */
		unsigned card = i % 9 < 8 && intrusion.whole > 9 ? 1 : 0;

		if (i % 2 == 0)
			ledger_reserve(intrusion.dying, card, 100, 3);
		else
			ledger_release(intrusion.dying, card, 3);
	}
	intrusion.was_stopped = run_stopped(intrusion.stop, reserves_7, intrusion.dying);
}

static bool intrude_once(unsigned at, unsigned whole, unsigned stop)
{
	struct region_layout *r = fresh();
	struct ledger dying = { 0 }, living = { 0 };
	uint64_t held;

	attach(r, 1, &dying);
	attach(r, 2, &living);
	ledger_reserve(&dying, 0, 100, 10);
	ledger_reserve(&dying, 1, 100, 10);
	intrusion.dying = &dying;
	intrusion.at = at;
	intrusion.whole = whole;
	intrusion.stop = stop;
	intrusion.reached = intrusion.was_stopped = false;
	region_step_hook = intrude;
	held = ledger_reserve(&living, 0, 100, 30) == LEDGER_OK ? 30 : 0;
	region_step_hook = NULL;
	ledger_reserve(&living, 0, 100, 1);
	ledger_clear_slot(r, dying.slot);
	if (ledger_used(r, 0) != held + 1 || ledger_used(r, 1) != 0)
		fail_msg("at %u after %u stopped at %u: %lu and %lu", at, whole, stop, ledger_used(r, 0),
			 ledger_used(r, 1));
	free(r);
	return intrusion.reached;
}

static void marks_that_repeat_are_told_apart(void **state)
{
	bool reached = true;

	(void)state;
	for (unsigned at = 0; reached; at++) {
		for (unsigned whole = 0; whole < 20; whole++) {
			bool was_stopped = true;

			for (unsigned stop = 0; was_stopped; stop++) {
				reached = intrude_once(at, whole, stop);
				was_stopped = intrusion.was_stopped;
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holds_the_limit_to_the_byte),
		cmocka_unit_test(takes_the_largest_numbers),
		cmocka_unit_test(notices_a_lost_slot_and_a_scribbled_counter),
		cmocka_unit_test(a_forged_counter_gives_nobody_more),
		cmocka_unit_test(follows_the_model),
		cmocka_unit_test(threads_race_at_the_limit),
		cmocka_unit_test(a_kill_between_any_two_accesses_loses_nothing),
		cmocka_unit_test(marks_that_repeat_are_told_apart),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
