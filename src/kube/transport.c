#include "kube/transport.h"

#include <string.h>

#include "base/str.h"
#include "core/link.h"
#include "kube/easy.h"
#include "kube/object.h"
#include "kube/pool.h"

/* When a transfer times out, its connection may be half open: TCP stands and nobody answers, and on HTTP/2 libcurl
 * would put the next request onto it, to time out as well. So the whole pool retires: what runs in it goes on, new
 * transfers get a new one, and it goes with its last transfer. */
struct era {
	struct link link;
	struct kube_pool *pool;
};

struct kube_transport {
	struct loop *loop;
	const struct kube_config *config;
	struct kube_transport_options options;
	char *user_agent;
	struct era *current; /* NULL: the next transfer makes one */
	struct link eras, transfers, ready;
	bool handing, gone; /* gone: freed while it hands over, which then frees it at its end */
};

struct kube_transfer {
	struct link link;  /* of all that run */
	struct link ready; /* of those that have something to hand over */
	struct kube_transport *t;
	struct era *era;
	struct kube_easy easy; /* its curl is NULL when the transfer is over */
	struct loop_timer *timer;
	struct kube_transfer_events events;
	bool stream, limited, calling, cancelled;
	size_t max_bytes;
	uint32_t head_ms, stall_ms, total_ms;
	uint64_t started_ms, head_at_ms, last_ms; /* head_at_ms 0: not yet */
	struct str in;                            /* a stream's bytes not yet handed over, else the answer so far */
	struct kube_transfer_result result;
	struct hm_err err;
};

static void transport_destroy(struct kube_transport *t)
{
	free(t->user_agent);
	free(t);
	curl_global_cleanup();
}

/* Pools without transfers that are not the current one. Never inside libcurl. */
static void sweep_eras(struct kube_transport *t)
{
	LIST_FOR_EACH (&t->eras, it) {
		struct era *era = HM_CONTAINER(it, struct era, link);

		if (era == t->current || kube_pool_count(era->pool) > 0)
			continue;
		link_remove(&era->link);
		kube_pool_free(era->pool);
		free(era);
	}
}

static void make_ready(struct kube_transfer *x)
{
	if (!link_on_list(&x->ready))
		link_append(&x->t->ready, &x->ready);
}

/* Out of libcurl; what is left is to call back, or nothing. */
static void leave(struct kube_transfer *x)
{
	if (x->easy.curl == NULL)
		return;
	kube_pool_remove(x->era->pool, x->easy.curl);
	kube_easy_fini(&x->easy);
	loop_timer_disarm(x->timer);
	link_remove(&x->link);
}

static void transfer_free(struct kube_transfer *x)
{
	leave(x);
	link_remove(&x->ready);
	loop_timer_free(x->timer);
	str_fini(&x->in);
	free(x);
}

void kube_transfer_cancel(struct kube_transfer *x)
{
	if (x == NULL || x->cancelled)
		return;
	x->cancelled = true;
	leave(x);
	if (!x->calling)
		transfer_free(x);
}

/* Hands over what one transfer has; it may be gone afterwards. */
static void hand_over_one(struct kube_transfer *x)
{
	bool good = x->result.http >= 200 && x->result.http < 300;

	x->calling = true;
	if (x->stream && good && x->in.n > 0 && !str_failed(&x->in)) {
		struct str bytes = x->in;

		x->in = (struct str) { 0 };
		x->events.data(x->events.arg, bytes.p, bytes.n);
		str_fini(&bytes);
	}
	if (x->easy.curl == NULL && !x->cancelled) {
		x->cancelled = true; /* a cancel inside the callback finds nothing to do */
		if (!x->stream || !good) {
			kube_trim_text(x->in.p, x->in.n);
			x->result.body = str_text(&x->in);
			x->result.n = x->in.n;
		}
		if (x->err.code != 0)
			x->result.http = 0;
		x->result.err = &x->err;
		x->events.done(x->events.arg, &x->result);
	}
	x->calling = false;
	if (x->cancelled)
		transfer_free(x);
}

static void hand_over(struct kube_transport *t)
{
	struct link *first;

	if (t->handing)
		return;
	t->handing = true;
	while ((first = list_first(&t->ready)) != NULL) {
		link_remove(first);
		hand_over_one(HM_CONTAINER(first, struct kube_transfer, ready));
	}
	t->handing = false;
	sweep_eras(t);
	if (t->gone)
		transport_destroy(t);
}

static void on_acted(void *arg)
{
	hand_over(arg);
}

static void finish(struct kube_transfer *x)
{
	uint64_t now = loop_now_ms(x->t->loop);

	x->result.head_ms = (x->head_at_ms != 0 ? x->head_at_ms : now) - x->started_ms;
	leave(x);
	make_ready(x);
}

static void on_ended(CURL *easy, CURLcode code)
{
	struct kube_transfer *x = kube_easy_owner(easy);

	x->result.http = kube_easy_http(easy, &x->result.retry_after_s);
	x->result.http2 = kube_easy_http2(easy);
	if (str_failed(&x->in))
		hm_err_set(&x->err, HM_ENOMEM, "out of memory");
	else if (x->limited)
		hm_err_set(&x->err, HM_ELIMIT, "the answer is larger than %zu bytes", x->max_bytes);
	else if (code != CURLE_OK)
		kube_easy_err(&x->easy, code, &x->err);
	finish(x);
}

/* libcurl calls these two inside its own work: nothing is called back from here. */
static size_t on_head(char *line, size_t size, size_t n, void *arg)
{
	struct kube_transfer *x = arg;

	(void)line;
	x->last_ms = loop_now_ms(x->t->loop);
	/* Each line comes here; an answer of 1xx is followed by the one that counts. */
	x->result.http = kube_easy_http(x->easy.curl, NULL);
	if (x->head_at_ms == 0 && x->result.http >= 200)
		x->head_at_ms = x->last_ms;
	return size * n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *arg)
{
	struct kube_transfer *x = arg;
	bool through = x->stream && x->result.http < 300;

	n *= size;
	x->last_ms = loop_now_ms(x->t->loop);
	if (!through && x->in.n + n > x->max_bytes) {
		x->limited = true;
		return 0;
	}
	str_add_n(&x->in, bytes, n);
	if (str_failed(&x->in))
		return 0;
	if (through)
		make_ready(x);
	return n;
}

/* The next moment at which something is too late, and what it is; UINT64_MAX: never. */
static uint64_t next_limit(const struct kube_transfer *x, const char **what, uint32_t *limit_ms)
{
	uint64_t at = UINT64_MAX;

	if (x->total_ms > 0) {
		at = x->started_ms + x->total_ms;
		*what = "no whole answer";
		*limit_ms = x->total_ms;
	}
	if (x->head_at_ms == 0 && x->head_ms > 0 && x->started_ms + x->head_ms < at) {
		at = x->started_ms + x->head_ms;
		*what = "no answer";
		*limit_ms = x->head_ms;
	}
	if (x->head_at_ms != 0 && x->stall_ms > 0 && x->last_ms + x->stall_ms < at) {
		at = x->last_ms + x->stall_ms;
		*what = "nothing was said";
		*limit_ms = x->stall_ms;
	}
	return at;
}

/* Whether the headers came is not known when the timer is set, so it looks again at the latest when a stall could be
 * due. */
static void arm(struct kube_transfer *x, uint64_t now)
{
	const char *what;
	uint32_t limit;
	uint64_t at = next_limit(x, &what, &limit);

	if (x->stall_ms > 0)
		at = HM_MIN(at, now + x->stall_ms);
	if (at != UINT64_MAX)
		loop_timer_arm(x->timer, at > now ? at - now : 0);
}

static void on_limit(void *arg)
{
	struct kube_transfer *x = arg;
	struct kube_transport *t = x->t;
	uint64_t now = loop_now_ms(t->loop);
	const char *what = "";
	uint32_t limit = 0;

	if (now < next_limit(x, &what, &limit)) {
		arm(x, now);
		return;
	}
	x->result.http = 0;
	str_clear(&x->in);
	hm_err_set(&x->err, HM_ETIMEDOUT, "%s within %u ms", what, limit);
	if (t->current == x->era)
		t->current = NULL;
	finish(x);
	hand_over(t);
}

int kube_transport_new(struct loop *l, const struct kube_config *config, const struct kube_transport_options *options,
		       struct kube_transport **out, struct hm_err *e)
{
	struct kube_transport *t = calloc(1, sizeof *t);

	if (t == NULL)
		return hm_err_set(e, HM_ENOMEM, "Kubernetes client");
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0) {
		free(t);
		return hm_err_set(e, HM_EINTERNAL, "libcurl does not start");
	}
	*t = (struct kube_transport) { .loop = l, .config = config, .options = *options };
	list_init(&t->eras);
	list_init(&t->transfers);
	list_init(&t->ready);
	t->user_agent = strdup(options->user_agent);
	if (t->user_agent == NULL) {
		transport_destroy(t);
		return hm_err_set(e, HM_ENOMEM, "Kubernetes client");
	}
	*out = t;
	return 0;
}

void kube_transport_free(struct kube_transport *t)
{
	if (t == NULL || t->gone)
		return;
	LIST_FOR_EACH (&t->transfers, it)
		kube_transfer_cancel(HM_CONTAINER(it, struct kube_transfer, link));
	LIST_FOR_EACH (&t->ready, it)
		kube_transfer_cancel(HM_CONTAINER(it, struct kube_transfer, ready));
	t->current = NULL;
	t->gone = true;
	if (!t->handing) {
		sweep_eras(t);
		transport_destroy(t);
	}
}

static int current_era(struct kube_transport *t, struct era **out, struct hm_err *e)
{
	struct kube_pool_events events = { on_ended, on_acted, t };
	struct era *era;

	if (t->current == NULL) {
		era = calloc(1, sizeof *era);
		if (era == NULL)
			return hm_err_set(e, HM_ENOMEM, "connections");
		if (kube_pool_new(t->loop, t->options.max_connections, &events, &era->pool, e) < 0) {
			free(era);
			return -e->code;
		}
		link_append(&t->eras, &era->link);
		t->current = era;
	}
	*out = t->current;
	return 0;
}

static int transfer_init(struct kube_transfer *x, const struct kube_transfer_request *r, struct hm_err *e)
{
	struct kube_easy_calls calls = { on_head, on_body, x };

	if (loop_timer_new(x->t->loop, on_limit, x, &x->timer, e) < 0 ||
	    kube_easy_init(&x->easy, x->t->config, x->t->user_agent, x->t->options.connect_ms, r, &calls, e) < 0 ||
	    current_era(x->t, &x->era, e) < 0)
		return -e->code;
	return kube_pool_add(x->era->pool, x->easy.curl, e);
}

int kube_transfer_start(struct kube_transport *t, const struct kube_transfer_request *r,
			const struct kube_transfer_events *events, struct kube_transfer **out, struct hm_err *e)
{
	struct kube_transfer *x = calloc(1, sizeof *x);
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (x == NULL)
		return hm_err_set(e, HM_ENOMEM, "%s %s", r->method, r->path);
	*x = (struct kube_transfer) { .t = t,
				      .events = *events,
				      .stream = r->stream,
				      .max_bytes = r->max_bytes,
				      .head_ms = r->head_ms,
				      .stall_ms = r->stall_ms,
				      .total_ms = r->total_ms };
	x->started_ms = loop_now_ms(t->loop);
	if (transfer_init(x, r, e) < 0) {
		kube_easy_fini(&x->easy);
		transfer_free(x);
		return hm_err_wrap(e, "%s %s", r->method, r->path);
	}
	link_append(&t->transfers, &x->link);
	arm(x, x->started_ms);
	*out = x;
	return 0;
}
