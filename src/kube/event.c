#include "kube/event.h"

#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/rate.h"
#include "base/str.h"
#include "core/fmt.h"
#include "core/link.h"
#include "io/json_write.h"
#include "kube/backoff.h"
#include "kube/url.h"

enum { MESSAGE_BYTES = 1000, NAME_BYTES = 200 };

struct record {
	struct link queue;                 /* of what is to be sent */
	char *path;                        /* of the collection */
	char *name;                        /* the event's own */
	char *body;                        /* all of the event's JSON but what counts: "{...," */
	uint64_t first_ms, last_ms, count; /* wall clock */
	uint64_t sent; /* the count that the server was told; below `count` it is to be told again */
	bool posted;
};

struct kube_events {
	struct kube_client *client;
	char *component, *host;
	struct map *records, *rates; /* rates: of each object */
	struct link queue;
	struct record *sending; /* not evicted meanwhile */
	uint64_t sending_count;
	struct kube_call *call;
	struct loop_timer *timer;
	struct kube_backoff backoff;
	struct kube_events_state state;
	bool refused; /* said once */
	bool puts;    /* events may be updated and not patched: HAMi's role for agents */
};

static void record_free(struct record *r)
{
	if (r == NULL)
		return;
	link_remove(&r->queue);
	free(r->path);
	free(r->name);
	free(r->body);
	free(r);
}
HM_DEFINE_AUTO(record, record_free);

void kube_events_free(struct kube_events *v)
{
	size_t at = 0;
	void *value;

	if (v == NULL)
		return;
	kube_call_cancel(v->call);
	loop_timer_free(v->timer);
	while (v->records != NULL && map_next(v->records, &at, NULL, &value))
		record_free(value);
	at = 0;
	while (v->rates != NULL && map_next(v->rates, &at, NULL, &value))
		free(value);
	map_free(v->records);
	map_free(v->rates);
	free(v->component);
	free(v->host);
	free(v);
}

/* --- what may be said --- */

/* The least recently made ones go, so that the maps stay small. The one in flight stays. */
static void make_room(struct kube_events *v)
{
	const char *key;
	size_t at = 0;
	void *value;

	while (map_count(v->records) >= KUBE_MAX_EVENTS && map_next(v->records, &at, &key, &value)) {
		struct record *r = value;

		if (r == v->sending)
			continue;
		v->state.dropped += r->sent < r->count;
		map_remove(v->records, key);
		record_free(r);
	}
	at = 0;
	while (map_count(v->rates) >= KUBE_MAX_EVENTS && map_next(v->rates, &at, &key, NULL))
		free(map_remove(v->rates, key));
}

static bool allowed(struct kube_events *v, const struct kube_event_object *about)
{
	uint64_t now = loop_now_ms(kube_client_loop(v->client));
	hm_auto_str key = { 0 };
	struct rate *its;

	str_addf(&key, "%s/%s/%s/%s", about->kind, about->name_space != NULL ? about->name_space : "", about->name,
		 about->uid);
	if (str_failed(&key))
		return false;
	its = map_get(v->rates, str_text(&key));
	if (its == NULL) {
		its = malloc(sizeof *its);
		if (its == NULL || map_put(v->rates, str_text(&key), its, NULL) < 0) {
			free(its);
			return false;
		}
		rate_init(its, 1, KUBE_EVENT_REFILL_MS, KUBE_EVENT_BURST, now);
	}
	return rate_take(its, now);
}

/* --- texts --- */

/* A member that is a time: the API reads RFC 3339. */
static void add_stamp(struct str *out, const char *name, uint64_t wall_ms)
{
	json_add_name(out, name);
	str_addc(out, '"');
	str_add_utc(out, wall_ms);
	str_add(out, "Z\"");
}

static void add_counts(struct str *out, const struct record *r)
{
	str_addf(out, "\"count\":%llu", (unsigned long long)r->count);
	add_stamp(out, "lastTimestamp", r->last_ms);
}

static char *body_of(const struct kube_events *v, const struct record *r, const char *name_space,
		     const struct kube_event_object *about, const char *type, const char *reason, const char *message)
{
	hm_auto_str out = { 0 };

	str_add(&out, "{\"metadata\":{");
	json_add_member(&out, "name", r->name);
	json_add_member(&out, "namespace", name_space);
	str_add(&out, "},\"involvedObject\":{");
	json_add_member(&out, "apiVersion", about->api_version);
	json_add_member(&out, "kind", about->kind);
	if (about->name_space != NULL && about->name_space[0] != '\0')
		json_add_member(&out, "namespace", about->name_space);
	json_add_member(&out, "name", about->name);
	json_add_member(&out, "uid", about->uid);
	str_add(&out, "},\"source\":{");
	json_add_member(&out, "component", v->component);
	json_add_member(&out, "host", v->host);
	str_add(&out, "}");
	json_add_member(&out, "type", type);
	json_add_member(&out, "reason", reason);
	json_add_member(&out, "message", message);
	add_stamp(&out, "firstTimestamp", r->first_ms);
	str_addc(&out, ',');
	return str_take(&out);
}

static char *name_of(const struct kube_event_object *about, uint64_t wall_ms)
{
	hm_auto_str out = { 0 };

	str_addf(&out, "%.*s.%llx%08x", NAME_BYTES, about->name, (unsigned long long)wall_ms, kube_random());
	return str_take(&out);
}

static char *path_of(const char *name_space)
{
	hm_auto_str out = { 0 };

	kube_url_add_path(&out, "/api/v1", name_space, "events", NULL);
	return str_take(&out);
}

static struct record *record_new(const struct kube_events *v, const struct kube_event_object *about, const char *type,
				 const char *reason, const char *message)
{
	bool spaced = about->name_space != NULL && about->name_space[0] != '\0';
	const char *name_space = spaced ? about->name_space : "default";
	hm_auto(record) *r = calloc(1, sizeof *r);

	if (r == NULL)
		return NULL;
	r->first_ms = clock_wall_ms();
	r->path = path_of(name_space);
	r->name = name_of(about, r->first_ms);
	if (r->path == NULL || r->name == NULL)
		return NULL;
	r->body = body_of(v, r, name_space, about, type, reason, message);
	return r->body != NULL ? HM_STEAL(r) : NULL;
}

/* --- sending, one at a time --- */

static void send_next(struct kube_events *v);

static void refuse(struct kube_events *v, struct record *r, const struct hm_err *e)
{
	v->state.dropped++;
	if (!v->refused)
		log_warn("the API server refuses an event", KV_ERR(e));
	v->refused = true;
	r->sent = r->count;
}

/* True: wait before the next. */
static bool take_answer(struct kube_events *v, struct record *r, const struct kube_answer *a)
{
	switch (a->status.outcome) {
	case KUBE_DONE:
	case KUBE_EXISTS: /* the answer to an earlier try was lost */
		kube_backoff_reset(&v->backoff);
		v->state.sent++;
		r->posted = true;
		r->sent = v->sending_count;
		return false;
	case KUBE_NO_ANSWER:
	case KUBE_TOO_MANY:
	case KUBE_SERVER_ERROR: return true;
	case KUBE_NOT_FOUND: /* servers keep events for an hour: a new one then, unless the namespace is gone */
		if (!r->posted)
			refuse(v, r, &a->err);
		r->posted = false;
		return false;
	case KUBE_FORBIDDEN:
		if (r->posted && !v->puts)
			v->puts = true; /* tried again as that */
		else
			refuse(v, r, &a->err);
		return false;
	default: refuse(v, r, &a->err); return false;
	}
}

static void on_sent(void *arg, const struct kube_answer *a)
{
	struct kube_events *v = arg;
	struct record *r = HM_STEAL(v->sending);
	bool wait = take_answer(v, r, a);

	v->call = NULL;
	if (r->sent < r->count && !link_on_list(&r->queue))
		link_append(&v->queue, &r->queue);
	if (wait)
		loop_timer_arm(v->timer, HM_MAX(kube_backoff_next(&v->backoff, kube_random()), a->retry_after_ms));
	else
		send_next(v);
}

static int send(struct kube_events *v, struct record *r, struct hm_err *e)
{
	struct kube_events_of_call events = { .done = on_sent, .arg = v };
	struct kube_request request = { .verb = !r->posted ? KUBE_POST : v->puts ? KUBE_PUT : KUBE_PATCH };
	bool patches = request.verb == KUBE_PATCH;
	hm_auto_str path = { 0 }, body = { 0 };

	str_add(&path, r->path);
	str_add(&body, patches ? "{" : r->body);
	add_counts(&body, r);
	str_addc(&body, '}');
	if (r->posted) {
		str_addc(&path, '/');
		kube_url_add(&path, r->name);
	}
	if (str_failed(&path) || str_failed(&body))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	request.path = str_text(&path);
	request.content_type = patches ? KUBE_MERGE_PATCH : KUBE_JSON;
	request.body = str_text(&body);
	request.n = body.n;
	if (kube_client_call(v->client, &request, &events, &v->call, e) < 0)
		return -e->code;
	v->sending = r;
	v->sending_count = r->count;
	return 0;
}

static void send_next(struct kube_events *v)
{
	struct link *first = list_first(&v->queue);
	struct hm_err e = { 0 };

	if (first == NULL || v->call != NULL)
		return;
	if (send(v, HM_CONTAINER(first, struct record, queue), &e) < 0) {
		loop_timer_arm(v->timer, kube_backoff_next(&v->backoff, kube_random()));
		return;
	}
	link_remove(first);
}

static void on_timer(void *arg)
{
	send_next(arg);
}

static struct record *find_or_make(struct kube_events *v, const struct kube_event_object *about, const char *type,
				   const char *reason, const char *message)
{
	hm_auto(record) *r = NULL;
	struct record *old;
	hm_auto_str key = { 0 };

	str_addf(&key, "%s\n%s\n%s\n%s\n%s\n%s\n%s", about->kind, about->name_space != NULL ? about->name_space : "",
		 about->name, about->uid, type, reason, message);
	if (str_failed(&key))
		return NULL;
	old = map_get(v->records, str_text(&key));
	if (old != NULL) {
		v->state.merged++;
		return old;
	}
	make_room(v);
	r = record_new(v, about, type, reason, message);
	if (r == NULL || map_put(v->records, str_text(&key), r, NULL) < 0)
		return NULL;
	return HM_STEAL(r);
}

void kube_events_tell(struct kube_events *v, const struct kube_event_object *about, const char *type,
		      const char *reason, const char *message)
{
	char cut[MESSAGE_BYTES + 1];
	struct record *r;

	hm_fmt(cut, sizeof cut, "%s", message);
	if (!allowed(v, about)) {
		v->state.limited++;
		return;
	}
	r = find_or_make(v, about, type, reason, cut);
	if (r == NULL) {
		v->state.dropped++;
		return;
	}
	r->count++;
	r->last_ms = clock_wall_ms();
	if (r != v->sending && !link_on_list(&r->queue))
		link_append(&v->queue, &r->queue);
	/* In the loop, so that several that are told in a row become one count. Not before a back-off is over. */
	if (v->call == NULL && v->backoff.tries == 0)
		loop_timer_arm(v->timer, 0);
}

void kube_events_state(const struct kube_events *v, struct kube_events_state *out)
{
	*out = v->state;
}

int kube_events_new(struct kube_client *c, const char *component, const char *host, struct kube_events **out,
		    struct hm_err *e)
{
	hm_auto(kube_events) *v = calloc(1, sizeof *v);

	if (v == NULL)
		return hm_err_set(e, HM_ENOMEM, "events: out of memory");
	v->client = c;
	v->backoff = (struct kube_backoff) { 1000, 60000, 0 };
	list_init(&v->queue);
	v->component = strdup(component);
	v->host = strdup(host);
	v->records = map_new();
	v->rates = map_new();
	if (v->component == NULL || v->host == NULL || v->records == NULL || v->rates == NULL ||
	    loop_timer_new(kube_client_loop(c), on_timer, v, &v->timer, e) < 0)
		return hm_err_set(e, HM_ENOMEM, "events: out of memory");
	*out = HM_STEAL(v);
	return 0;
}
