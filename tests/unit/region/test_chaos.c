/* Real processes at the limit, killed by SIGKILL inside the ledger. A stand-in for the driver knows the truth.
 * HAMI_CHAOS_PROCESSES (default 200), HAMI_CHAOS_ROUNDS (operations of each process, default 6000). */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/macros.h"
#include "core/num.h"
#include "region/map.h"
#include "region/region.h"
#include "region/shared.h"

void (*region_step_hook)(void);

enum { LIMIT = 1000000, MAX_PROCESSES = 900 };

struct truth {
	_Atomic int64_t held, peak; /* by the driver */
	_Atomic uint64_t over, broken, granted, refused, reaps;
	_Atomic int64_t survivors[MAX_PROCESSES];
};

static struct truth *truth;
static char path[64];
static int64_t mine;
static unsigned steps_to_death;

static void die_in_time(void)
{
	if (--steps_to_death > 0)
		return;
	truth->held -= mine; /* the driver frees what a dead process held; then nobody is there to say so */
	kill(getpid(), SIGKILL);
}

static void hold(int64_t n)
{
	int64_t now = atomic_fetch_add(&truth->held, n) + n, peak = truth->peak;

	mine += n;
	while (now > peak && !atomic_compare_exchange_weak(&truth->peak, &peak, now))
		;
	if (now > LIMIT)
		truth->over++;
}

static bool is_dead(const struct region_slot_id *id, void *arg)
{
	(void)arg;
	return !process_id_alive(id->pid, id->start_time);
}

static void request(struct region_map *m, struct ledger *l, int64_t n)
{
	if (ledger_reserve(l, 0, LIMIT, (uint64_t)n) == LEDGER_OK) {
		truth->granted++;
		hold(n);
		return;
	}
	truth->refused++;
	if (truth->refused % 64 == 0 && region_map_reap(m, 5, is_dead, NULL, NULL) > 0)
		truth->reaps++;
}

static void live(unsigned number, unsigned rounds, bool doomed)
{
	struct process_id me = process_id_self();
	struct ledger l = { 0 };
	struct region_map m;
	unsigned seed = number * 2654435761U + (unsigned)getpid();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	steps_to_death = doomed ? 1 + (unsigned)rand_r(&seed) % (rounds * 12) : 0;
	region_step_hook = doomed ? die_in_time : NULL;
	if (region_map_file(path, &m, NULL) < 0 || !slot_claim(m.r, &me, &l))
		_exit(9);
	for (unsigned i = 0; i < rounds; i++) {
		int64_t n = 1 + rand_r(&seed) % (LIMIT / 20);

		if (rand_r(&seed) % 2 == 0) {
			request(&m, &l, n);
		} else if (mine > 0) {
			n = HM_MIN(n, mine);
			truth->held -= n;
			mine -= n;
			if (ledger_release(&l, 0, (uint64_t)n) != LEDGER_OK)
				truth->broken++;
		}
		if (i % 8 == 0)
			sched_yield();
	}
	truth->survivors[number] = mine;
	if (ledger_slot_used(m.r, l.slot, 0) != (uint64_t)mine)
		truth->broken++;
	pause();
}

static unsigned setting(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	uint64_t v;

	return num_u64_str(text, 1000000000, &v) ? (unsigned)v : otherwise;
}

static bool nobody_lives(const struct region_process *p, void *arg)
{
	(void)arg;
	return process_id_alive(p->pid, p->start_time);
}

static void check_against(struct region_snapshot *s)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < s->process_count; i++)
		sum += s->processes[i].used_bytes[0];
	assert_int_equal(s->cards[0].used_bytes, sum);
	assert_int_equal(s->cards[0].used_bytes, truth->held);
	assert_true(s->cards[0].peak_bytes <= LIMIT);
}

/* Every third process is killed on its way; the others keep what they hold until the end. */
static void killed_processes_lose_nothing(void **state)
{
	unsigned count = HM_MIN(setting("HAMI_CHAOS_PROCESSES", 200), (unsigned)MAX_PROCESSES);
	unsigned rounds = setting("HAMI_CHAOS_ROUNDS", 6000), dead = 0, left;
	const struct limits limits = { .count = 1, .cards = { { "GPU-chaos", LIMIT, 100 } } };
	static struct region_process list[REGION_MAX_PROCESSES];
	struct region_snapshot s = { .processes = list };
	pid_t pids[MAX_PROCESSES];
	struct hm_err e;

	(void)state;
	truth = mmap(NULL, sizeof *truth, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	memset(truth, 0, sizeof *truth);
	for (unsigned i = 0; i < MAX_PROCESSES; i++)
		truth->survivors[i] = -1;
	snprintf(path, sizeof path, "/tmp/hami-chaos.%d", getpid());
	assert_int_equal(region_create(path, &limits, &e), 0);
	for (unsigned i = 0; i < count; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			live(i, rounds, i % 3 == 0);
	}
	for (unsigned i = 0; i < count; i++) {
		while (truth->survivors[i] < 0 && process_id_alive((uint32_t)pids[i], 0))
			usleep(1000);
		dead += truth->survivors[i] < 0;
	}
	assert_true(region_reap(path, nobody_lives, NULL, &e) >= 0);
	assert_int_equal(region_snapshot(path, &s, &e), 0);
	check_against(&s);
	assert_int_equal(truth->over, 0);
	assert_int_equal(truth->broken, 0);
	assert_true(truth->peak > LIMIT / 2);
	print_message("%u processes, %u killed; %lu granted, %lu refused; driver's peak %ld of %d\n", count, dead,
		      (unsigned long)truth->granted, (unsigned long)truth->refused, (long)truth->peak, LIMIT);
	for (unsigned i = 0; i < count; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	left = (unsigned)region_reap(path, nobody_lives, NULL, &e);
	assert_true(left <= count);
	assert_int_equal(region_snapshot(path, &s, &e), 0);
	assert_int_equal(s.cards[0].used_bytes, 0);
	assert_int_equal(s.process_count, 0);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(killed_processes_lose_nothing) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
