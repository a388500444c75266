#include "agent/cards/card_watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/rate.h"
#include "core/fmt.h"

/* One card's, the worker's between submit and done. */
struct look {
	char uuid[HM_UUID_BYTES];
	bool ask; /* in: how it is, whatever comes */
	bool asked, has_events;
	unsigned failures; /* of taking its events, one after the other */
	uint64_t retry_ms;
	int taken; /* what gpu_events_take said; 1: not tried */
	bool said; /* that it has no events; the loop's */
	struct hm_err err;
	struct gpu_event events[CARD_WATCH_EVENTS];
	size_t count;
	struct gpu_vitals vitals;
};

struct card_watch {
	struct loop *loop;
	struct card_watch_config config;
	struct loop_timer *timer;
	struct rate said; /* how often an error of a program's is logged: it can make any number */
	unsigned round;
	struct worker_job job;
	bool looked; /* there was a driver */
	uint64_t now_ms;
	struct look cards[HM_MAX_CARDS];
	size_t count;
};

/* ---- in the worker */

static uint64_t backoff_ms(unsigned failures)
{
	uint64_t wait = (uint64_t)CARD_WATCH_RETRY_MS << (failures < 10 ? failures : 10);

	return HM_MIN(wait, (uint64_t)CARD_WATCH_RETRY_MAX_MS);
}

static void take_events(struct look *c, struct gpu_driver *gpu, uint64_t now_ms)
{
	c->count = 0;
	c->taken = 1;
	if (c->failures > 0 && now_ms < c->retry_ms)
		return;
	c->taken = gpu_events_take(gpu, c->uuid, c->events, CARD_WATCH_EVENTS, &c->count, &c->err);
	if (c->taken == 0 || c->taken == -HM_EUNSUPPORTED) {
		c->has_events = c->taken == 0;
		c->failures = 0;
		return;
	}
	c->retry_ms = now_ms + backoff_ms(c->failures);
	c->failures++;
}

static void in_worker(struct worker_job *job)
{
	struct card_watch *w = HM_CONTAINER(job, struct card_watch, job);
	struct gpu_driver *gpu = driver_gpu(w->config.driver);

	w->looked = gpu != NULL;
	for (size_t i = 0; w->looked && i < w->count; i++) {
		struct look *c = &w->cards[i];

		take_events(c, gpu, w->now_ms);
		c->asked = c->ask || c->count > 0 || c->taken < 0;
		if (c->asked)
			gpu_vitals_read(gpu, c->uuid, &c->vitals);
	}
}

/* ---- in the loop */

static void prepare(struct card_watch *w)
{
	bool ask = w->round++ % CARD_WATCH_ASK_EVERY == 0;

	w->count = card_health_count(w->config.health);
	for (size_t i = 0; i < w->count; i++) {
		const struct card_state *s = card_health_at(w->config.health, i);
		struct look *c = &w->cards[i];

		if (strcmp(c->uuid, s->uuid) != 0) {
			*c = (struct look) { .ask = true };
			hm_fmt(c->uuid, sizeof c->uuid, "%s", s->uuid);
		}
		c->ask = ask;
	}
}

static void on_timer(void *arg)
{
	struct card_watch *w = arg;

	prepare(w);
	w->now_ms = loop_now_ms(w->loop);
	worker_submit(w->config.worker, &w->job);
}

static void say_events(struct card_watch *w, const struct look *c, uint64_t now_ms)
{
	for (size_t i = 0; i < c->count; i++) {
		const struct gpu_event *e = &c->events[i];

		if (!rate_take(&w->said, now_ms))
			return;
		if (e->kind == GPU_EVENT_XID)
			log_warn("the driver reports an error of a card", KV("uuid", c->uuid), KV_U64("xid", e->xid),
				 KV("what", xid_words(e->xid)), KV("nvidia_says", xid_action(e->xid)),
				 KV_U64("times", e->count));
		else
			log_warn("the driver reports a double-bit ECC error of a card", KV("uuid", c->uuid),
				 KV_U64("times", e->count));
	}
}

static void say_failure(struct look *c)
{
	if (c->taken == -HM_EUNSUPPORTED && !c->said)
		log_v(4, "no events of a card; it is asked", KV("uuid", c->uuid), KV_ERR(&c->err));
	else if (c->taken < 0 && c->taken != -HM_EUNSUPPORTED && c->failures == 1)
		log_warn("the driver's events of a card cannot be had; trying again, less and less often",
			 KV("uuid", c->uuid), KV_ERR(&c->err));
	c->said = c->taken == -HM_EUNSUPPORTED || (c->said && c->taken != 0);
}

static void on_done(struct worker_job *job)
{
	struct card_watch *w = HM_CONTAINER(job, struct card_watch, job);
	const struct card_now now = { loop_now_ms(w->loop), clock_wall_ms() };
	bool gone = false;

	for (size_t i = 0; w->looked && i < w->count; i++) {
		struct look *c = &w->cards[i];

		say_events(w, c, now.ms);
		say_failure(c);
		gone |= c->asked && c->vitals.answer == GPU_DRIVER_GONE;
		card_health_note(w->config.health, c->uuid, c->events, c->count, c->asked ? &c->vitals : NULL,
				 c->has_events, now);
	}
	w->config.looked(w->config.arg);
	if (gone)
		driver_scan_soon(w->config.driver);
	loop_timer_arm(w->timer, CARD_WATCH_EVERY_MS);
}

int card_watch_new(struct loop *l, const struct card_watch_config *config, struct card_watch **out, struct hm_err *e)
{
	struct card_watch *w = calloc(1, sizeof *w);

	if (w == NULL)
		return hm_err_set(e, HM_ENOMEM, "watch of the cards");
	w->loop = l;
	w->config = *config;
	w->job = (struct worker_job) { in_worker, on_done, NULL };
	rate_init(&w->said, 1, 10000, 20, loop_now_ms(l));
	if (loop_timer_new(l, on_timer, w, &w->timer, e) < 0) {
		free(w);
		return hm_err_wrap(e, "watch of the cards");
	}
	loop_timer_arm(w->timer, CARD_WATCH_EVERY_MS);
	*out = w;
	return 0;
}

void card_watch_soon(struct card_watch *w)
{
	if (!w->job.pending)
		loop_timer_arm(w->timer, 0);
}

void card_watch_free(struct card_watch *w)
{
	if (w == NULL)
		return;
	loop_timer_free(w->timer);
	if (w->job.pending)
		return; /* the hung call still uses the job */
	free(w);
}
