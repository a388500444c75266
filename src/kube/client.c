#include "kube/client.h"

#include <string.h>

#include "base/log.h"
#include "base/rate.h"
#include "core/link.h"
#include "kube/backoff.h"
#include "kube/token.h"
#include "kube/transport.h"

struct kube_client {
	struct loop *loop;
	struct kube_config *config;
	struct kube_client_options options;
	struct kube_transport *transport;
	struct kube_token token;
	bool token_bad; /* its file cannot be read: said once */
	struct rate rate;
	struct link waiting;     /* calls that wait for our own rate, the first to go first */
	struct loop_timer *turn; /* when the next of them may */
	struct kube_stats stats;
	struct link calls;
};

struct kube_call {
	struct link link, waiting;
	struct kube_client *client;
	enum kube_verb verb;
	char *path, *body;
	const char *content_type; /* a constant's text: not copied */
	size_t n;
	uint32_t timeout_ms, stall_ms;
	unsigned tries_left, throttled;
	bool token_tried, once;
	struct kube_backoff backoff;
	struct loop_timer *timer;       /* while it waits for its next try */
	struct kube_transfer *transfer; /* while it is tried */
	struct kube_events_of_call events;
};

static void on_turn(void *arg);
static void on_done(void *arg, const struct kube_transfer_result *result);

static const struct kube_client_options defaults = {
	.user_agent = "hami-vgpu",
	.connect_ms = 5000,
	.request_ms = 30000,
	.backoff_ms = 500,
	.backoff_max_ms = 30000,
	.tries = 4,
	.max_connections = 16,
	.max_bytes = KUBE_MAX_ANSWER_BYTES,
};

static struct kube_client_options with_defaults(const struct kube_client_options *given)
{
	struct kube_client_options o = given != NULL ? *given : defaults;

	o.user_agent = o.user_agent != NULL ? o.user_agent : defaults.user_agent;
	o.connect_ms = o.connect_ms != 0 ? o.connect_ms : defaults.connect_ms;
	o.request_ms = o.request_ms != 0 ? o.request_ms : defaults.request_ms;
	o.backoff_ms = o.backoff_ms != 0 ? o.backoff_ms : defaults.backoff_ms;
	o.backoff_max_ms = o.backoff_max_ms != 0 ? o.backoff_max_ms : defaults.backoff_max_ms;
	o.tries = o.tries != 0 ? o.tries : defaults.tries;
	o.max_connections = o.max_connections != 0 ? o.max_connections : defaults.max_connections;
	o.max_bytes = o.max_bytes != 0 ? o.max_bytes : defaults.max_bytes;
	o.burst = o.burst != 0 ? o.burst : 2 * o.per_second;
	return o;
}

int kube_client_new(struct loop *l, struct kube_config *take_config, const struct kube_client_options *options,
		    struct kube_client **out, struct hm_err *e)
{
	hm_auto(kube_config) *config = take_config;
	hm_auto(kube_client) *c = calloc(1, sizeof *c);
	struct kube_transport_options transport;
	struct hm_err own;
	bool changed;

	e = e != NULL ? e : &own;
	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "Kubernetes client");
	list_init(&c->calls);
	list_init(&c->waiting);
	c->loop = l;
	c->options = with_defaults(options);
	c->config = HM_STEAL(config);
	transport = (struct kube_transport_options) { c->options.connect_ms, c->options.max_connections,
						      c->options.user_agent };
	if (kube_token_init(&c->token, c->config->token_file, c->config->token, e) < 0 ||
	    kube_token_refresh(&c->token, true, &changed, e) < 0 ||
	    kube_transport_new(l, c->config, &transport, &c->transport, e) < 0 ||
	    loop_timer_new(l, on_turn, c, &c->turn, e) < 0)
		return hm_err_wrap(e, "%s", c->config->origin);
	if (c->options.per_second > 0)
		rate_init(&c->rate, c->options.per_second, 1000, c->options.burst, loop_now_ms(l));
	c->options.user_agent = NULL; /* the transport has it */
	*out = HM_STEAL(c);
	return 0;
}

static void call_free(struct kube_call *k)
{
	if (k == NULL)
		return;
	link_remove(&k->link);
	link_remove(&k->waiting);
	kube_transfer_cancel(k->transfer);
	loop_timer_free(k->timer);
	free(k->path);
	free(k->body);
	free(k);
}
HM_DEFINE_AUTO(kube_call, call_free);

void kube_call_cancel(struct kube_call *k)
{
	call_free(k);
}

void kube_client_free(struct kube_client *c)
{
	if (c == NULL)
		return;
	LIST_FOR_EACH (&c->calls, it)
		call_free(HM_CONTAINER(it, struct kube_call, link));
	kube_transport_free(c->transport);
	loop_timer_free(c->turn);
	kube_token_fini(&c->token);
	kube_config_free(c->config);
	free(c);
}

const struct kube_stats *kube_client_stats(const struct kube_client *c)
{
	return &c->stats;
}

size_t kube_client_max_bytes(const struct kube_client *c)
{
	return c->options.max_bytes;
}

struct loop *kube_client_loop(const struct kube_client *c)
{
	return c->loop;
}

/* The last thing that is done with a call: the callback may free the client. */
static void finish(struct kube_call *k, struct kube_answer *answer)
{
	struct kube_events_of_call events = k->events;

	if (answer->err.code != 0)
		hm_err_wrap(&answer->err, "%s %s", kube_verb_name(k->verb), k->path);
	k->transfer = NULL; /* the transport ends it */
	call_free(k);
	events.done(events.arg, answer);
}

static void fail(struct kube_call *k, const struct hm_err *err)
{
	struct kube_answer answer = { .status = { .outcome = KUBE_NO_ANSWER }, .err = *err, .body = "" };

	finish(k, &answer);
}

static void on_data(void *arg, const char *bytes, size_t n)
{
	struct kube_call *k = arg;

	k->events.data(k->events.arg, bytes, n);
}

/* A token that cannot be read now leaves the old one in use: it may be good for long. */
static void refresh_token(struct kube_client *c, bool force)
{
	struct hm_err e = { 0 };
	bool changed;

	if (kube_token_refresh(&c->token, force, &changed, &e) < 0) {
		if (!c->token_bad)
			log_warn("the API server's token cannot be read again; the old one stays in use", KV_ERR(&e));
		c->token_bad = true;
		return;
	}
	c->token_bad = false;
	c->stats.token_reads += changed;
}

static int start(struct kube_call *k, struct hm_err *e)
{
	struct kube_client *c = k->client;
	bool watch = k->verb == KUBE_WATCH;
	struct kube_transfer_events events = { on_data, on_done, k };
	struct kube_transfer_request r = {
		.method = watch ? "GET" : kube_verb_name(k->verb),
		.path = k->path,
		.content_type = k->content_type,
		.body = k->body,
		.n = k->n,
		.once = k->once,
		.stream = watch,
		.max_bytes = watch ? 65536 : c->options.max_bytes,
		.head_ms = c->options.request_ms,
		.stall_ms = k->stall_ms,
		.total_ms = k->timeout_ms,
	};

	refresh_token(c, false);
	r.bearer = str_text(&c->token.text);
	return kube_transfer_start(c->transport, &r, &events, &k->transfer, e);
}

/* Within our own rate, or in the queue. */
static int start_in_turn(struct kube_call *k, struct hm_err *e)
{
	struct kube_client *c = k->client;
	bool first = k->once || list_empty(&c->waiting);

	if (c->options.per_second == 0 || (first && rate_take(&c->rate, loop_now_ms(c->loop))))
		return start(k, e);
	if (k->once)
		return hm_err_set(e, HM_EAGAIN, "%s %s: our own rate", kube_verb_name(k->verb), k->path);
	c->stats.throttled++;
	if (list_empty(&c->waiting))
		loop_timer_arm(c->turn, HM_MAX(1000 / c->options.per_second, 1U));
	link_append(&c->waiting, &k->waiting);
	return 0;
}

static void on_turn(void *arg)
{
	struct kube_client *c = arg;
	struct hm_err e = { 0 };
	struct link *first;

	while ((first = list_first(&c->waiting)) != NULL && rate_take(&c->rate, loop_now_ms(c->loop))) {
		struct kube_call *k = HM_CONTAINER(first, struct kube_call, waiting);

		link_remove(first);
		if (start(k, &e) < 0) {
			loop_timer_arm(c->turn, 0);
			fail(k, &e);
			return;
		}
	}
	if (first != NULL)
		loop_timer_arm(c->turn, HM_MAX(1000 / c->options.per_second, 1U));
}

static void on_wait_over(void *arg)
{
	struct kube_call *k = arg;
	struct hm_err e = { 0 };

	if (start_in_turn(k, &e) < 0)
		fail(k, &e);
}

static uint32_t retry_after_ms(const struct kube_transfer_result *r, const struct kube_status *s)
{
	uint32_t seconds = r->retry_after_s != 0 ? r->retry_after_s : s->retry_after_s;

	return HM_MIN(seconds, (uint32_t)KUBE_MAX_RETRY_AFTER_S) * 1000;
}

/* Whether to try again, and after how long. */
static bool try_again(struct kube_call *k, const struct kube_transfer_result *r, const struct kube_answer *a,
		      uint32_t *wait_ms)
{
	*wait_ms = 0;
	switch (a->status.outcome) {
	case KUBE_UNAUTHORIZED:
		if (k->token_tried || k->client->token.file == NULL)
			return false;
		k->token_tried = true;
		refresh_token(k->client, true);
		return !k->once;
	case KUBE_TOO_MANY:
		if (k->once || k->verb == KUBE_WATCH || k->throttled++ >= KUBE_MAX_THROTTLED_TRIES)
			return false;
		*wait_ms = retry_after_ms(r, &a->status);
		break;
	case KUBE_NO_ANSWER:
	case KUBE_SERVER_ERROR:
		/* What is too large stays so; bad settings do, too. */
		if (k->verb != KUBE_GET || k->tries_left <= 1 || a->err.code == HM_ELIMIT || a->err.code == HM_EINVAL)
			return false;
		k->tries_left--;
		*wait_ms = retry_after_ms(r, &a->status);
		break;
	default: return false;
	}
	*wait_ms = HM_MAX(*wait_ms, kube_backoff_next(&k->backoff, kube_random()));
	k->client->stats.retries++;
	return true;
}

static void read_answer(const struct kube_transfer_result *r, struct kube_answer *a)
{
	*a = (struct kube_answer) { .body = r->body != NULL ? r->body : "", .n = r->n, .err = *r->err };
	if (r->err->code != 0) {
		a->status.outcome = KUBE_NO_ANSWER;
	} else if (r->http >= 200 && r->http < 300) {
		a->status = (struct kube_status) { .outcome = KUBE_DONE, .http = r->http };
	} else {
		kube_status_of_body(r->http, a->body, a->n, &a->status);
		kube_status_err(&a->status, &a->err);
		a->retry_after_ms = retry_after_ms(r, &a->status);
	}
}

static void on_done(void *arg, const struct kube_transfer_result *result)
{
	struct kube_call *k = arg;
	struct kube_client *c = k->client;
	struct kube_answer answer;
	uint32_t wait_ms;

	read_answer(result, &answer);
	kube_stats_count(&c->stats, k->verb, result->http, result->head_ms);
	c->stats.http2 += result->http2;
	if (try_again(k, result, &answer, &wait_ms)) {
		k->transfer = NULL;
		loop_timer_arm(k->timer, wait_ms);
		return;
	}
	finish(k, &answer);
}

int kube_client_call(struct kube_client *c, const struct kube_request *r, const struct kube_events_of_call *events,
		     struct kube_call **out, struct hm_err *e)
{
	hm_auto(kube_call) *k = calloc(1, sizeof *k);
	bool watch = r->verb == KUBE_WATCH;
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (k == NULL)
		return hm_err_set(e, HM_ENOMEM, "%s %s", kube_verb_name(r->verb), r->path);
	*k = (struct kube_call) { .client = c,
				  .verb = r->verb,
				  .path = strdup(r->path),
				  .content_type = r->content_type,
				  .n = r->n,
				  .timeout_ms = r->timeout_ms != 0 || watch ? r->timeout_ms : c->options.request_ms,
				  .stall_ms = watch ? r->stall_ms : 0,
				  .once = r->once,
				  .tries_left = r->tries != 0 ? r->tries : c->options.tries,
				  .backoff = { c->options.backoff_ms, c->options.backoff_max_ms, 0 },
				  .events = *events };
	link_append(&c->calls, &k->link);
	if (r->content_type != NULL) {
		k->body = malloc(r->n + 1);
		if (k->body != NULL) {
			memcpy(k->body, r->body, r->n);
			k->body[r->n] = '\0';
		}
	}
	if (k->path == NULL || (r->content_type != NULL && k->body == NULL) ||
	    loop_timer_new(c->loop, on_wait_over, k, &k->timer, e) < 0)
		return hm_err_set(e, HM_ENOMEM, "%s %s", kube_verb_name(r->verb), r->path);
	if (start_in_turn(k, e) < 0)
		return -e->code;
	if (out != NULL)
		*out = k;
	HM_STEAL(k);
	return 0;
}
