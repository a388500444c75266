#include "kube/reflector.h"

#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "core/macros.h"
#include "kube/backoff.h"
#include "kube/collection.h"
#include "kube/known.h"
#include "kube/watch_engine.h"

enum step { LIST, WATCH };

/* A watch that the server ends at once without a word is a failure, and one with a word waits a moment: neither may
 * make a tight loop. */
enum { SHORT_WATCH_MS = 1000, SHORT_WATCH_WAIT_MS = 200, TROUBLE_TRIES = 3 };

struct kube_reflector {
	struct kube_client *client;
	struct kube_reflector_events events;
	struct kube_reflector_options options;
	struct kube_collection of;
	struct kube_known *known;
	uint32_t mark; /* of the list under way, or the last one */
	struct loop_timer *timer;
	struct kube_call *call;
	struct watch_engine *engine;
	enum step step;   /* what is under way, or comes when the timer fires */
	unsigned page;    /* shrinks where pages are too large, and grows again behind what made them so */
	bool from_etcd;   /* the next list is, although options.cached */
	bool tell_all;    /* by the next list, also what has not changed */
	char *page_token; /* of the list's next page; NULL: the first */
	char version[KUBE_VERSION_BYTES];
	uint64_t watch_began_ms;
	bool watch_spoke; /* an event came in this watch */
	bool troubled;    /* a warning was logged; the end of it will be, too */
	bool lists_only;  /* watching is not allowed; said once */
	struct kube_backoff backoff;
	struct kube_reflector_state state;
	bool busy, gone; /* gone: freed inside a callback; whoever set busy frees it */
};

static void destroy(struct kube_reflector *r)
{
	watch_engine_free(r->engine);
	kube_known_free(r->known);
	loop_timer_free(r->timer);
	kube_collection_fini(&r->of);
	free(r->page_token);
	free(r);
}

void kube_reflector_free(struct kube_reflector *r)
{
	if (r == NULL || r->gone)
		return;
	r->gone = true;
	kube_call_cancel(r->call);
	r->call = NULL;
	if (r->timer != NULL)
		loop_timer_disarm(r->timer);
	if (!r->busy)
		destroy(r);
}

/* Between enter and leave callbacks may free the reflector: r->gone then, and no more of it may be used but that. */
static void enter(struct kube_reflector *r)
{
	r->busy = true;
}

static void leave(struct kube_reflector *r)
{
	r->busy = false;
	if (r->gone)
		destroy(r);
}

static uint64_t now_ms(const struct kube_reflector *r)
{
	return loop_now_ms(kube_client_loop(r->client));
}

static void then(struct kube_reflector *r, enum step step, uint64_t after_ms)
{
	watch_engine_free(r->engine);
	r->engine = NULL;
	r->step = step;
	loop_timer_arm(r->timer, after_ms);
}

static void good(struct kube_reflector *r)
{
	r->state.good = true;
	r->state.refused = false;
	r->state.good_at_ms = now_ms(r);
	if (r->troubled)
		log_info("the API server answers again", KV("path", r->of.path));
	r->troubled = false;
}

static void fail(struct kube_reflector *r, enum step next, uint32_t at_least_ms, const struct hm_err *e)
{
	uint32_t wait = kube_backoff_next(&r->backoff, kube_random());

	r->state.good = r->state.refused = false;
	r->state.failures++;
	r->state.last = *e;
	log_v(3, "list or watch failed", KV("path", r->of.path), KV_ERR(e), KV_U64("again_ms", wait));
	if (!r->troubled && r->backoff.tries >= TROUBLE_TRIES) {
		log_warn("the API server cannot be followed; what is known stays in use", KV("path", r->of.path),
			 KV_ERR(e));
		r->troubled = true;
	}
	then(r, next, HM_MAX(wait, at_least_ms));
}

/* Ends what is under way; the next list begins with its first page. */
static void start_over(struct kube_reflector *r)
{
	kube_call_cancel(r->call);
	r->call = NULL;
	free(r->page_token);
	r->page_token = NULL;
	r->mark++;
}

static void fail_and_list(struct kube_reflector *r, uint32_t at_least_ms, const struct hm_err *e)
{
	start_over(r);
	fail(r, LIST, at_least_ms, e);
}

/* What we had was too old. The first time that is no failure: lists right away. */
static void list_anew(struct kube_reflector *r, const struct hm_err *e)
{
	if (r->backoff.tries > 0) {
		fail_and_list(r, 0, e);
		return;
	}
	start_over(r);
	r->backoff.tries = 1;
	r->state.last = *e;
	log_v(3, "listing anew", KV("path", r->of.path), KV_ERR(e));
	then(r, LIST, 0);
}

static uint32_t longest_wait(const struct kube_reflector *r)
{
	return r->options.backoff_max_ms / 2 + kube_random() % (r->options.backoff_max_ms / 2 + 1);
}

/* We may list and not watch (HAMi's role for Nodes). A watch is tried after each list, in case that changes. */
static void list_instead(struct kube_reflector *r, const struct hm_err *e)
{
	if (!r->lists_only)
		log_warn("watching is not allowed; listing again and again instead", KV("path", r->of.path), KV_ERR(e));
	r->lists_only = true;
	start_over(r);
	then(r, LIST, longest_wait(r));
}

static void go_without(struct kube_reflector *r, const struct hm_err *e)
{
	if (!r->state.refused)
		log_warn("it cannot be listed; going on without", KV("path", r->of.path), KV_ERR(e));
	r->state.refused = true;
	r->state.good = false;
	r->state.last = *e;
	start_over(r);
	then(r, LIST, longest_wait(r));
}

/* --- objects --- */

static void tell_gone(struct kube_reflector *r, struct kube_known_object *o)
{
	r->events.deleted(r->events.arg, &o->object);
	kube_known_object_fini(o);
}

/* An object of a list, or of an ADDED or MODIFIED event. */
static int take_object(struct kube_reflector *r, const struct kube_object *o, struct hm_err *e)
{
	struct kube_known_object other;
	enum kube_known_change change;

	if (kube_known_put(r->known, o, r->mark, &change, e) < 0)
		return -e->code;
	if (change == KNOWN_OTHER && kube_known_take(r->known, o->key, NULL, &other)) {
		tell_gone(r, &other);
		if (r->gone)
			return 0;
		if (kube_known_put(r->known, o, r->mark, &change, e) < 0)
			return -e->code;
	}
	if (change == KNOWN_NEW || r->tell_all)
		r->events.changed(r->events.arg, o);
	return 0;
}

static void forget_object(struct kube_reflector *r, const struct kube_object *o)
{
	struct kube_known_object known;

	if (!kube_known_take(r->known, o->key, o->uid, &known))
		return;
	kube_known_object_fini(&known);
	r->events.deleted(r->events.arg, o);
}

static void tell_unlisted(struct kube_reflector *r)
{
	struct kube_known_object o;
	size_t at = 0;

	while (!r->gone && kube_known_take_unmarked(r->known, &at, r->mark, &o))
		tell_gone(r, &o);
}

/* --- list --- */

static int take_page(struct kube_reflector *r, const struct kube_answer *a, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	struct json_at root, meta, items;
	const char *version, *next = "";
	const struct cJSON *item;
	struct kube_object o;

	if (json_parse(a->body, a->n, &tree, e) < 0)
		return -e->code;
	root = json_root(tree);
	if (json_object(&root, "metadata", JSON_REQUIRED, &meta, e) < 0 || kube_version_read(&meta, &version, e) < 0 ||
	    json_text(&meta, "continue", JSON_OPTIONAL, &next, e) < 0 ||
	    json_array(&root, "items", JSON_OPTIONAL, &items, e) < 0) /* null where there are none */
		return -e->code;
	cJSON_ArrayForEach(item, items.node)
	{
		if (kube_object_read(item, &o, e) < 0 || take_object(r, &o, e) < 0)
			return -e->code;
		if (r->gone)
			return 0;
	}
	memcpy(r->version, version, strlen(version) + 1);
	free(r->page_token);
	r->page_token = next[0] != '\0' ? strdup(next) : NULL;
	return next[0] != '\0' && r->page_token == NULL ? hm_err_set(e, HM_ENOMEM, "out of memory") : 0;
}

/* Four of this size would have been taken: two are. */
static void grow_pages(struct kube_reflector *r, size_t page_bytes)
{
	if (page_bytes <= kube_client_max_bytes(r->client) / 4)
		r->page = HM_MIN(2 * r->page, r->options.page);
}

static void end_list(struct kube_reflector *r)
{
	tell_unlisted(r);
	if (r->gone)
		return;
	r->from_etcd = r->tell_all = false;
	then(r, WATCH, 0);
	if (!r->state.synced) {
		r->state.synced = true;
		if (r->events.synced != NULL)
			r->events.synced(r->events.arg);
	}
	if (r->events.listed != NULL && !r->gone)
		r->events.listed(r->events.arg);
}

void kube_reflector_relist(struct kube_reflector *r)
{
	r->from_etcd = r->tell_all = true;
	start_over(r);
	then(r, LIST, 0);
}

static bool lists_cached(const struct kube_reflector *r)
{
	return r->options.cached && !r->from_etcd;
}

/* The server's state was set back, and it has no version as new as ours: 504 after some seconds of waiting for it.
 * Other failures are no reason to go to etcd: all the agents of a cluster would when its server restarts. */
static bool is_behind(const struct kube_status *s)
{
	return s->outcome == KUBE_GONE || (s->http == 504 && strcmp(s->reason, "Timeout") == 0);
}

static bool is_refusal(const struct kube_status *s)
{
	return s->outcome == KUBE_FORBIDDEN || s->outcome == KUBE_NOT_FOUND;
}

static void on_page_failed(struct kube_reflector *r, const struct kube_answer *a)
{
	bool too_large = a->err.code == HM_ELIMIT && (lists_cached(r) || r->page > 1);

	if (too_large && !lists_cached(r)) {
		r->page /= 2;
		log_v(2, "pages are too large", KV("path", r->of.path), KV_U64("objects", r->page));
	}
	r->from_etcd = r->from_etcd || too_large || is_behind(&a->status);
	if (a->status.outcome == KUBE_GONE) {
		list_anew(r, &a->err);
	} else if (too_large) {
		then(r, LIST, 0);
	} else if (is_refusal(&a->status) && r->options.optional && !r->state.synced) {
		go_without(r, &a->err);
	} else {
		fail(r, LIST, a->retry_after_ms, &a->err);
	}
}

static void on_page(void *arg, const struct kube_answer *a)
{
	struct kube_reflector *r = arg;
	struct hm_err e = { 0 };

	r->call = NULL;
	if (a->status.outcome != KUBE_DONE) {
		on_page_failed(r, a);
		return;
	}
	enter(r);
	if (take_page(r, a, &e) < 0) {
		hm_err_wrap(&e, "list %s", r->of.path);
		fail_and_list(r, 0, &e);
	} else if (!r->gone) {
		good(r);
		grow_pages(r, a->n);
		if (r->page_token != NULL)
			then(r, LIST, 0);
		else
			end_list(r);
	}
	leave(r);
}

static int start_list(struct kube_reflector *r, struct hm_err *e)
{
	struct kube_events_of_call events = { .done = on_page, .arg = r };
	struct kube_request request = { .verb = KUBE_GET, .tries = 1 }; /* the back-off is ours */
	hm_auto_str path = { 0 };

	kube_collection_add_list(&r->of, lists_cached(r) ? r->version : NULL, r->page, r->page_token, &path);
	if (str_failed(&path))
		return hm_err_set(e, HM_ENOMEM, "list %s: out of memory", r->of.path);
	r->state.lists += r->page_token == NULL;
	request.path = str_text(&path);
	return kube_client_call(r->client, &request, &events, &r->call, e);
}

/* --- watch --- */

/* False: the watch is over. */
static bool take_event(struct kube_reflector *r, const struct watch_event *event)
{
	struct hm_err e = { 0 };

	if (event->type == WATCH_ERROR) {
		kube_status_err(&event->status, &e);
		hm_err_wrap(&e, "watch %s", r->of.path);
		if (event->status.outcome == KUBE_GONE)
			list_anew(r, &e);
		else
			fail_and_list(r, HM_MIN(event->status.retry_after_s, (uint32_t)KUBE_MAX_RETRY_AFTER_S) * 1000,
				      &e);
		return false;
	}
	good(r);
	kube_backoff_reset(&r->backoff);
	r->watch_spoke = true;
	r->state.events++;
	memcpy(r->version, event->resource_version, strlen(event->resource_version) + 1);
	if (event->type == WATCH_DELETED) {
		forget_object(r, &event->object);
	} else if (event->type != WATCH_BOOKMARK && take_object(r, &event->object, &e) < 0 && !r->gone) {
		fail_and_list(r, 0, &e);
		return false;
	}
	return !r->gone;
}

static void on_watch_data(void *arg, const char *bytes, size_t n)
{
	struct kube_reflector *r = arg;
	struct watch_event event;
	struct hm_err e = { 0 };
	int got;

	enter(r);
	got = watch_engine_push(r->engine, bytes, n, &e);
	while (got >= 0 && (got = watch_engine_next(r->engine, &event, &e)) > 0) {
		if (!take_event(r, &event))
			break;
	}
	if (got < 0) {
		hm_err_wrap(&e, "%s", r->of.path);
		fail_and_list(r, 0, &e);
	}
	leave(r);
}

static void on_watch_done(void *arg, const struct kube_answer *a)
{
	struct kube_reflector *r = arg;
	bool brief = now_ms(r) - r->watch_began_ms < SHORT_WATCH_MS;
	struct hm_err e = { 0 };

	r->call = NULL;
	switch (a->status.outcome) {
	case KUBE_DONE:
		if (r->watch_spoke || !brief) {
			good(r);
			then(r, WATCH, brief ? SHORT_WATCH_WAIT_MS : 0);
			return;
		}
		hm_err_set(&e, HM_EIO, "watch %s: ended at once", r->of.path);
		fail(r, WATCH, 0, &e);
		return;
	case KUBE_GONE: list_anew(r, &a->err); return;
	case KUBE_FORBIDDEN: list_instead(r, &a->err); return;
	case KUBE_NO_ANSWER:
	case KUBE_TOO_MANY:
	case KUBE_SERVER_ERROR: fail(r, WATCH, a->retry_after_ms, &a->err); return;
	default: fail_and_list(r, 0, &a->err); /* not there (any more): a list says so in its own words */
	}
}

static int start_watch(struct kube_reflector *r, struct hm_err *e)
{
	struct kube_events_of_call events = { on_watch_data, on_watch_done, r };
	struct kube_request request = { .verb = KUBE_WATCH, .stall_ms = r->options.stall_ms };
	uint32_t seconds = r->options.watch_s + kube_random() % (r->options.watch_s + 1);
	hm_auto_str path = { 0 };

	kube_collection_add_watch(&r->of, r->version, seconds, &path);
	r->engine = watch_engine_new(r->options.max_object_bytes);
	if (str_failed(&path) || r->engine == NULL)
		return hm_err_set(e, HM_ENOMEM, "watch %s: out of memory", r->of.path);
	r->state.watches++;
	r->watch_spoke = false;
	r->watch_began_ms = now_ms(r);
	request.path = str_text(&path);
	/* A server that forgets to end it; silence is noticed earlier. */
	request.timeout_ms = seconds * 1000 + 60000;
	return kube_client_call(r->client, &request, &events, &r->call, e);
}

static void on_step(void *arg)
{
	struct kube_reflector *r = arg;
	struct hm_err e = { 0 };

	enter(r);
	if (r->step == LIST && r->page_token == NULL && r->events.lists != NULL)
		r->events.lists(r->events.arg);
	if (!r->gone && (r->step == LIST ? start_list(r, &e) : start_watch(r, &e)) < 0)
		fail(r, r->step, 0, &e);
	leave(r);
}

/* --- making one --- */

static struct kube_reflector_options with_defaults(const struct kube_reflector_options *given)
{
	struct kube_reflector_options o = *given;

	o.page = o.page != 0 ? o.page : 500;
	o.watch_s = o.watch_s != 0 ? o.watch_s : 300;
	o.stall_ms = o.stall_ms != 0 ? o.stall_ms : 150000;
	o.backoff_ms = o.backoff_ms != 0 ? o.backoff_ms : 500;
	o.backoff_max_ms = o.backoff_max_ms != 0 ? o.backoff_max_ms : 30000;
	return o;
}

int kube_reflector_new(struct kube_client *c, const struct kube_reflector_options *options,
		       const struct kube_reflector_events *events, struct kube_reflector **out, struct hm_err *e)
{
	hm_auto(kube_reflector) *r = calloc(1, sizeof *r);

	if (r == NULL)
		return hm_err_set(e, HM_ENOMEM, "%s: out of memory", options->path);
	r->client = c;
	r->events = *events;
	r->options = with_defaults(options);
	r->page = r->options.page;
	r->backoff = (struct kube_backoff) { r->options.backoff_ms, r->options.backoff_max_ms, 0 };
	r->known = kube_known_new();
	if (!kube_collection_init(&r->of, options->path, options->field_selector, options->label_selector) ||
	    r->known == NULL || loop_timer_new(kube_client_loop(c), on_step, r, &r->timer, e) < 0)
		return hm_err_set(e, HM_ENOMEM, "%s: out of memory", options->path);
	r->options.path = r->options.field_selector = r->options.label_selector = NULL; /* the copies are used */
	then(r, LIST, 0);
	*out = HM_STEAL(r);
	return 0;
}

void kube_reflector_state(const struct kube_reflector *r, struct kube_reflector_state *out)
{
	*out = r->state;
	out->objects = kube_known_count(r->known);
	out->listing = r->step == LIST;
}
