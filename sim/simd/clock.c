/* The virtual clock stands still while anybody who computes is at work, so that a result does not depend on how fast
 * this machine is:
 * 1. A process that waits (for a ticket, or for a time) says so, on any of its connections.
 * 2. When each process that ever submitted work or waited either waits or did nothing for GRACE_MS (it reads its
 *    input, say; one that the machine keeps from running is at work), the clock moves to the next moment at which
 *    something happens on a card, again and again until a wait is over. Where a wait is one of several that are to
 *    begin together, it does so only when all those are there.
 * 3. That process is woken and the clock stands still again. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "sim/lib/engine.h"
#include "sim/simd/server.h"

enum {
	GRACE_MS = 50,
	RUNNABLE_GRACES = 40,  /* whoever spins for so long without a word waits as well */
	MOVES_AT_ONCE = 10000, /* then whoever has something to say is heard */
	MAX_WAITS = 65536
};

/* 146 years: no sum of times overflows below it. */
static const uint64_t max_ns = UINT64_MAX / 4;

static bool is_over(const struct server *s, const struct wait *w)
{
	const struct sim_node *n = s->node;
	const struct sim_card *card = &n->cards[w->card];
	const struct sim_share *share = &card->shares[w->client->process];

	if (w->sleeps)
		return atomic_load(&n->virtual_ns) >= w->at;
	return atomic_load(&card->lost) != 0 || atomic_load(&share->epoch) != atomic_load(&card->epoch) ||
	       atomic_load(&share->done_ns) >= w->at;
}

static void wait_free(struct wait *w)
{
	link_remove(&w->on);
	free(w);
}

int clock_wait(struct server *s, struct client *c, const struct sim_request *q)
{
	struct wait *w;
	size_t count = 0;

	if (s->node->clock != SIM_CLOCK_VIRTUAL || c->process == NO_PROCESS || q->card >= s->node->card_count ||
	    (q->op == SIM_OP_SLEEP && q->a > max_ns))
		return -HM_EINVAL;
	LIST_FOR_EACH (&s->waits, l)
		count++;
	w = count < MAX_WAITS ? malloc(sizeof *w) : NULL;
	if (w == NULL)
		return -HM_ENOMEM;
	*w = (struct wait) {
		.client = c, .sleeps = q->op == SIM_OP_SLEEP, .card = q->card, .at = q->a, .together = q->b
	};
	link_append(&s->waits, &w->on);
	atomic_store(&s->node->processes[c->process].computes, 1);
	clock_turn(s);
	return 0;
}

void clock_forget(struct server *s, const struct client *c)
{
	LIST_FOR_EACH (&s->waits, l) {
		struct wait *w = HM_CONTAINER(l, struct wait, on);

		if (w->client == c)
			wait_free(w);
	}
}

/* libcuda, NVML and others in one process have a connection each. */
static bool is_same_process(const struct client *a, const struct client *b)
{
	return a == b || (a->pid != 0 && a->pid == b->pid);
}

static void set_at_work(struct server *s, const struct client *who)
{
	LIST_FOR_EACH (&s->clients, l) {
		struct client *c = HM_CONTAINER(l, struct client, on);

		if (c->process == NO_PROCESS || !is_same_process(c, who))
			continue;
		c->idle = false;
		c->graces = 0;
		c->seen_activity = atomic_load(&s->node->processes[c->process].activity);
	}
}

/* Ends the waits that are over; their processes are at work from now on. */
static void end_waits(struct server *s)
{
	LIST_FOR_EACH (&s->waits, l) {
		struct wait *w = HM_CONTAINER(l, struct wait, on);
		struct client *c = w->client;

		if (!is_over(s, w))
			continue;
		wait_free(w);
		set_at_work(s, c);
		server_wake(s, c->process);
	}
}

static bool waits(const struct server *s, const struct client *c)
{
	LIST_FOR_EACH (&s->waits, l)
		if (is_same_process(HM_CONTAINER(l, struct wait, on)->client, c))
			return true;
	return false;
}

static bool all_are_there(const struct server *s)
{
	uint64_t wanted = 0, count = 0;

	LIST_FOR_EACH (&s->waits, l) {
		wanted = HM_MAX(wanted, HM_CONTAINER(l, struct wait, on)->together);
		count++;
	}
	return count >= wanted;
}

/* Does the machine let a thread of it run, or would it if it had time? */
static bool is_runnable(const struct client *c)
{
	char path[64], line[512];
	bool runs = false;
	DIR *tasks;

	hm_fmt(path, sizeof path, "/proc/%u/task", c->pid);
	tasks = opendir(path);
	for (struct dirent *d; tasks != NULL && !runs && (d = readdir(tasks)) != NULL;) {
		const char *name_end;
		size_t n = 0;
		FILE *f;

		if (!isdigit((unsigned char)d->d_name[0]))
			continue;
		hm_fmt(path, sizeof path, "/proc/%u/task/%.16s/stat", c->pid, d->d_name);
		f = fopen(path, "re");
		if (f != NULL) {
			n = fread(line, 1, sizeof line - 1, f);
			fclose(f);
		}
		line[n] = '\0';
		name_end = strrchr(line, ')');
		runs = name_end != NULL && (name_end[1] == ' ' && (name_end[2] == 'R' || name_end[2] == 'D'));
	}
	if (tasks != NULL)
		closedir(tasks);
	return runs;
}

void clock_grace_over(struct server *s)
{
	LIST_FOR_EACH (&s->clients, l) {
		struct client *c = HM_CONTAINER(l, struct client, on);
		uint32_t activity;

		if (c->process == NO_PROCESS)
			continue;
		activity = atomic_load(&s->node->processes[c->process].activity);
		if (activity != c->seen_activity)
			c->graces = 0;
		else if (++c->graces >= RUNNABLE_GRACES || !is_runnable(c))
			c->idle = true;
		c->seen_activity = activity;
	}
	clock_turn(s);
}

static bool somebody_works(struct server *s)
{
	LIST_FOR_EACH (&s->clients, l) {
		struct client *c = HM_CONTAINER(l, struct client, on);
		const struct sim_process *p;

		if (c->process == NO_PROCESS)
			continue;
		p = &s->node->processes[c->process];
		if (atomic_load(&p->activity) != c->seen_activity)
			c->idle = false;
		if (atomic_load(&p->computes) != 0 && !c->idle && !waits(s, c))
			return true;
	}
	return false;
}

/* Nanoseconds to the next end of a turn, of a queue or of a wait; UINT64_MAX where nothing is going on. */
static uint64_t next_step(const struct server *s)
{
	const struct sim_node *n = s->node;
	uint64_t now = atomic_load(&n->virtual_ns), step = UINT64_MAX;
	unsigned turn[SIM_MAX_CARDS];

	for (unsigned i = 0; i < n->card_count; i++) {
		uint64_t left = sim_engine_turn_left(n, i, &turn[i]);

		step = HM_MIN(step, left);
	}
	LIST_FOR_EACH (&s->waits, l) {
		const struct wait *w = HM_CONTAINER(l, struct wait, on);
		uint64_t done;

		if (w->sleeps) {
			step = HM_MIN(step, w->at - now);
		} else if (turn[w->card] == w->client->process && !sim_engine_spins(n, w->card, w->client->process)) {
			done = atomic_load(&n->cards[w->card].shares[w->client->process].done_ns);
			step = HM_MIN(step, w->at - done);
		}
	}
	return step;
}

static bool move_on(struct server *s)
{
	struct sim_node *n = s->node;
	uint64_t now = atomic_load(&n->virtual_ns), step;

	for (unsigned i = 0; i < n->card_count; i++) {
		server_lock_card(s, i);
		sim_engine_advance(n, i, now);
		sim_card_unlock(&n->cards[i]);
	}
	step = next_step(s);
	if (step == UINT64_MAX)
		return false;
	for (unsigned i = 0; i < n->card_count; i++) {
		server_lock_card(s, i);
		sim_engine_advance(n, i, now + step);
		sim_card_unlock(&n->cards[i]);
	}
	atomic_store(&n->virtual_ns, now + step);
	return true;
}

/* Kernels that wait for one that never comes move the clock for ever. */
void clock_turn(struct server *s)
{
	for (unsigned moves = 0; moves < MOVES_AT_ONCE; moves++) {
		end_waits(s);
		if (list_empty(&s->waits) || !all_are_there(s))
			return;
		if (somebody_works(s)) {
			loop_timer_arm(s->grace, GRACE_MS);
			return;
		}
		if (!move_on(s))
			return;
	}
	loop_timer_arm(s->grace, 1);
}
