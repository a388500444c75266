/* Memory, compute and faults, by way of the shared state. */
#include "sim/lib/sim_client.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/lib/connection.h"
#include "sim/lib/engine.h"
#include "sim/lib/sim_mig.h"

/* Sleeping threads look anew this often: others' deaths and a lost card end a wait without a word to us. */
#define LOOK_NS 10000000ULL
/* Below this a sleep's overshoot is worse than spinning. */
#define SPIN_NS 80000ULL

/* ---- Memory */

static enum sim_result change_memory(unsigned card, enum sim_mem_kind kind, uint64_t bytes,
				     enum sim_result (*change)(struct sim_card *, unsigned, enum sim_mem_kind,
							       uint64_t))
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = sim_enter(card, &n, &process);

	if (r != SIM_OK)
		return r;
	r = change(&n->cards[card], process, kind, bytes);
	sim_card_unlock(&n->cards[card]);
	return r;
}

enum sim_result sim_mem_charge(unsigned card, enum sim_mem_kind kind, uint64_t bytes)
{
	return change_memory(card, kind, bytes, sim_ledger_charge);
}

enum sim_result sim_mem_release(unsigned card, enum sim_mem_kind kind, uint64_t bytes)
{
	return change_memory(card, kind, bytes, sim_ledger_release);
}

uint64_t sim_mem_used(unsigned card)
{
	unsigned process = sim_me();
	const struct sim_card *c;
	struct sim_node *n;
	int ci;

	if (sim_attached(&n) != SIM_OK || card >= n->card_count)
		return 0;
	c = &n->cards[card];
	ci = process == SIM_NOBODY ? -1 : sim_mig_find(c, atomic_load(&c->shares[process].mig));
	return ci >= 0 ? sim_mig_used(c, c->mig_cis[ci].gi) : atomic_load(&c->used_bytes);
}

enum sim_result sim_mig_enter(unsigned card, uint32_t live)
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = sim_enter(card, &n, &process);

	if (r != SIM_OK)
		return r;
	r = sim_share_enter(&n->cards[card], process);
	if (r == SIM_OK)
		atomic_store(&n->cards[card].shares[process].mig, live);
	sim_card_unlock(&n->cards[card]);
	return r;
}

uint64_t sim_mem_own(unsigned card)
{
	unsigned process = sim_me();
	struct sim_node *n;

	if (sim_attached(&n) != SIM_OK || card >= n->card_count || process == SIM_NOBODY)
		return 0;
	return atomic_load(&n->cards[card].shares[process].data_bytes) +
	       atomic_load(&n->cards[card].shares[process].context_bytes);
}

enum sim_result sim_card_state(unsigned card)
{
	unsigned process = sim_me();
	struct sim_node *n;
	enum sim_result r = sim_attached(&n);
	uint32_t epoch;

	if (r != SIM_OK)
		return r;
	if (card >= n->card_count)
		return SIM_NO_CARD;
	if (atomic_load(&n->cards[card].lost) != 0)
		return SIM_LOST;
	if (process == SIM_NOBODY)
		return SIM_OK;
	epoch = atomic_load(&n->cards[card].shares[process].epoch);
	return epoch == 0 || epoch == atomic_load(&n->cards[card].epoch) ? SIM_OK : SIM_LOST;
}

/* ---- Compute */

uint64_t sim_now_ns(void)
{
	const struct sim_node *n = sim_node();

	return n != NULL ? sim_clock_now(n) : sim_monotonic_ns();
}

enum sim_result sim_work_submit(unsigned card, uint64_t busy_ns, uint64_t *ticket)
{
	return sim_work_submit_meeting(card, 0, busy_ns, ticket);
}

enum sim_result sim_work_submit_meeting(unsigned card, uint64_t key, uint64_t busy_ns, uint64_t *ticket)
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = sim_enter(card, &n, &process);
	struct sim_process *p;

	if (r != SIM_OK)
		return r;
	p = &n->processes[process];
	r = sim_share_enter(&n->cards[card], process);
	if (r == SIM_OK)
		sim_engine_advance(n, card, sim_clock_now(n));
	if (r == SIM_OK && key != 0 && !sim_engine_meet(n, card, process, key))
		r = SIM_FAILED;
	if (r == SIM_OK) {
		*ticket = sim_engine_submit(&n->cards[card], process, busy_ns);
		/* Both have one writer at a time only per card; a lost count only delays the idle check. */
		atomic_store_explicit(&p->activity, atomic_load_explicit(&p->activity, memory_order_relaxed) + 1,
				      memory_order_relaxed);
		atomic_store_explicit(&p->computes, 1, memory_order_relaxed);
	}
	sim_card_unlock(&n->cards[card]);
	return r;
}

/* Runs the engine to the present. *expect: when the ticket may be done, 0 where it is. */
static enum sim_result look(unsigned card, uint64_t ticket, uint64_t *expect)
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = sim_enter(card, &n, &process);

	if (r != SIM_OK)
		return r;
	r = sim_share_enter(&n->cards[card], process);
	if (r == SIM_OK) {
		sim_engine_advance(n, card, sim_clock_now(n));
		*expect = sim_engine_expect(&n->cards[card], process, ticket);
	}
	sim_card_unlock(&n->cards[card]);
	return r;
}

bool sim_work_done(unsigned card, uint64_t ticket)
{
	unsigned process = sim_me();
	struct sim_node *n;
	uint64_t expect;

	if (sim_attached(&n) != SIM_OK || process == SIM_NOBODY || card >= n->card_count)
		return true; /* nothing of ours is left there */
	if (atomic_load_explicit(&n->cards[card].shares[process].done_ns, memory_order_acquire) >= ticket)
		return true;
	return look(card, ticket, &expect) != SIM_OK || expect == 0;
}

/* Sleeps until about `at` on the wall, at most LOOK_NS; spins the last stretch. */
static void wall_sleep(uint64_t at)
{
	uint64_t now = sim_monotonic_ns(), wake;
	struct timespec t;

	if (at <= now)
		return;
	if (at - now <= SPIN_NS) {
		while (sim_monotonic_ns() < at) {
		}
		return;
	}
	wake = HM_MIN(at - SPIN_NS, now + LOOK_NS);
	t = (struct timespec) { .tv_sec = (time_t)(wake / 1000000000), .tv_nsec = (long)(wake % 1000000000) };
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

/* Virtual: tells the daemon what we wait for, then sleeps until it says that something happened. */
static enum sim_result virtual_wait(const struct sim_request *q, uint32_t seen)
{
	struct timespec patience = { 0, 200000000 };
	struct sim_node *n;
	enum sim_result r = sim_attached(&n);
	struct sim_process *p;

	if (r != SIM_OK)
		return r;
	p = &n->processes[sim_me()];
	if (q != NULL && !sim_send(q))
		return SIM_NO_NODE;
	syscall(SYS_futex, &p->wake, FUTEX_WAIT, seen, &patience, NULL, 0);
	return SIM_OK;
}

static uint32_t wake_count(void)
{
	const struct sim_node *n = sim_node();
	unsigned process = sim_me();

	return n != NULL && process != SIM_NOBODY ? atomic_load(&n->processes[process].wake) : 0;
}

enum sim_result sim_work_wait(unsigned card, uint64_t ticket)
{
	struct sim_request q = { .op = SIM_OP_WAIT, .card = card, .a = ticket };
	bool said = false;

	for (;;) {
		uint32_t seen = wake_count();
		uint64_t expect = 0;
		enum sim_result r = look(card, ticket, &expect);

		if (r != SIM_OK || expect == 0)
			return r;
		if (sim_node()->clock == SIM_CLOCK_VIRTUAL) {
			r = virtual_wait(said ? NULL : &q, seen);
			said = true;
			if (r != SIM_OK)
				return r;
		} else {
			wall_sleep(expect);
		}
	}
}

enum sim_result sim_work_end_ns(unsigned card, uint64_t ticket, uint64_t *ns)
{
	struct sim_node *n;
	unsigned process;
	enum sim_result r = sim_enter(card, &n, &process);

	if (r != SIM_OK)
		return r;
	sim_engine_advance(n, card, sim_clock_now(n));
	r = sim_engine_end_of(n, card, process, ticket, ns) ? SIM_OK : SIM_NOT_FOUND;
	sim_card_unlock(&n->cards[card]);
	return r;
}

enum sim_result sim_sleep_until(uint64_t ns)
{
	return sim_sleep_together(ns, 0);
}

enum sim_result sim_sleep_together(uint64_t ns, unsigned waits)
{
	struct sim_request q = { .op = SIM_OP_SLEEP, .a = ns, .b = waits };
	enum sim_result r = sim_attach();
	bool said = false;

	if (r == SIM_OK && sim_node()->clock == SIM_CLOCK_VIRTUAL && sim_me() == SIM_NOBODY)
		r = sim_join(false);
	while (r == SIM_OK) {
		uint32_t seen = wake_count();

		if (sim_now_ns() >= ns)
			return SIM_OK;
		if (sim_node()->clock == SIM_CLOCK_VIRTUAL) {
			r = virtual_wait(said ? NULL : &q, seen);
			said = true;
		} else {
			wall_sleep(ns);
		}
	}
	return r;
}

/* ---- The rest */

enum sim_result sim_sync(void)
{
	struct sim_request q = { .op = SIM_OP_SYNC };
	struct sim_reply reply;
	struct sim_node *n;
	enum sim_result r = sim_attached(&n);

	return r == SIM_OK ? sim_control(&q, &reply) : r;
}

int sim_nvml_code(unsigned card, const char *call)
{
	struct sim_node *n;

	if (sim_attached(&n) != SIM_OK || card >= n->card_count)
		return 0;
	for (unsigned i = 0; i < SIM_MAX_FAULTS; i++) {
		const struct sim_fault *f = &n->cards[card].faults[i];
		int code = atomic_load_explicit(&f->code, memory_order_acquire);

		if (code != 0 && strncmp(f->call, call, sizeof f->call) == 0)
			return code;
	}
	return 0;
}

int sim_nvml_fault(unsigned card, const char *call)
{
	struct timespec tick = { 0, 5000000 };
	struct sim_node *n;

	if (sim_attached(&n) != SIM_OK || card >= n->card_count)
		return 0;
	while (sim_monotonic_ns() < atomic_load(&n->cards[card].hang_until_ns))
		nanosleep(&tick, NULL);
	return sim_nvml_code(card, call);
}
