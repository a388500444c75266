#include "sim/lib/engine.h"

#include <sched.h>
#include <string.h>
#include <time.h>

#include "sim/lib/sim_mig.h"

#define LOAD(p) atomic_load_explicit(&(p), memory_order_relaxed)
#define STORE(p, v) atomic_store_explicit(&(p), (v), memory_order_relaxed)

uint64_t sim_monotonic_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

uint64_t sim_clock_now(const struct sim_node *n)
{
	return n->clock == SIM_CLOCK_VIRTUAL ? atomic_load(&n->virtual_ns) : sim_monotonic_ns();
}

bool sim_card_try_lock(struct sim_card *c, uint32_t owner)
{
	uint32_t free = 0;

	return atomic_compare_exchange_strong_explicit(&c->lock, &free, owner, memory_order_acquire,
						       memory_order_relaxed);
}

bool sim_card_lock(struct sim_card *c, uint32_t owner)
{
	uint64_t deadline = 0;

	for (unsigned spin = 0;; spin++) {
		if (sim_card_try_lock(c, owner))
			return true;
		if (spin < 64)
			continue;
		if (deadline == 0)
			deadline = sim_monotonic_ns() + SIM_LOCK_PATIENCE_NS;
		else if (sim_monotonic_ns() > deadline)
			return false;
		sched_yield();
	}
}

void sim_card_unlock(struct sim_card *c)
{
	atomic_store_explicit(&c->lock, 0, memory_order_release);
}

/* ---- Memory */

enum sim_result sim_share_enter(struct sim_card *c, unsigned process)
{
	struct sim_share *s = &c->shares[process];
	uint32_t epoch = LOAD(c->epoch);

	if (LOAD(s->epoch) == 0)
		STORE(s->epoch, epoch);
	return LOAD(c->lost) != 0 || LOAD(s->epoch) != epoch ? SIM_LOST : SIM_OK;
}

static _Atomic uint64_t *bytes_of(struct sim_share *s, enum sim_mem_kind kind)
{
	return kind == SIM_MEM_CONTEXT ? &s->context_bytes : &s->data_bytes;
}

/* Whether the compute instance has room for so much more; a whole card is not asked. */
static enum sim_result mig_room(const struct sim_card *c, uint32_t live, uint64_t bytes)
{
	int ci = sim_mig_find(c, live);
	uint64_t total, used;

	if (live == 0)
		return SIM_OK;
	if (ci < 0)
		return SIM_LOST; /* destroyed under the process */
	total = sim_mig_bytes(c, c->mig_cis[ci].gi);
	used = sim_mig_used(c, c->mig_cis[ci].gi);
	return used <= total && bytes <= total - used ? SIM_OK : SIM_NO_MEMORY;
}

enum sim_result sim_ledger_charge(struct sim_card *c, unsigned process, enum sim_mem_kind kind, uint64_t bytes)
{
	_Atomic uint64_t *mine = bytes_of(&c->shares[process], kind);
	uint64_t used = LOAD(c->used_bytes);
	enum sim_result r = sim_share_enter(c, process);

	if (r != SIM_OK)
		return r;
	r = mig_room(c, LOAD(c->shares[process].mig), bytes);
	if (r != SIM_OK)
		return r;
	if (used > c->info.memory_bytes || bytes > c->info.memory_bytes - used)
		return SIM_NO_MEMORY;
	STORE(*mine, LOAD(*mine) + bytes);
	STORE(c->used_bytes, used + bytes);
	if (used + bytes > LOAD(c->peak_bytes))
		STORE(c->peak_bytes, used + bytes);
	return SIM_OK;
}

enum sim_result sim_ledger_release(struct sim_card *c, unsigned process, enum sim_mem_kind kind, uint64_t bytes)
{
	_Atomic uint64_t *mine = bytes_of(&c->shares[process], kind);
	enum sim_result r = sim_share_enter(c, process);

	if (r != SIM_OK)
		return r;
	if (bytes > LOAD(*mine))
		return SIM_NOT_FOUND;
	STORE(*mine, LOAD(*mine) - bytes);
	STORE(c->used_bytes, LOAD(c->used_bytes) - bytes);
	return SIM_OK;
}

static void set_active(struct sim_card *c, unsigned process, bool on)
{
	_Atomic uint64_t *word = &c->active[process / 64];
	uint64_t bit = (uint64_t)1 << (process % 64);

	STORE(*word, on ? LOAD(*word) | bit : LOAD(*word) & ~bit);
}

void sim_share_clear(struct sim_card *c, unsigned process)
{
	struct sim_share *s = &c->shares[process];
	uint64_t used = c->info.reserved_bytes;

	set_active(c, process, false);
	STORE(s->epoch, 0);
	STORE(s->run_head, 0);
	STORE(s->mig, 0);
	STORE(s->data_bytes, 0);
	STORE(s->context_bytes, 0);
	STORE(s->submitted_ns, 0);
	STORE(s->done_ns, 0);
	STORE(s->spun_ns, 0);
	STORE(s->sample_done_ns, 0);
	s->gate_count = 0;
	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++)
		used += LOAD(c->shares[i].data_bytes) + LOAD(c->shares[i].context_bytes);
	STORE(c->used_bytes, used);
}

/* ---- Compute */

static bool is_active(const struct sim_card *c, unsigned process)
{
	return (LOAD(c->active[process / 64]) >> (process % 64) & 1) != 0;
}

static uint64_t pending(const struct sim_card *c, unsigned process)
{
	const struct sim_share *s = &c->shares[process];
	uint64_t submitted = LOAD(s->submitted_ns), done = LOAD(s->done_ns);

	return submitted > done ? submitted - done : 0;
}

/* ---- Kernels that wait for each other */

static const struct sim_gate *first_gate(const struct sim_share *s)
{
	return s->gate_count > 0 ? &s->gates[s->gate_first % SIM_GATES] : NULL;
}

bool sim_engine_spins(const struct sim_node *n, unsigned card, unsigned process)
{
	const struct sim_share *s = &n->cards[card].shares[process];
	const struct sim_gate *g = first_gate(s);

	if (g == NULL || g->at != LOAD(s->done_ns))
		return false;
	return LOAD(n->meetings[g->meeting].arrived) + (g->arrived ? 0 : 1) < 2;
}

bool sim_engine_meet(struct sim_node *n, unsigned card, unsigned process, uint64_t key)
{
	struct sim_share *s = &n->cards[card].shares[process];
	unsigned i;

	if (s->gate_count == SIM_GATES)
		return false;
	for (i = 0; i < SIM_MEETINGS; i++) {
		struct sim_meeting *m = &n->meetings[(key + i) % SIM_MEETINGS];
		uint64_t seen = 0;

		if (atomic_compare_exchange_strong(&m->key, &seen, key) || seen == key)
			break;
	}
	if (i == SIM_MEETINGS)
		return false;
	s->gates[(s->gate_first + s->gate_count++) % SIM_GATES] =
		(struct sim_gate) { .at = LOAD(s->submitted_ns), .meeting = (uint32_t)((key + i) % SIM_MEETINGS) };
	return true;
}

/* Its turn has come: where it stands at a gate, the other one may know. */
static struct sim_gate *arrive(struct sim_node *n, struct sim_share *s)
{
	struct sim_gate *g = &s->gates[s->gate_first % SIM_GATES];

	if (s->gate_count == 0 || g->at != LOAD(s->done_ns))
		return NULL;
	if (!g->arrived)
		atomic_fetch_add(&n->meetings[g->meeting].arrived, 1);
	g->arrived = true;
	return g;
}

/* False: it waits at its first gate. */
static bool pass_gate(struct sim_node *n, struct sim_share *s)
{
	const struct sim_gate *g = arrive(n, s);
	struct sim_meeting *m;

	if (g == NULL)
		return true;
	m = &n->meetings[g->meeting];
	if (atomic_load(&m->arrived) < 2)
		return false;
	if (atomic_fetch_add(&m->left, 1) == 1) {
		atomic_store(&m->arrived, 0);
		atomic_store(&m->left, 0);
		atomic_store(&m->key, 0);
	}
	s->gate_first++;
	s->gate_count--;
	return true;
}

/* What the process can do before its queue ends or it comes to a gate; one that it stands at is open. */
static uint64_t until_gate(const struct sim_card *c, unsigned process)
{
	const struct sim_share *s = &c->shares[process];
	uint64_t done = LOAD(s->done_ns), left = pending(c, process);

	for (unsigned i = 0; i < s->gate_count; i++) {
		const struct sim_gate *g = &s->gates[(s->gate_first + i) % SIM_GATES];

		if (g->at > done)
			return HM_MIN(left, g->at - done);
	}
	return left;
}

/* The next process with work after `from` in turn, which may be `from` itself; SIM_MAX_PROCESSES: none. */
static unsigned next_active(const struct sim_card *c, unsigned from)
{
	unsigned words = SIM_MAX_PROCESSES / 64, start = (from + 1) % SIM_MAX_PROCESSES;

	for (unsigned i = 0; i <= words; i++) {
		unsigned w = (start / 64 + i) % words;
		uint64_t bits = LOAD(c->active[w]);

		if (i == 0)
			bits &= ~(uint64_t)0 << (start % 64);
		if (bits != 0)
			return w * 64 + (unsigned)__builtin_ctzll(bits);
	}
	return SIM_MAX_PROCESSES;
}

static bool pick(struct sim_card *c)
{
	unsigned next;

	if (c->current < SIM_MAX_PROCESSES && c->slice_left_ns > 0 && is_active(c, c->current) &&
	    pending(c, c->current) > 0)
		return true;
	for (;;) {
		next = next_active(c, c->current % SIM_MAX_PROCESSES);
		if (next == SIM_MAX_PROCESSES)
			return false;
		if (pending(c, next) > 0)
			break;
		set_active(c, next, false);
	}
	c->current = next;
	c->slice_left_ns = SIM_QUANTUM_NS;
	return true;
}

/* Notes that from `at` on the process's done_ns grows; a stretch that goes on is not noted twice. */
static void log_run(struct sim_node *n, unsigned card, unsigned process, uint64_t at)
{
	struct sim_share *s = &n->cards[card].shares[process];
	struct sim_run *runs = n->runs[card][process];
	uint32_t head = LOAD(s->run_head);
	uint64_t done = LOAD(s->done_ns);

	if (head > 0) {
		const struct sim_run *last = &runs[(head - 1) % SIM_RUN_LOG];

		if (LOAD(last->at_ns) + (done - LOAD(last->done_ns)) == at)
			return;
	}
	STORE(runs[head % SIM_RUN_LOG].done_ns, done);
	STORE(runs[head % SIM_RUN_LOG].at_ns, at);
	STORE(s->run_head, head + 1);
}

/* Runs the current process from `at` for at most `span`; returns how long it ran. */
static uint64_t run_turn(struct sim_node *n, unsigned card, uint64_t at, uint64_t span)
{
	struct sim_card *c = &n->cards[card];
	struct sim_share *s = &c->shares[c->current];
	uint64_t ran;

	if (!pass_gate(n, s)) {
		ran = HM_MIN(span, c->slice_left_ns);
		STORE(s->spun_ns, LOAD(s->spun_ns) + ran);
		STORE(c->busy_ns, LOAD(c->busy_ns) + ran);
		c->slice_left_ns -= ran;
		return ran;
	}
	ran = HM_MIN(c->slice_left_ns, until_gate(c, c->current));
	ran = HM_MIN(span, ran);
	log_run(n, card, c->current, at);
	STORE(s->done_ns, LOAD(s->done_ns) + ran);
	STORE(c->busy_ns, LOAD(c->busy_ns) + ran);
	c->slice_left_ns -= ran;
	if (pending(c, c->current) == 0) {
		set_active(c, c->current, false);
		c->slice_left_ns = 0;
	}
	return ran;
}

static void take_sample(struct sim_node *n, struct sim_card *c, uint64_t end)
{
	uint32_t head = LOAD(c->sample_head);
	struct sim_sample *sample = &c->samples[head % SIM_SAMPLES];
	uint64_t busy = LOAD(c->busy_ns);

	atomic_store(&sample->end_ns, 0);
	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++) {
		struct sim_share *s = &c->shares[i];
		uint64_t done = LOAD(s->done_ns) + LOAD(s->spun_ns);

		sample->processes[i].pid = LOAD(n->processes[i].pid);
		sample->processes[i].busy_ns = (uint32_t)(done - LOAD(s->sample_done_ns));
		STORE(s->sample_done_ns, done);
	}
	sample->busy_ns = (uint32_t)(busy - c->sample_busy_ns);
	sample->span_ns = (uint32_t)(end - c->sample_begin_ns);
	c->sample_busy_ns = busy;
	c->sample_begin_ns = end;
	atomic_store(&sample->end_ns, end);
	STORE(c->sample_head, head + 1);
}

/* The end of the current sample; while idle, all but the last SIM_SAMPLES of a long gap are skipped. */
static uint64_t sample_end(struct sim_card *c, uint64_t now)
{
	uint64_t span = now > c->sample_begin_ns ? now - c->sample_begin_ns : 0, gap = span / SIM_SAMPLE_NS;

	if (gap > 2 * SIM_SAMPLES && LOAD(c->busy_ns) == c->sample_busy_ns && next_active(c, 0) == SIM_MAX_PROCESSES)
		c->sample_begin_ns += (gap - SIM_SAMPLES) * SIM_SAMPLE_NS;
	return c->sample_begin_ns + SIM_SAMPLE_NS;
}

void sim_engine_advance(struct sim_node *n, unsigned card, uint64_t now)
{
	struct sim_card *c = &n->cards[card];
	uint64_t at = LOAD(c->engine_ns);

	while (at < now) {
		uint64_t end = sample_end(c, now), stop;

		if (end <= at) {
			take_sample(n, c, end);
			continue;
		}
		stop = HM_MIN(now, end);
		at = pick(c) ? at + run_turn(n, card, at, stop - at) : stop;
		if (at == end)
			take_sample(n, c, end);
		STORE(c->engine_ns, at);
	}
	if (pick(c))
		arrive(n, &c->shares[c->current]);
}

uint64_t sim_engine_submit(struct sim_card *c, unsigned process, uint64_t busy_ns)
{
	struct sim_share *s = &c->shares[process];
	uint64_t ticket = LOAD(s->submitted_ns) + busy_ns;

	atomic_store_explicit(&s->submitted_ns, ticket, memory_order_release);
	if (ticket > LOAD(s->done_ns))
		set_active(c, process, true);
	return ticket;
}

uint64_t sim_engine_expect(const struct sim_card *c, unsigned process, uint64_t ticket)
{
	uint64_t done = LOAD(c->shares[process].done_ns), at = LOAD(c->engine_ns);
	unsigned p = c->current % SIM_MAX_PROCESSES;

	if (ticket <= done)
		return 0;
	if (p == process && c->slice_left_ns > 0)
		return at + HM_MIN(ticket - done, c->slice_left_ns);
	/* Those before us in turn first take theirs. */
	if (c->slice_left_ns > 0)
		at += HM_MIN(c->slice_left_ns, pending(c, p));
	for (unsigned turns = 0; turns < SIM_MAX_PROCESSES; turns++) {
		p = next_active(c, p);
		if (p == process || p == SIM_MAX_PROCESSES)
			break;
		at += HM_MIN((uint64_t)SIM_QUANTUM_NS, pending(c, p));
	}
	return at + HM_MIN(ticket - done, (uint64_t)SIM_QUANTUM_NS);
}

uint64_t sim_engine_turn_left(const struct sim_node *n, unsigned card, unsigned *process)
{
	const struct sim_card *c = &n->cards[card];
	unsigned p = c->current % SIM_MAX_PROCESSES;
	uint64_t slice = c->slice_left_ns;

	if (slice == 0 || pending(c, p) == 0) {
		p = next_active(c, p);
		slice = SIM_QUANTUM_NS;
	}
	*process = p;
	if (p == SIM_MAX_PROCESSES)
		return UINT64_MAX;
	return sim_engine_spins(n, card, p) ? slice : HM_MIN(slice, until_gate(c, p));
}

bool sim_engine_end_of(const struct sim_node *n, unsigned card, unsigned process, uint64_t ticket, uint64_t *ns)
{
	const struct sim_share *s = &n->cards[card].shares[process];
	const struct sim_run *runs = n->runs[card][process];
	uint32_t head = LOAD(s->run_head), low = head > SIM_RUN_LOG ? head - SIM_RUN_LOG : 0, high = head;

	if (ticket > LOAD(s->done_ns))
		return false;
	/* The last stretch that began before the ticket: [low, high) holds it, if anything does. */
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (LOAD(runs[middle % SIM_RUN_LOG].done_ns) < ticket)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || low + SIM_RUN_LOG == head)
		return false;
	*ns = LOAD(runs[(low - 1) % SIM_RUN_LOG].at_ns) + (ticket - LOAD(runs[(low - 1) % SIM_RUN_LOG].done_ns));
	return true;
}
