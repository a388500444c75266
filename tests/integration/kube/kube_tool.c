/* src/kube from the command line, for the tests. Each thing that happens is a JSON line on stdout.
 *
 *     kube_tool [options] get PATH [COUNT]           COUNT at once; {"http":200,"reason":"","err":"","body":{...}}
 *     kube_tool [options] patch PATH merge|strategic BODY
 *     kube_tool [options] annotate PATH KEY=VALUE|KEY- [UID [VERSION]]
 *     kube_tool [options] post PATH BODY
 *     kube_tool [options] bind NAMESPACE POD UID NODE KEY=VALUE
 *     kube_tool [options] event NAMESPACE NAME UID COUNT [DIFFERENT]
 *     kube_tool [options] watch PATH                 {"told":"changed","key":"ns/name","version":"7","uid":"u",...};
 *                                                    after SIGUSR1 all is listed anew
 *
 * At the end of all {"stats":...}. --for-ms ends what would not end. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/options.h"
#include "base/str.h"
#include "core/num.h"
#include "io/json.h"
#include "io/loop.h"
#include "kube/binding.h"
#include "kube/client.h"
#include "kube/event.h"
#include "kube/patch.h"
#include "kube/reflector.h"

struct tool {
	struct loop *loop;
	struct kube_client *client;
	struct kube_reflector *reflector;
	struct kube_events *events;
	struct loop_timer *timer;
	struct loop_signal *relist;
	char **args;
	int count;
	uint64_t pending;
	bool cached, optional, once;
	bool quiet; /* only "synced" is told: for measuring */

	const char *kubeconfig, *field, *label, *free_at;
	uint64_t backoff_ms, backoff_max_ms, request_ms, connect_ms, stall_ms, watch_s, page, tries, max_bytes,
		per_second, burst, connections, object_bytes, for_ms;
};

static void say(struct cJSON *line)
{
	char *text = cJSON_PrintUnformatted(line);

	puts(text);
	fflush(stdout);
	free(text);
	cJSON_Delete(line);
}

static void free_all(struct tool *t)
{
	kube_events_free(HM_STEAL(t->events));
	kube_reflector_free(HM_STEAL(t->reflector));
	kube_client_free(HM_STEAL(t->client));
}

/* --free-at=WHAT: everything is freed inside that callback. */
static bool freed_here(struct tool *t, const char *what)
{
	if (t->free_at == NULL || strcmp(t->free_at, what) != 0)
		return false;
	free_all(t);
	loop_stop(t->loop);
	return true;
}

static void on_answer(void *arg, const struct kube_answer *a)
{
	struct tool *t = arg;
	struct cJSON *line = cJSON_CreateObject(), *body = NULL;

	cJSON_AddNumberToObject(line, "http", a->status.http);
	cJSON_AddNumberToObject(line, "outcome", a->status.outcome);
	cJSON_AddNumberToObject(line, "code", a->err.code);
	cJSON_AddNumberToObject(line, "bytes", (double)a->n);
	cJSON_AddNumberToObject(line, "at_ms", (double)loop_now_ms(t->loop));
	cJSON_AddStringToObject(line, "reason", a->status.reason);
	cJSON_AddStringToObject(line, "err", a->err.msg);
	if (a->n < 100000 && json_parse(a->body, a->n, &body, NULL) == 0)
		cJSON_AddItemToObject(line, "body", body);
	say(line);
	if (!freed_here(t, "answer") && --t->pending == 0)
		loop_stop(t->loop);
}

static int call(struct tool *t, enum kube_verb verb, const char *type, const char *body, struct hm_err *e)
{
	struct kube_events_of_call events = { .done = on_answer, .arg = t };
	struct kube_request r = {
		.verb = verb, .path = t->args[1], .content_type = type, .body = body, .once = t->once
	};

	r.n = body != NULL ? strlen(body) : 0;
	t->pending++;
	return kube_client_call(t->client, &r, &events, NULL, e);
}

static int do_get(struct tool *t, struct hm_err *e)
{
	uint64_t count = 1;

	if (t->count > 2 && !num_u64_str(t->args[2], 100000, &count))
		return hm_err_set(e, HM_EINVAL, "COUNT");
	for (; count > 0; count--) {
		if (call(t, KUBE_GET, NULL, NULL, e) < 0)
			return -e->code;
	}
	return 0;
}

static int do_patch(struct tool *t, struct hm_err *e)
{
	bool merge = strcmp(t->args[2], "merge") == 0;

	return call(t, KUBE_PATCH, merge ? KUBE_MERGE_PATCH : KUBE_STRATEGIC_PATCH, t->args[3], e);
}

static int do_post(struct tool *t, struct hm_err *e)
{
	return call(t, KUBE_POST, KUBE_JSON, t->args[2], e);
}

static int do_annotate(struct tool *t, struct hm_err *e)
{
	struct kube_patch_value value = { t->args[2], NULL };
	struct kube_patch patch = { .annotations = &value, .annotation_count = 1 };
	char *equals = strchr(t->args[2], '=');
	hm_auto_heap char *body = NULL;

	if (equals != NULL) {
		*equals = '\0';
		value.value = equals + 1;
	} else {
		t->args[2][strlen(t->args[2]) - 1] = '\0';
	}
	patch.uid = t->count > 3 && t->args[3][0] != '\0' ? t->args[3] : NULL;
	patch.resource_version = t->count > 4 ? t->args[4] : NULL;
	if (kube_patch_text(&patch, &body, e) < 0)
		return -e->code;
	return call(t, KUBE_PATCH, KUBE_MERGE_PATCH, body, e);
}

static int do_bind(struct tool *t, struct hm_err *e)
{
	char *equals = strchr(t->args[5], '=');
	struct kube_patch_value value = { t->args[5], equals != NULL ? equals + 1 : "" };
	struct kube_binding binding = { t->args[1], t->args[2], t->args[3], t->args[4], &value, 1 };
	hm_auto_str path = { 0 }, body = { 0 };

	if (equals != NULL)
		*equals = '\0';
	if (kube_binding_text(&binding, &path, &body, e) < 0)
		return -e->code;
	t->args[1] = path.p; /* as the others have it; copied by the call */
	return call(t, KUBE_POST, KUBE_JSON, str_text(&body), e);
}

static void tell(struct tool *t, const char *what, const struct kube_object *o)
{
	struct cJSON *line;

	if (t->quiet && o != NULL)
		return;
	line = cJSON_CreateObject();
	cJSON_AddStringToObject(line, "told", what);
	cJSON_AddNumberToObject(line, "at_ms", (double)loop_now_ms(t->loop));
	if (t->reflector != NULL) {
		struct kube_reflector_state r;

		kube_reflector_state(t->reflector, &r);
		cJSON_AddBoolToObject(line, "listing", r.listing);
	}
	if (o != NULL) {
		const struct cJSON *data = cJSON_GetObjectItemCaseSensitive(
			cJSON_GetObjectItemCaseSensitive(o->tree, "metadata"), "annotations");

		cJSON_AddStringToObject(line, "key", o->key);
		cJSON_AddStringToObject(line, "namespace", o->name_space);
		cJSON_AddStringToObject(line, "name", o->name);
		cJSON_AddStringToObject(line, "uid", o->uid);
		cJSON_AddStringToObject(line, "version", o->resource_version);
		cJSON_AddBoolToObject(line, "tree", o->tree != NULL);
		if (data != NULL && cJSON_GetArraySize(data) < 20)
			cJSON_AddItemToObject(line, "annotations", cJSON_Duplicate(data, true));
	}
	say(line);
}

static void on_changed(void *arg, const struct kube_object *o)
{
	tell(arg, "changed", o);
	freed_here(arg, "changed");
}

static void on_deleted(void *arg, const struct kube_object *o)
{
	tell(arg, "deleted", o);
	freed_here(arg, "deleted");
}

static void on_synced(void *arg)
{
	tell(arg, "synced", NULL);
	freed_here(arg, "synced");
}

static void on_lists(void *arg)
{
	tell(arg, "lists", NULL);
	freed_here(arg, "lists");
}

static void on_listed(void *arg)
{
	tell(arg, "listed", NULL);
	freed_here(arg, "listed");
}

static void on_relist(void *arg)
{
	const struct tool *t = arg;

	if (t->reflector != NULL)
		kube_reflector_relist(t->reflector);
}

static int do_watch(struct tool *t, struct hm_err *e)
{
	struct kube_reflector_events events = { on_changed, on_deleted, on_synced, t, on_lists, on_listed };
	struct kube_reflector_options o = { .path = t->args[1],
					    .field_selector = t->field,
					    .label_selector = t->label,
					    .page = (unsigned)t->page,
					    .cached = t->cached,
					    .optional = t->optional,
					    .watch_s = (uint32_t)t->watch_s,
					    .stall_ms = (uint32_t)t->stall_ms,
					    .backoff_ms = (uint32_t)t->backoff_ms,
					    .backoff_max_ms = (uint32_t)t->backoff_max_ms,
					    .max_object_bytes = t->object_bytes };

	return kube_reflector_new(t->client, &o, &events, &t->reflector, e);
}

static int do_event(struct tool *t, struct hm_err *e)
{
	struct kube_event_object about = { "v1", "Pod", t->args[1], t->args[2], t->args[3] };
	uint64_t count, different = 1;

	if (t->args[1][0] == '\0')
		about.kind = "Node";
	if (!num_u64_str(t->args[4], 10000, &count) || (t->count > 5 && !num_u64_str(t->args[5], 10000, &different)))
		return hm_err_set(e, HM_EINVAL, "COUNT");
	if (kube_events_new(t->client, "kube-tool", "here", &t->events, e) < 0)
		return -e->code;
	for (uint64_t i = 0; i < count; i++) {
		char message[80];

		snprintf(message, sizeof message, "message \"%llu\"", (unsigned long long)(i % different));
		kube_events_tell(t->events, &about, "Warning", "Tested", message);
	}
	return 0;
}

static void say_stats(const struct tool *t)
{
	struct cJSON *line = cJSON_CreateObject(), *stats = cJSON_AddObjectToObject(line, "stats");
	const struct kube_stats *s = kube_client_stats(t->client);

	for (unsigned i = 0; i < s->codes_used; i++) {
		for (unsigned v = 0; v < KUBE_VERB_COUNT; v++) {
			char key[40];

			snprintf(key, sizeof key, "%s %d", kube_verb_name((enum kube_verb)v), s->codes[i].code);
			if (s->codes[i].count[v] > 0)
				cJSON_AddNumberToObject(stats, key, (double)s->codes[i].count[v]);
		}
	}
	cJSON_AddNumberToObject(stats, "retries", (double)s->retries);
	cJSON_AddNumberToObject(stats, "http2", (double)s->http2);
	cJSON_AddNumberToObject(stats, "throttled", (double)s->throttled);
	cJSON_AddNumberToObject(stats, "token_reads", (double)s->token_reads);
	if (t->reflector != NULL) {
		struct kube_reflector_state r;

		kube_reflector_state(t->reflector, &r);
		cJSON_AddNumberToObject(stats, "lists", (double)r.lists);
		cJSON_AddNumberToObject(stats, "watches", (double)r.watches);
		cJSON_AddNumberToObject(stats, "failures", (double)r.failures);
		cJSON_AddBoolToObject(stats, "refused", r.refused);
		cJSON_AddNumberToObject(stats, "objects", (double)r.objects);
		cJSON_AddStringToObject(stats, "last", r.last.msg);
	}
	if (t->events != NULL) {
		struct kube_events_state v;

		kube_events_state(t->events, &v);
		cJSON_AddNumberToObject(stats, "sent", (double)v.sent);
		cJSON_AddNumberToObject(stats, "merged", (double)v.merged);
		cJSON_AddNumberToObject(stats, "limited", (double)v.limited);
		cJSON_AddNumberToObject(stats, "dropped", (double)v.dropped);
	}
	say(line);
}

static void on_time_over(void *arg)
{
	struct tool *t = arg;

	loop_stop(t->loop);
}

static int run(struct tool *t, struct hm_err *e)
{
	static const struct {
		const char *name;
		int least, most;
		int (*run)(struct tool *t, struct hm_err *e);
	} commands[] = {
		{ "get", 2, 3, do_get },           { "patch", 4, 4, do_patch }, { "post", 3, 3, do_post },
		{ "annotate", 3, 5, do_annotate }, { "watch", 2, 2, do_watch }, { "event", 5, 6, do_event },
		{ "bind", 6, 6, do_bind },
	};
	struct kube_config_places places = kube_config_places_of(t->kubeconfig);
	struct kube_client_options options = { .user_agent = "kube-tool",
					       .connect_ms = (uint32_t)t->connect_ms,
					       .request_ms = (uint32_t)t->request_ms,
					       .backoff_ms = (uint32_t)t->backoff_ms,
					       .backoff_max_ms = (uint32_t)t->backoff_max_ms,
					       .tries = (unsigned)t->tries,
					       .max_connections = (unsigned)t->connections,
					       .max_bytes = t->max_bytes,
					       .per_second = (uint32_t)t->per_second,
					       .burst = (uint32_t)t->burst };
	struct kube_config *config = NULL;

	if (kube_config_find(&places, &config, e) < 0 || kube_client_new(t->loop, config, &options, &t->client, e) < 0)
		return -e->code;
	for (size_t i = 0; i < HM_COUNT(commands); i++) {
		if (strcmp(commands[i].name, t->args[0]) != 0 || t->count < commands[i].least ||
		    t->count > commands[i].most)
			continue;
		if (commands[i].run(t, e) < 0)
			return -e->code;
		if (t->for_ms > 0)
			loop_timer_arm(t->timer, t->for_ms);
		return loop_run(t->loop, e);
	}
	return hm_err_set(e, HM_EINVAL, "no such command, or a wrong number of words");
}

int main(int argc, char **argv)
{
	struct tool t = { 0 };
	const struct option_spec specs[] = {
		{ "kubeconfig", NULL, OPTION_TEXT, &t.kubeconfig },
		{ "field", NULL, OPTION_TEXT, &t.field },
		{ "label", NULL, OPTION_TEXT, &t.label },
		{ "free-at", NULL, OPTION_TEXT, &t.free_at },
		{ "cached", NULL, OPTION_BOOL, &t.cached },
		{ "optional", NULL, OPTION_BOOL, &t.optional },
		{ "once", NULL, OPTION_BOOL, &t.once },
		{ "quiet", NULL, OPTION_BOOL, &t.quiet },
		{ "backoff-ms", NULL, OPTION_U64, &t.backoff_ms, 0, 100000 },
		{ "backoff-max-ms", NULL, OPTION_U64, &t.backoff_max_ms, 0, 100000 },
		{ "request-ms", NULL, OPTION_U64, &t.request_ms, 0, 100000 },
		{ "connect-ms", NULL, OPTION_U64, &t.connect_ms, 0, 100000 },
		{ "stall-ms", NULL, OPTION_U64, &t.stall_ms, 0, 1000000 },
		{ "watch-s", NULL, OPTION_U64, &t.watch_s, 0, 100000 },
		{ "page", NULL, OPTION_U64, &t.page, 0, 100000 },
		{ "tries", NULL, OPTION_U64, &t.tries, 0, 100 },
		{ "max-bytes", NULL, OPTION_U64, &t.max_bytes, 0, 1u << 30 },
		{ "object-bytes", NULL, OPTION_U64, &t.object_bytes, 0, 1u << 30 },
		{ "per-second", NULL, OPTION_U64, &t.per_second, 0, 100000 },
		{ "burst", NULL, OPTION_U64, &t.burst, 0, 100000 },
		{ "connections", NULL, OPTION_U64, &t.connections, 0, 1000 },
		{ "for-ms", NULL, OPTION_U64, &t.for_ms, 0, 1000000 },
	};
	struct hm_err e = { 0 };
	int first, r;

	signal(SIGPIPE, SIG_IGN);
	log_set_clock(clock_wall_ms);
	log_set_verbosity(3);
	if (options_parse(specs, HM_COUNT(specs), argc, argv, &first, &e) < 0 || first >= argc) {
		fprintf(stderr, "kube_tool: %s\n", e.code != 0 ? e.msg : "no command");
		return 2;
	}
	t.args = argv + first;
	t.count = argc - first;
	r = loop_new(&t.loop, &e);
	if (r == 0)
		r = loop_timer_new(t.loop, on_time_over, &t, &t.timer, &e);
	if (r == 0)
		r = loop_signal_new(t.loop, SIGUSR1, on_relist, &t, &t.relist, &e);
	if (r == 0)
		r = run(&t, &e);
	if (r < 0)
		fprintf(stderr, "kube_tool: %s\n", e.msg);
	if (t.client != NULL)
		say_stats(&t);
	free_all(&t);
	loop_timer_free(t.timer);
	loop_signal_free(t.relist);
	loop_free(t.loop);
	return r < 0 ? 1 : 0;
}
