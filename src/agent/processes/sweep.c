#include "agent/processes/sweep.h"

#include <stdlib.h>

#include "agent/processes/holders.h"
#include "base/array.h"
#include "base/log.h"
#include "contract/host.h"
#include "region/region.h"

/* Regions that cost more than they should. */
struct costly {
	uint64_t number, until_round; /* left alone until then */
	uint64_t reaped_round;        /* the last round that found dead processes ... */
	unsigned in_a_row;            /* ... and how many rounds before it did too */
};

struct sweep {
	struct loop_timer *timer;
	const char *proc;
	const struct agent_paths *paths;
	const struct claims *claims;
	uint64_t round;
	struct costly *costly;
	size_t costly_count, costly_cap;
};

/* Two looks at /proc. The common one is shared by all regions of a round and may be older than a process that a region
 * names: it only ever says "alive". "Dead" is said by a look that began after that region was read. */
struct judge {
	const char *proc;
	struct holder_pids *common, *fresh;
	bool found_dead;
};

static bool is_alive(const struct region_process *p, void *arg)
{
	struct judge *j = arg;
	struct hm_err e;

	if (holder_pids_alive(p, j->common))
		return true;
	if (j->fresh == NULL && holder_pids_new(j->proc, &j->fresh, &e) < 0)
		return true;
	/* Without the host's pid namespace no container's processes are seen, and all would be taken for dead. */
	if (holder_pids_alive(p, j->fresh) || !holder_pids_sees_containers(j->fresh))
		return true;
	j->found_dead = true;
	return false;
}

/* NULL where memory is short. */
static struct costly *costly_of(struct sweep *s, uint64_t number)
{
	for (size_t i = 0; i < s->costly_count; i++)
		if (s->costly[i].number == number)
			return &s->costly[i];
	if (!HM_PUSH(s->costly, s->costly_count, s->costly_cap, (struct costly) { .number = number }))
		return NULL;
	return &s->costly[s->costly_count - 1];
}

static void forget_costly(struct sweep *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->costly_count; i++)
		if (s->costly[i].until_round > s->round || s->costly[i].reaped_round + 1 >= s->round)
			s->costly[kept++] = s->costly[i];
	s->costly_count = kept;
}

static bool is_left_alone(const struct sweep *s, uint64_t number)
{
	for (size_t i = 0; i < s->costly_count; i++)
		if (s->costly[i].number == number)
			return s->costly[i].until_round > s->round;
	return false;
}

static void note_resistance(struct sweep *s, uint64_t number)
{
	struct costly *c = costly_of(s, number);

	if (c != NULL)
		c->until_round = s->round + SWEEP_STUBBORN_ROUNDS;
}

/* The dead may be invented anew each round, and each round of them costs a fork and a look at /proc. After a pause one
 * round tells whether it goes on. */
static void note_reaped(struct sweep *s, uint64_t number)
{
	struct costly *c = costly_of(s, number);

	if (c == NULL)
		return;
	c->in_a_row = c->reaped_round + 1 == s->round ? c->in_a_row + 1 : 1;
	c->reaped_round = s->round;
	if (c->in_a_row <= SWEEP_IN_A_ROW)
		return;
	c->in_a_row = SWEEP_IN_A_ROW;
	c->until_round = s->round + SWEEP_PAUSE_ROUNDS;
	c->reaped_round = c->until_round - 1;
}

static size_t sweep_region(struct sweep *s, struct judge *j, uint64_t number)
{
	struct hm_err e = { 0 };
	int n;

	j->found_dead = false;
	n = region_reap(agent_path_alloc(s->paths, number, HM_ALLOC_REGION).s, is_alive, j, &e);
	holder_pids_free(HM_STEAL(j->fresh));
	if (n > 0) {
		log_v(2, "gave back the charge of ended processes", KV_U64("number", number), KV_I64("processes", n));
		note_reaped(s, number);
		return (size_t)n;
	}
	if (n == -HM_ENOTFOUND)
		return 0; /* being made, or being removed */
	if (n < 0 || j->found_dead) {
		log_v(2, "the charge of ended processes stays for now", KV_U64("number", number), KV_ERR(&e));
		note_resistance(s, number);
	}
	return 0;
}

size_t sweep_round(struct sweep *s)
{
	struct judge j = { .proc = s->proc };
	struct hm_err e;
	size_t total = 0;

	s->round++;
	forget_costly(s);
	if (holder_pids_new(s->proc, &j.common, &e) < 0)
		return 0;
	for (size_t i = 0; i < claims_count(s->claims); i++) {
		const struct claim *c = claims_at(s->claims, i);

		if (c->state == CLAIM_ACTIVE && !is_left_alone(s, c->number))
			total += sweep_region(s, &j, c->number);
	}
	holder_pids_free(j.common);
	return total;
}

static void on_timer(void *arg)
{
	struct sweep *s = arg;

	loop_timer_arm(s->timer, SWEEP_EVERY_MS);
	if (claims_count(s->claims) > 0)
		sweep_round(s);
}

int sweep_new(struct loop *l, const char *proc, const struct agent_paths *paths, const struct claims *claims,
	      struct sweep **out, struct hm_err *e)
{
	hm_auto(sweep) *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "sweep");
	*s = (struct sweep) { .proc = proc, .paths = paths, .claims = claims };
	if (loop_timer_new(l, on_timer, s, &s->timer, e) < 0)
		return hm_err_wrap(e, "sweep");
	loop_timer_arm(s->timer, SWEEP_EVERY_MS);
	*out = HM_STEAL(s);
	return 0;
}

void sweep_free(struct sweep *s)
{
	if (s == NULL)
		return;
	loop_timer_free(s->timer);
	free(s->costly);
	free(s);
}
