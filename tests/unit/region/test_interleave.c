/* The ledger's and the slots' protocols under random schedules: processes of two threads each run as coroutines that
 * change over before any access to shared memory, are killed there, reap each other and are killed at that too. After
 * every schedule the books must be exact; at every step no more may be held than the limit.
 * HAMI_REGION_SCHEDULES: how many (default 3000). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

#include "core/macros.h"
#include "core/num.h"
#include "region/ledger.h"
#include "region/shared.h"
#include "region/slots.h"

void (*region_step_hook)(void);

enum { PROCESSES = 4, THREADS = 2, ACTORS = PROCESSES * THREADS, CARDS = 2, LIMIT = 100, OPERATIONS = 12 };
enum { STACK_BYTES = 64 * 1024 };

struct process {
	uint32_t pid;
	bool dead, claimed;
	struct ledger ledger;
	uint64_t held[CARDS]; /* as a driver would know it */
	unsigned running;
};

struct actor {
	ucontext_t context;
	struct process *process;
	bool finished;
	char *stack;
};

static struct region_layout *region;
static struct process processes[PROCESSES];
static struct actor actors[ACTORS];
static struct actor *current;
static ucontext_t scheduler;
static const struct process *lock_holder;
static uint64_t random_state;
static unsigned kills, busy_percent;

static unsigned random_below(unsigned n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (unsigned)(random_state >> 11) % n;
}

static void check_held(void)
{
	for (unsigned card = 0; card < CARDS; card++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < PROCESSES; i++)
			sum += processes[i].held[card];
		if (sum > LIMIT)
			fail_msg("%lu bytes held", (unsigned long)sum);
		assert_true(ledger_used(region, card) <= LIMIT);
	}
}

static void step(void)
{
	if (random_below(100) < busy_percent)
		swapcontext(&current->context, &scheduler);
}

static void die(struct process *p)
{
	p->dead = true;
	memset(p->held, 0, sizeof p->held); /* the driver takes all back */
	if (lock_holder == p)
		lock_holder = NULL; /* so does the kernel with its locks */
	kills++;
}

static bool is_dead(const struct region_slot_id *id, void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < PROCESSES; i++) {
		if (processes[i].pid == id->pid)
			return processes[i].dead;
	}
	return true;
}

static void reap(struct process *p)
{
	if (lock_holder != NULL)
		return;
	lock_holder = p;
	slot_clear_if(region, is_dead, NULL);
	lock_holder = NULL;
}

static void one_operation(struct process *p)
{
	unsigned card = random_below(CARDS), n = 1 + random_below(40);
	uint64_t mine;

	if (random_below(2) == 0) {
		if (ledger_reserve(&p->ledger, card, LIMIT, n) == LEDGER_OK)
			p->held[card] += n;
		else if (random_below(4) == 0)
			reap(p);
		return;
	}
	mine = HM_MIN(n, p->held[card]);
	p->held[card] -= mine;
	assert_int_equal(ledger_release(&p->ledger, card, mine), LEDGER_OK);
}

static void live(void)
{
	struct process *p = current->process;
	const struct process_id me = { .pid = p->pid, .start_time = 5, .pid_namespace = 6 };

	if (p->running++ == 0)
		p->claimed = slot_claim(region, &me, &p->ledger);
	while (!p->claimed)
		swapcontext(&current->context, &scheduler);
	for (unsigned i = 0; i < OPERATIONS; i++)
		one_operation(p);
	current->finished = true;
	swapcontext(&current->context, &scheduler);
}

static void start(void)
{
	memset(region, 0, sizeof *region);
	memset(processes, 0, sizeof processes);
	lock_holder = NULL;
	for (unsigned i = 0; i < PROCESSES; i++)
		processes[i].pid = REGION_SLOTS * (1 + i); /* all begin their search at slot 0 */
	for (unsigned i = 0; i < ACTORS; i++) {
		actors[i].process = &processes[i / THREADS];
		actors[i].finished = false;
		getcontext(&actors[i].context);
		actors[i].context.uc_stack.ss_sp = actors[i].stack;
		actors[i].context.uc_stack.ss_size = STACK_BYTES;
		makecontext(&actors[i].context, live, 0);
	}
}

static void run_schedule(void)
{
	for (unsigned idle = 0; idle < 10000;) {
		struct actor *a = &actors[random_below(ACTORS)];

		if (a->finished || a->process->dead) {
			idle++;
			continue;
		}
		if (random_below(400) == 0) {
			die(a->process);
			continue;
		}
		idle = 0;
		current = a;
		region_step_hook = step;
		swapcontext(&scheduler, &a->context);
		region_step_hook = NULL;
		check_held();
	}
}

static void check_books(uint64_t seed)
{
	for (unsigned card = 0; card < CARDS; card++) {
		uint64_t held = 0;

		for (unsigned i = 0; i < PROCESSES; i++) {
			held += processes[i].held[card];
			if (!processes[i].dead &&
			    ledger_slot_used(region, processes[i].ledger.slot, card) != processes[i].held[card])
				fail_msg("schedule %lu: process %u", (unsigned long)seed, i);
		}
		if (ledger_used(region, card) != held)
			fail_msg("schedule %lu: card %u says %lu, held are %lu", (unsigned long)seed, card,
				 (unsigned long)ledger_used(region, card), (unsigned long)held);
	}
	for (unsigned slot = 0; slot < REGION_SLOTS; slot++)
		assert_true(region->heads[slot].who == 0 ||
			    !is_dead(&(struct region_slot_id) { .pid = slot_id(&region->heads[slot]).pid }, NULL));
}

static void random_schedules_keep_the_books(void **state)
{
	uint64_t schedules = 3000;

	(void)state;
	if (!num_u64_str(getenv("HAMI_REGION_SCHEDULES"), UINT64_MAX, &schedules))
		schedules = 3000;
	region = calloc(1, sizeof *region);
	for (unsigned i = 0; i < ACTORS; i++)
		actors[i].stack = malloc(STACK_BYTES);
	for (uint64_t seed = 1; seed <= schedules; seed++) {
		random_state = seed * 0x9e3779b97f4a7c15U;
		busy_percent = 1 + random_below(99);
		start();
		run_schedule();
		lock_holder = NULL;
		slot_clear_if(region, is_dead, NULL);
		check_books(seed);
	}
	assert_true(kills > schedules / 10);
	for (unsigned i = 0; i < ACTORS; i++)
		free(actors[i].stack);
	free(region);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(random_schedules_keep_the_books) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
