#include "agent/sweep.h"

#include <stdlib.h>

#include "agent/holders.h"
#include "base/array.h"
#include "base/log.h"
#include "contract/host.h"
#include "region/region.h"

struct stubborn {
	uint64_t number, until_round;
};

struct sweep {
	struct loop_timer *timer;
	const char *proc;
	const struct agent_paths *paths;
	const struct claims *claims;
	uint64_t round;
	struct stubborn *stubborn;
	size_t stubborn_count, stubborn_cap;
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

static struct stubborn *find_stubborn(struct sweep *s, uint64_t number)
{
	for (size_t i = 0; i < s->stubborn_count; i++)
		if (s->stubborn[i].number == number)
			return &s->stubborn[i];
	return NULL;
}

static void forget_stubborn(struct sweep *s)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->stubborn_count; i++)
		if (s->stubborn[i].until_round > s->round)
			s->stubborn[kept++] = s->stubborn[i];
	s->stubborn_count = kept;
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
		return (size_t)n;
	}
	if (n == -HM_ENOTFOUND)
		return 0; /* being made, or being removed */
	if (n < 0 || j->found_dead) {
		log_v(2, "the charge of ended processes stays for now", KV_U64("number", number), KV_ERR(&e));
		if (!HM_PUSH(s->stubborn, s->stubborn_count, s->stubborn_cap,
			     (struct stubborn) { number, s->round + SWEEP_STUBBORN_ROUNDS }))
			log_warn("memory is short");
	}
	return 0;
}

size_t sweep_round(struct sweep *s)
{
	struct judge j = { .proc = s->proc };
	struct hm_err e;
	size_t total = 0;

	s->round++;
	forget_stubborn(s);
	if (holder_pids_new(s->proc, &j.common, &e) < 0)
		return 0;
	for (size_t i = 0; i < claims_count(s->claims); i++) {
		const struct claim *c = claims_at(s->claims, i);

		if (c->state == CLAIM_ACTIVE && find_stubborn(s, c->number) == NULL)
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
	free(s->stubborn);
	free(s);
}
