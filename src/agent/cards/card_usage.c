#include "agent/cards/card_usage.h"

#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "gpu/scan.h"

struct reading {
	char uuid[HM_UUID_BYTES];
	struct card_figures figures;
};

struct card_usage {
	struct loop *loop;
	struct worker *worker;
	const struct driver *driver;
	struct loop_timer *timer;
	struct reading cards[HM_MAX_CARDS]; /* what is shown */
	size_t count;
	uint64_t read_ms; /* 0: never */
	/* The worker's between submit and done. */
	struct worker_job job;
	struct reading work[HM_MAX_CARDS];
	size_t work_count;
};

static void in_worker(struct worker_job *job)
{
	struct card_usage *u = HM_CONTAINER(job, struct card_usage, job);
	struct gpu_driver *gpu = driver_gpu(u->driver);
	struct hm_err e;

	for (size_t i = 0; i < u->work_count; i++) {
		struct reading *r = &u->work[i];
		uint64_t total;

		r->figures = (struct card_figures) { 0 };
		if (gpu == NULL)
			continue;
		r->figures.has_memory = gpu_memory(gpu, r->uuid, &total, &r->figures.memory_used_bytes, &e) == 0;
		r->figures.has_busy = gpu_utilization(gpu, r->uuid, &r->figures.busy_percent,
						      &r->figures.memory_busy_percent, &e) == 0;
	}
}

static void on_read(struct worker_job *job)
{
	struct card_usage *u = HM_CONTAINER(job, struct card_usage, job);

	for (size_t i = 0; i < u->count; i++)
		for (size_t k = 0; k < u->work_count; k++)
			if (strcmp(u->cards[i].uuid, u->work[k].uuid) == 0)
				u->cards[i].figures = u->work[k].figures;
	u->read_ms = loop_now_ms(u->loop);
	loop_timer_arm(u->timer, CARD_USAGE_EVERY_MS);
}

static void on_timer(void *arg)
{
	struct card_usage *u = arg;

	u->work_count = u->count;
	memcpy(u->work, u->cards, sizeof u->work);
	worker_submit(u->worker, &u->job);
}

void card_usage_set_cards(struct card_usage *u, const struct inventory *inv)
{
	struct reading before[HM_MAX_CARDS];
	size_t known = u->count;

	memcpy(before, u->cards, sizeof before);
	u->count = HM_MIN(inv->count, (size_t)HM_MAX_CARDS);
	for (size_t i = 0; i < u->count; i++) {
		struct reading *r = &u->cards[i];

		*r = (struct reading) { 0 };
		hm_fmt(r->uuid, sizeof r->uuid, "%s", inv->cards[i].uuid);
		for (size_t k = 0; k < known; k++)
			if (strcmp(before[k].uuid, r->uuid) == 0)
				r->figures = before[k].figures;
	}
	if (!u->job.pending)
		loop_timer_arm(u->timer, 0);
}

const struct card_figures *card_usage_find(const struct card_usage *u, const char *uuid)
{
	if (u->read_ms == 0 || loop_now_ms(u->loop) - u->read_ms > CARD_USAGE_STALE_MS)
		return NULL;
	for (size_t i = 0; i < u->count; i++)
		if (strcmp(u->cards[i].uuid, uuid) == 0)
			return &u->cards[i].figures;
	return NULL;
}

int card_usage_new(struct loop *l, struct worker *w, const struct driver *d, struct card_usage **out, struct hm_err *e)
{
	struct card_usage *u = calloc(1, sizeof *u);

	if (u == NULL)
		return hm_err_set(e, HM_ENOMEM, "figures of the cards");
	u->loop = l;
	u->worker = w;
	u->driver = d;
	u->job = (struct worker_job) { in_worker, on_read, NULL };
	if (loop_timer_new(l, on_timer, u, &u->timer, e) < 0) {
		free(u);
		return hm_err_wrap(e, "figures of the cards");
	}
	*out = u;
	return 0;
}

void card_usage_free(struct card_usage *u)
{
	if (u == NULL)
		return;
	loop_timer_free(u->timer);
	if (!u->job.pending) /* else a hung call still uses it */
		free(u);
}
