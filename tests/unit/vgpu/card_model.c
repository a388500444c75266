#include "unit/vgpu/card_model.h"

#include <stdlib.h>
#include <string.h>

#include "region/alpha.h"
#include "vgpu/estimate.h"
#include "vgpu/gate.h"

enum { STEP_US = 5, QUANTUM_US = 2000, QUEUE = 1024, WINDOW_US = 2000000, HALF_US = 500000, START_US = 1000000 };

struct kernel {
	unsigned left_us;
	uint64_t from_us; /* when it was submitted */
	bool marked;
	struct estimate *row;
	uint64_t estimate_ns;
	uint32_t weight;
	int64_t launched_ns;
};

struct process {
	const struct model_process *p;
	struct estimates *all;
	struct gate gate;
	struct kernel queue[QUEUE];
	unsigned head, queued, marks, launches;
	uint64_t next_us, last_end_us;
	unsigned kind; /* drawn for the next launch */
	bool drawn, waits;
};

struct container {
	struct region_compute shared;
	struct alpha alpha;
	uint64_t used_us;
	uint64_t *used_at; /* by HALF_US */
	uint64_t sampled[256];
	unsigned samples;
};

struct world {
	const struct model *m;
	struct container c[MODEL_CONTAINERS];
	struct process p[MODEL_PROCESSES];
	unsigned count, running, slice_us;
	uint64_t now_us, random;
};

static unsigned draw(struct world *w, unsigned below)
{
	w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (unsigned)(w->random >> 33) % below;
}

static uint64_t now_ns(const struct world *w)
{
	return 1000000000000 + w->now_us * 1000;
}

static unsigned share_of(const struct world *w, const struct process *p)
{
	return w->m->share[p->p->container];
}

static void push(struct world *w, struct process *p, struct kernel k)
{
	p->queue[(p->head + p->queued++) % QUEUE] = k;
	p->marks += k.marked;
	p->launches++;
	p->drawn = false;
	p->next_us = w->now_us + 5;
	if (p->p->sync != 0 && p->launches % p->p->sync == 0)
		p->waits = true;
}

static void host(struct world *w, struct process *p)
{
	struct kernel k = { .from_us = w->now_us };
	unsigned kinds = 0;
	uint64_t wait;

	if (p->waits || p->queued == QUEUE || w->now_us < p->next_us ||
	    (p->p->killed_us != 0 && w->now_us >= p->p->killed_us))
		return;
	while (kinds < MODEL_KINDS && p->p->us[kinds] != 0)
		kinds++;
	if (!p->drawn)
		p->kind = draw(w, kinds);
	p->drawn = true;
	k.left_us = p->p->us[p->kind];
	if (share_of(w, p) == 100) {
		push(w, p, k);
		return;
	}
	k.row = estimate_find(p->all, estimate_key(p, w->m->one_kind ? 1 : p->kind + 1, 1));
	k.estimate_ns = k.row->ns;
	if (p->marks == 0)
		gate_idle(&p->gate);
	wait = gate_pass(&p->gate, k.estimate_ns) ? 0 : gate_ask(&p->gate, now_ns(w), k.estimate_ns, false);
	if (wait != 0) {
		wait = HM_MAX(wait / 1000, UINT64_C(50));
		p->next_us = w->now_us + HM_MIN(wait, UINT64_C(1000));
		return;
	}
	k.marked = estimate_wants_mark(p->all, k.row, &k.weight);
	k.launched_ns = gate_launched(&p->gate);
	push(w, p, k);
}

static void finish(struct world *w, struct process *p)
{
	struct kernel *k = &p->queue[p->head];
	uint64_t end = w->now_us + STEP_US, span = (end - HM_MAX(p->last_end_us, k->from_us)) * 1000;

	if (k->marked) {
		gate_done(&p->gate, now_ns(w), k->estimate_ns, span, k->weight, k->launched_ns);
		estimate_learn(k->row, span);
		p->marks--;
	}
	p->last_end_us = end;
	p->head = (p->head + 1) % QUEUE;
	p->queued--;
	if (p->waits && p->queued == 0) {
		p->waits = false;
		p->next_us = end + 10;
	}
}

static void rotate(struct world *w)
{
	for (unsigned i = 1; i <= w->count; i++) {
		unsigned next = (w->running + i) % w->count;

		if (w->p[next].queued == 0)
			continue;
		w->running = next;
		w->slice_us = QUANTUM_US;
		return;
	}
}

static void card(struct world *w)
{
	struct process *p = &w->p[w->running];

	if (p->queued == 0 || w->slice_us == 0)
		rotate(w);
	p = &w->p[w->running];
	if (p->queued == 0)
		return;
	w->slice_us -= STEP_US;
	w->c[p->p->container].used_us += STEP_US;
	p->queue[p->head].left_us -= STEP_US;
	if (p->queue[p->head].left_us == 0)
		finish(w, p);
}

/* Whole percents, late and noisy. */
static void sample(struct world *w, struct container *c)
{
	unsigned late = w->m->lag_ms / w->m->sample_ms;
	uint64_t now = now_ns(w), every = w->m->sample_ms * UINT64_C(1000000), to = now - late * every;
	int percent;

	alpha_note(&c->alpha, now, c->shared.spans_ns);
	c->sampled[c->samples++ % 256] = c->used_us;
	if (c->samples < late + 2)
		return;
	percent = (int)((c->sampled[(c->samples - 1 - late) % 256] - c->sampled[(c->samples - 2 - late) % 256]) *
			100000 / every);
	if (w->m->noise_points != 0)
		percent += (int)(draw(w, 2 * w->m->noise_points + 1)) - (int)w->m->noise_points;
	alpha_sample(&c->alpha, to - every, to, (uint64_t)HM_MAX(percent, 0) * every / 100);
	c->shared.alpha = c->alpha.value;
	c->shared.error_ns = (uint64_t)c->alpha.error_ns;
}

static struct model_result sum_up(const struct world *w, unsigned halves)
{
	struct model_result out = { .total = 0 };

	for (unsigned i = 0; i < MODEL_CONTAINERS && w->m->share[i] != 0; i++) {
		const uint64_t *at = w->c[i].used_at;

		out.low[i] = 100;
		for (unsigned h = START_US / HALF_US; h + WINDOW_US / HALF_US < halves; h++) {
			double share = (double)(at[h + WINDOW_US / HALF_US] - at[h]) * 100 / WINDOW_US;

			out.low[i] = HM_MIN(out.low[i], share);
			out.high[i] = HM_MAX(out.high[i], share);
		}
		out.mean[i] = (double)(at[halves - 1] - at[START_US / HALF_US]) * 100 /
			      ((halves - 1) * (double)HALF_US - START_US);
		out.total += out.mean[i];
	}
	return out;
}

static void tick(struct world *w)
{
	for (unsigned i = 0; i < w->count; i++)
		host(w, &w->p[i]);
	card(w);
	for (unsigned i = 0; i < MODEL_CONTAINERS && w->m->share[i] != 0; i++) {
		if (w->m->sample_ms != 0 && w->now_us % (w->m->sample_ms * 1000) == 0)
			sample(w, &w->c[i]);
		if (w->now_us % HALF_US == 0)
			w->c[i].used_at[w->now_us / HALF_US] = w->c[i].used_us;
	}
	w->now_us += STEP_US;
}

struct model_result model_run(const struct model *m)
{
	struct world *w = calloc(1, sizeof *w);
	unsigned halves = m->seconds * 1000000 / HALF_US;
	struct model_result out;

	w->m = m;
	w->random = 7;
	for (unsigned i = 0; i < MODEL_CONTAINERS; i++)
		w->c[i].used_at = calloc(halves, sizeof *w->c[i].used_at);
	for (; w->count < MODEL_PROCESSES && m->processes[w->count].us[0] != 0; w->count++) {
		struct process *p = &w->p[w->count];

		p->p = &m->processes[w->count];
		p->all = calloc(1, sizeof *p->all);
		p->next_us = w->count * 300;
		p->gate.shared = &w->c[p->p->container].shared;
		p->gate.share = m->share[p->p->container];
	}
	while (w->now_us < (uint64_t)halves * HALF_US)
		tick(w);
	out = sum_up(w, halves);
	for (unsigned i = 0; i < MODEL_CONTAINERS; i++)
		free(w->c[i].used_at);
	for (unsigned i = 0; i < w->count; i++)
		free(w->p[i].all);
	free(w);
	return out;
}
