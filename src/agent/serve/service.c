#include "agent/serve/service.h"

#include <stdlib.h>
#include <string.h>

#include "agent/serve/container_start.h"
#include "base/log.h"
#include "core/link.h"

struct service {
	struct loop *loop;
	struct service_config config;
	const struct fleet *fleet; /* NULL until the first scan */
	struct link waiting;       /* calls that may succeed soon */
	struct loop_timer *look;
	struct hm_err checkpoint_trouble; /* container_start's */
	struct service_stats stats;
};

static int need_fleet(const struct service *s, struct hm_err *e)
{
	return s->fleet != NULL ? 0 : hm_err_set(e, HM_EAGAIN, "the cards of this node are not known yet");
}

static struct binding_tools tools_of(const struct service *s)
{
	return (struct binding_tools) { .paths = s->config.paths,
					.inventory = fleet_inventory(s->fleet),
					.claims = s->config.claims,
					.pending = s->config.pending,
					.edits = s->config.edits,
					.cdi_annotations = s->config.options->cdi_annotations,
					.oversubscribe = s->config.options->oversubscribe,
					.now_ms = loop_now_ms(s->loop) };
}

/* ---- GetPreferredAllocation */

struct preferred {
	const char **ids; /* all containers' answers, one behind the other */
	const char *const **starts;
	size_t *counts;
};

static int prefer_all(const struct service *s, const struct dp_preferred_request *containers, size_t count,
		      struct preferred *p, struct hm_err *e)
{
	size_t room = 0, at = 0;

	for (size_t i = 0; i < count; i++)
		room += containers[i].available_count + containers[i].must_count;
	p->ids = calloc(room + 1, sizeof *p->ids);
	p->starts = calloc(count + 1, sizeof *p->starts);
	p->counts = calloc(count + 1, sizeof *p->counts);
	if (p->ids == NULL || p->starts == NULL || p->counts == NULL)
		return hm_err_set(e, HM_ENOMEM, "preferred allocation");
	for (size_t i = 0; i < count; i++) {
		p->starts[i] = p->ids + at;
		if (s->config.offer->class->prefer(s->config.offer, &containers[i], p->ids + at, &p->counts[i], e) < 0)
			return -e->code;
		at += p->counts[i];
	}
	return 0;
}

static void on_preferred(void *arg, struct dp_call *call, const struct dp_preferred_request *containers, size_t count)
{
	struct service *s = arg;
	struct preferred p = { 0 };
	struct hm_err e;

	if (need_fleet(s, &e) < 0 || prefer_all(s, containers, count, &p, &e) < 0)
		dp_fail(call, &e);
	else
		dp_reply_preferred(call, p.starts, p.counts, count);
	free(p.ids);
	free(p.starts);
	free(p.counts);
}

/* ---- Allocate */

static int allocate_one(struct service *s, const struct dp_container_request *req, struct binding_answer *out,
			struct hm_err *e)
{
	const struct binding *binding = agent_binds_late(s->config.options) ? &binding_late : &binding_classic;
	const struct binding_tools tools = tools_of(s);
	const struct offer_class *class = s->config.offer->class;
	struct claim c, named;
	uint64_t number;
	int r;

	if (counter_take(s->config.counter, &number, e) < 0 ||
	    class->claim(s->config.offer, req->ids, req->count, number, &c, e) < 0)
		return -e->code;
	c.created_ms = clock_wall_ms();
	named = c;
	named.devices = NULL;
	named.device_count = 0;
	r = binding->allocate(&tools, &c, out, e); /* may take it */
	claim_fini(&c);
	if (class->answered != NULL)
		class->answered(s->config.offer, &named, r == 0);
	if (r < 0)
		return r;
	s->stats.allocations++;
	log_v(1, "allocated", KV_U64("number", named.number), KV("first", req->ids[0]), KV_U64("devices", req->count));
	return 0;
}

static int allocate_all(struct service *s, const struct dp_container_request *containers, size_t count,
			struct binding_answer *answers, struct dp_container_answer *dp, struct hm_err *e)
{
	if (s->config.offer->class->call != NULL)
		s->config.offer->class->call(s->config.offer);
	for (size_t i = 0; i < count; i++) {
		if (allocate_one(s, &containers[i], &answers[i], e) < 0)
			return -e->code;
		dp[i] = answers[i].dp;
	}
	return 0;
}

/* Answers the call, but for -HM_EAGAIN, whose answer is the caller's. */
static int try_allocate(struct service *s, struct dp_call *call, const struct dp_container_request *containers,
			size_t count, struct hm_err *e)
{
	struct binding_answer *answers = calloc(count + 1, sizeof *answers);
	struct dp_container_answer *dp = calloc(count + 1, sizeof *dp);
	int r = need_fleet(s, e);

	if (r == 0 && (answers == NULL || dp == NULL))
		r = hm_err_set(e, HM_ENOMEM, "Allocate");
	if (r == 0)
		r = allocate_all(s, containers, count, answers, dp, e);
	if (r == 0)
		dp_reply_allocate(call, dp, count);
	for (size_t i = 0; answers != NULL && i < count; i++)
		binding_answer_fini(&answers[i]);
	free(answers);
	free(dp);
	return r;
}

static void refuse_allocate(struct service *s, struct dp_call *call, const struct hm_err *e)
{
	s->stats.allocate_errors++;
	log_error("Allocate failed; the kubelet rejects the pod", KV_ERR(e));
	dp_fail(call, e);
}

/* ---- PreStartContainer */

static int try_start(struct service *s, const struct dp_container_request *req, struct hm_err *e)
{
	if (need_fleet(s, e) < 0)
		return -e->code;
	const struct container_start_tools tools = { .binding = tools_of(s),
						     .offer = s->config.offer,
						     .checkpoint_trouble = &s->checkpoint_trouble,
						     .life = s->config.life,
						     .arg = s->config.arg,
						     .cluster = s->config.cluster,
						     .unseen = &s->stats.unseen };

	return container_start(&tools, req->ids, req->count, e);
}

static void finish_start(struct service *s, struct dp_call *call, int r, const struct hm_err *e)
{
	if (r < 0) {
		s->stats.start_errors++;
		log_warn("a container may not start yet", KV_ERR(e));
		dp_fail(call, e);
		return;
	}
	s->stats.starts++;
	dp_reply_pre_start(call);
	s->config.started(s->config.arg);
}

/* ---- calls that may succeed soon: a start, or an Allocate of one container */

struct waiting {
	struct link link;
	struct dp_call *call;
	uint64_t begun_us, until_ms, looked_ms;
	bool allocate;
	char **ids;
	size_t id_count;
};

static void waiting_free(struct waiting *w)
{
	if (w == NULL)
		return;
	link_remove(&w->link);
	for (size_t i = 0; w->ids != NULL && i < w->id_count; i++)
		free(w->ids[i]);
	free(w->ids);
	free(w);
}

static bool wait_for(struct service *s, struct dp_call *call, const struct dp_container_request *req, bool allocate,
		     uint64_t begun_us)
{
	struct waiting *w = calloc(1, sizeof *w);

	if (w == NULL || (w->ids = calloc(req->count + 1, sizeof *w->ids)) == NULL) {
		waiting_free(w);
		return false;
	}
	for (; w->id_count < req->count; w->id_count++) {
		w->ids[w->id_count] = strdup(req->ids[w->id_count]);
		if (w->ids[w->id_count] == NULL) {
			waiting_free(w);
			return false;
		}
	}
	w->call = call;
	w->allocate = allocate;
	w->begun_us = begun_us;
	w->until_ms = loop_now_ms(s->loop) +
		      (allocate ? s->config.offer->class->allocate_wait_ms : (uint32_t)SERVICE_START_WAIT_MS);
	link_append(&s->waiting, &w->link);
	dp_call_set_data(call, w);
	loop_timer_arm(s->look, SERVICE_LOOK_MS);
	return true;
}

/* The kubelet asks for one container at a time. */
static void on_allocate(void *arg, struct dp_call *call, const struct dp_container_request *containers, size_t count)
{
	struct service *s = arg;
	uint64_t begun_us = loop_now_us(s->loop);
	bool may_wait = s->config.offer->class->allocate_wait_ms > 0 && count == 1;
	struct hm_err e;
	int r = try_allocate(s, call, containers, count, &e);

	if (r == -HM_EAGAIN && may_wait && wait_for(s, call, &containers[0], true, begun_us)) {
		log_v(1, "an Allocate waits", KV_ERR(&e));
		return;
	}
	if (r < 0)
		refuse_allocate(s, call, &e);
	latency_note(&s->stats.allocate, loop_now_us(s->loop) - begun_us);
}

static void on_pre_start(void *arg, struct dp_call *call, const struct dp_container_request *req)
{
	struct service *s = arg;
	uint64_t begun_us = loop_now_us(s->loop);
	struct hm_err e;
	int r = try_start(s, req, &e);

	if (r == -HM_EAGAIN && wait_for(s, call, req, false, begun_us)) {
		log_v(2, "a container's start waits", KV_ERR(&e));
		return;
	}
	finish_start(s, call, r, &e);
	latency_note(&s->stats.start, loop_now_us(s->loop) - begun_us);
}

/* An answer may end other calls of the same connection, and with them their place on the list: so one at a time. */
static struct waiting *next_to_look(const struct service *s, uint64_t now)
{
	LIST_FOR_EACH (&s->waiting, it) {
		struct waiting *w = HM_CONTAINER(it, struct waiting, link);

		if (w->looked_ms != now)
			return w;
	}
	return NULL;
}

/* Out of the list before its call is answered, which may end others. */
static void look_at(struct service *s, struct waiting *w, uint64_t now)
{
	const struct dp_container_request req = { (const char *const *)w->ids, w->id_count };
	struct dp_call *call = w->call;
	uint64_t begun_us = w->begun_us;
	bool allocate = w->allocate;
	struct hm_err e;
	int r;

	w->looked_ms = now;
	link_remove(&w->link);
	dp_call_set_data(call, NULL);
	r = allocate ? try_allocate(s, call, &req, 1, &e) : try_start(s, &req, &e);
	if (r == -HM_EAGAIN && now < w->until_ms) {
		link_append(&s->waiting, &w->link);
		dp_call_set_data(call, w);
		return;
	}
	waiting_free(w);
	if (!allocate)
		finish_start(s, call, r, &e);
	else if (r < 0)
		refuse_allocate(s, call, &e);
	latency_note(allocate ? &s->stats.allocate : &s->stats.start, loop_now_us(s->loop) - begun_us);
}

static void on_look(void *arg)
{
	struct service *s = arg;
	uint64_t now = loop_now_ms(s->loop);
	struct waiting *w;

	while ((w = next_to_look(s, now)) != NULL)
		look_at(s, w, now);
	if (!list_empty(&s->waiting))
		loop_timer_arm(s->look, SERVICE_LOOK_MS);
}

static void on_gone(void *arg, struct dp_call *call)
{
	(void)arg;
	waiting_free(dp_call_data(call));
}

static void on_watchers(void *arg, size_t watchers)
{
	struct service *s = arg;

	s->config.watchers(s->config.watchers_arg, watchers);
}

/* ---- life */

int service_new(struct loop *l, const struct service_config *config, struct service **out, struct hm_err *e)
{
	hm_auto(service) *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "service");
	s->loop = l;
	s->config = *config;
	list_init(&s->waiting);
	if (loop_timer_new(l, on_look, s, &s->look, e) < 0)
		return hm_err_wrap(e, "service");
	*out = HM_STEAL(s);
	return 0;
}

void service_free(struct service *s)
{
	if (s == NULL)
		return;
	LIST_FOR_EACH (&s->waiting, it) {
		waiting_free(HM_CONTAINER(it, struct waiting, link));
	}
	loop_timer_free(s->look);
	free(s);
}

void service_set_fleet(struct service *s, const struct fleet *fleet)
{
	s->fleet = fleet;
}

struct dp_handlers service_handlers(struct service *s)
{
	return (struct dp_handlers) { .preferred = on_preferred,
				      .allocate = on_allocate,
				      .pre_start = on_pre_start,
				      .watchers = on_watchers,
				      .gone = on_gone,
				      .arg = s };
}

struct service_stats service_stats(const struct service *s)
{
	return s->stats;
}
