/* kill -9 at each point of what changes a region but is not the ledger's (test_ledger.c) or a claim
 * (test_process_slots.c): reaping and freeing slots, the compute limit, making the file, changing its limits, adding
 * cards. The first two are stopped before each access to shared memory; the others are real processes, killed before
 * each of their system calls, or between instructions. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/temp.h"
#include "region/bucket.h"
#include "region/map.h"
#include "region/region.h"
#include "region/shared.h"

void (*region_step_hook)(void);

static jmp_buf stopped;
static unsigned steps_left;

static void stop_here(void)
{
	if (steps_left-- == 0)
		longjmp(stopped, 1);
}

/* True: f was stopped before access number `at`. */
static bool stops(unsigned at, void (*f)(void *), void *arg)
{
	steps_left = at;
	region_step_hook = stop_here;
	if (setjmp(stopped) != 0) {
		region_step_hook = NULL;
		return true;
	}
	f(arg);
	region_step_hook = NULL;
	return false;
}

static bool is_dying(const struct region_slot_id *id, void *arg)
{
	(void)arg;
	return id->pid == 1 || id->pid == 3;
}

static void reaps(void *r)
{
	slot_clear_if(r, is_dying, NULL);
}

static void claim(struct region_layout *r, uint32_t pid, struct ledger *l)
{
	const struct process_id me = { .pid = pid, .start_time = 7, .pid_namespace = 9 };

	assert_true(slot_claim(r, &me, l));
}

/* Two dead processes, one of which had not even claimed its slot in full, beside one that lives. */
static void make_dead(struct region_layout *r, struct ledger *living)
{
	struct ledger dying = { 0 };

	claim(r, 1, &dying);
	claim(r, 2, living);
	r->heads[3].who = slot_who(3, 7);
	assert_int_equal(ledger_reserve(&dying, 0, 1000, 300), LEDGER_OK);
	assert_int_equal(ledger_reserve(&dying, 5, 1000, 40), LEDGER_OK);
	assert_int_equal(ledger_reserve(living, 0, 1000, 100), LEDGER_OK);
}

/* A reaper is killed, the living go on, the next reaper is killed too, and the third finishes. */
static void a_reaper_may_be_killed_anywhere(void **state)
{
	bool first = true;
	unsigned kills = 0;

	(void)state;
	for (unsigned n = 0; first; n += 5) {
		bool second = true;

		for (unsigned m = 0; second; m = m * 2 + 1) {
			struct region_layout *r = calloc(1, sizeof *r);
			struct ledger living = { 0 }, next = { 0 };

			make_dead(r, &living);
			first = stops(n, reaps, r);
			assert_int_equal(ledger_reserve(&living, 0, 1000, 1), LEDGER_OK);
			second = stops(m, reaps, r);
			assert_int_equal(ledger_release(&living, 0, 1), LEDGER_OK);
			reaps(r);
			assert_int_equal(ledger_used(r, 0), 100);
			assert_int_equal(ledger_used(r, 5), 0);
			assert_int_equal(ledger_slot_used(r, living.slot, 0), 100);
			assert_int_equal(r->heads[1].who, 0);
			assert_int_equal(r->heads[3].who, 0);
			claim(r, 1, &next);
			assert_int_equal(next.slot, 1);
			assert_int_equal(ledger_slot_used(r, next.slot, 0), 0);
			free(r);
			kills++;
		}
	}
	assert_true(kills > 500);
}

enum { NOW = 2000000000, SHARE = 50, TAKEN = 5000000 };

static void takes(void *c)
{
	bucket_take(c, SHARE, NOW, TAKEN);
}

static void settles(void *c)
{
	bucket_settle(c, SHARE, NOW, TAKEN);
}

static void returns(void *c)
{
	bucket_settle(c, SHARE, NOW, -TAKEN);
}

/* Half a share makes twice the time. Taken in full or not at all, and the next launch waits for nobody. */
static void a_launch_may_be_killed_anywhere(void **state)
{
	static const struct {
		void (*act)(void *);
		int64_t moves;
	} rows[] = { { takes, 2 * TAKEN }, { settles, 2 * TAKEN }, { returns, -2 * TAKEN } };

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		bool more = true, moved = false;

		for (unsigned n = 0; more; n++) {
			struct region_compute c = { .zero_ns = NOW - 20000000 };
			int64_t by;

			more = stops(n, rows[i].act, &c);
			by = (int64_t)(c.zero_ns - (NOW - 20000000));
			if (by != 0 && by != rows[i].moves)
				fail_msg("row %zu stopped at %u: the zero moved by %ld", i, n, (long)by);
			moved |= by != 0;
			assert_int_equal(bucket_take(&c, SHARE, NOW, 1), 0);
		}
		assert_true(moved);
	}
}

static const struct limits before = { .count = 1, .cards = { { "GPU-a", 1000, 50 } } };
static const struct limits after = { .count = 1, .cards = { { "GPU-a", 2000, 30 } } };
static const struct limits none = { .count = 0 };

static const char *path(void)
{
	return temp_path("region");
}

static void makes(void)
{
	struct hm_err e;

	_exit(region_create(path(), &before, &e) < 0);
}

static void changes(void)
{
	struct hm_err e;

	_exit(region_create(path(), &after, &e) < 0);
}

static void adds_a_card(void)
{
	const struct limit_card card = { "GPU-b", 7, 100 };
	struct region_map m;

	_exit(region_map_file(path(), &m, NULL) < 0 || region_map_card(&m, &card, true) < 0);
}

/* A process that is killed after `steps` system calls or instructions of f. False: it ended before. */
static bool killed_in(void (*f)(void), enum __ptrace_request how, unsigned steps)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(99);
		raise(SIGSTOP);
		f();
	}
	for (unsigned i = 0; i <= steps; i++) {
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 99)
			skip(); /* nobody may trace here: under qemu, for one */
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
		assert_true(WIFSTOPPED(status));
		if (i < steps)
			assert_int_equal(ptrace(how, child, NULL, NULL), 0);
	}
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, &status, 0), child);
	return true;
}

static void hold(uint64_t bytes)
{
	struct process_id me = process_id_self();
	struct ledger l = { 0 };
	struct region_map m;

	assert_int_equal(region_map_file(path(), &m, NULL), 0);
	assert_true(slot_claim(m.r, &me, &l));
	assert_int_equal(ledger_reserve(&l, 0, 1000, bytes), LEDGER_OK);
	region_unmap(&m);
}

/* Under its name there is no file, or a whole one; and the next one that makes it is not in its way. */
static void the_maker_may_be_killed_anywhere(void **state)
{
	struct region_snapshot s = { 0 };
	struct hm_err e;
	unsigned n;

	(void)state;
	for (n = 0; killed_in(makes, PTRACE_SYSCALL, n); n++) {
		int r = region_snapshot(path(), &s, &e);

		if (r != -HM_ENOTFOUND)
			assert_int_equal(r, 0);
		assert_int_equal(region_create(path(), &before, &e), 0);
		assert_int_equal(region_snapshot(path(), &s, &e), 0);
		assert_int_equal(s.cards[0].limit_bytes, 1000);
		unlink(path());
	}
	assert_true(n > 10);
}

/* The old limits or the new, for viewers; the counters as they were. */
static void a_change_of_limits_may_be_killed_anywhere(void **state)
{
	struct region_snapshot s = { 0 };
	struct hm_err e;
	unsigned n;

	(void)state;
	assert_int_equal(region_create(path(), &before, &e), 0);
	hold(600);
	for (n = 0; killed_in(changes, PTRACE_SYSCALL, n); n++) {
		assert_int_equal(region_snapshot(path(), &s, &e), 0);
		assert_true(s.cards[0].limit_bytes == 1000 || s.cards[0].limit_bytes == 2000);
		assert_true((s.cards[0].cores == 50) == (s.cards[0].limit_bytes == 1000));
		assert_int_equal(s.cards[0].used_bytes, 600);
		assert_int_equal(region_create(path(), &before, &e), 0);
	}
	assert_true(n > 6);
	assert_int_equal(region_snapshot(path(), &s, &e), 0);
	assert_int_equal(s.cards[0].limit_bytes, 2000);
	assert_int_equal(s.cards[0].used_bytes, 600);
}

/* The card is there in full or not at all, and the lock that was held is not in the next one's way. */
static void who_adds_a_card_may_be_killed_anywhere(void **state)
{
	const struct limit_card card = { "GPU-b", 7, 100 };
	struct region_snapshot s = { 0 };
	struct region_map m;
	struct hm_err e;
	unsigned n;

	(void)state;
	for (n = 0;; n += 1 + n / 6) {
		unlink(path());
		assert_int_equal(region_create(path(), &none, &e), 0);
		if (!killed_in(adds_a_card, PTRACE_SINGLESTEP, n))
			break;
		assert_int_equal(region_snapshot(path(), &s, &e), 0);
		if (s.card_count == 1) {
			assert_string_equal(s.cards[0].uuid, "GPU-b");
			assert_int_equal(s.cards[0].limit_bytes, 7);
		}
		assert_int_equal(region_map_file(path(), &m, &e), 0);
		assert_int_equal(region_map_card(&m, &card, true), 0);
		assert_int_equal(m.r->header.card_count, 1);
		region_unmap(&m);
	}
	assert_true(n > 500);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reaper_may_be_killed_anywhere),
		cmocka_unit_test(a_launch_may_be_killed_anywhere),
		cmocka_unit_test_setup_teardown(the_maker_may_be_killed_anywhere, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(a_change_of_limits_may_be_killed_anywhere, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(who_adds_a_card_may_be_killed_anywhere, temp_setup, temp_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
