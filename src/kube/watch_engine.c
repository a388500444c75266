#include "kube/watch_engine.h"

#include <string.h>

#include "base/str.h"

struct watch_engine {
	struct str in;
	size_t at;      /* where the next line begins */
	size_t scanned; /* no '\n' from `at` to here */
	size_t max_line;
	struct cJSON *tree; /* of the last event */
	struct hm_err failed;
};

struct watch_engine *watch_engine_new(size_t max_line)
{
	struct watch_engine *w = calloc(1, sizeof *w);

	if (w != NULL)
		w->max_line = max_line > 0 ? max_line : KUBE_MAX_WATCH_BYTES;
	return w;
}

void watch_engine_free(struct watch_engine *w)
{
	if (w == NULL)
		return;
	json_free(w->tree);
	str_fini(&w->in);
	free(w);
}

static int fail(struct watch_engine *w, struct hm_err *e)
{
	if (e != NULL)
		*e = w->failed;
	return -w->failed.code;
}

/* What was taken goes; a buffer that one large object made does not stay for the quiet years behind it. */
static void compact(struct watch_engine *w)
{
	if (w->at == w->in.n) {
		if (w->in.cap > 65536)
			str_fini(&w->in);
		else
			str_clear(&w->in);
	} else if (w->at > 0) {
		memmove(w->in.p, w->in.p + w->at, w->in.n - w->at);
		w->in.n -= w->at;
		w->in.p[w->in.n] = '\0';
	}
	w->scanned -= w->at;
	w->at = 0;
}

/* Looks for the end of the line at `at`; NULL: it has not come. */
static int find_end(struct watch_engine *w, const char **end)
{
	*end = memchr(str_text(&w->in) + w->scanned, '\n', w->in.n - w->scanned);
	w->scanned = *end != NULL ? (size_t)(*end - w->in.p) : w->in.n;
	if (w->scanned - w->at <= w->max_line)
		return 0;
	return hm_err_set(&w->failed, HM_ELIMIT, "watch: an event is larger than %zu bytes", w->max_line);
}

int watch_engine_push(struct watch_engine *w, const void *bytes, size_t n, struct hm_err *e)
{
	const char *end;

	if (w->failed.code != 0)
		return fail(w, e);
	compact(w);
	str_add_n(&w->in, bytes, n);
	if (str_failed(&w->in)) {
		hm_err_set(&w->failed, HM_ENOMEM, "watch: no memory for %zu bytes", n);
		return fail(w, e);
	}
	return find_end(w, &end) < 0 ? fail(w, e) : 0;
}

/* False: not known. */
static bool type_of(const char *text, enum watch_type *out)
{
	static const char *const names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };

	for (size_t i = 0; i < HM_COUNT(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			*out = (enum watch_type)i;
			return true;
		}
	}
	return false;
}

static int read_bookmark(const struct cJSON *tree, struct watch_event *out, struct hm_err *e)
{
	struct json_at root = json_root(tree), meta;

	if (json_object(&root, "metadata", JSON_REQUIRED, &meta, e) < 0 ||
	    kube_version_read(&meta, &out->resource_version, e) < 0)
		return -HM_EPROTO;
	return 1;
}

/* 1: an event, 0: a line to skip. */
static int read_line(struct watch_engine *w, char *text, size_t n, struct watch_event *out, struct hm_err *e)
{
	const struct cJSON *object;
	struct json_at root;
	const char *type = NULL;

	json_free(w->tree);
	w->tree = NULL;
	if (n == 0)
		return 0;
	kube_trim_text(text, n);
	if (json_parse(text, n, &w->tree, e) < 0)
		return -e->code;
	root = json_root(w->tree);
	*out = (struct watch_event) { .resource_version = "" };
	if (!cJSON_IsObject(w->tree))
		return hm_err_set(e, HM_EPROTO, "is no object");
	if (json_text(&root, "type", JSON_REQUIRED, &type, e) < 0)
		return -e->code;
	if (!type_of(type, &out->type))
		return 0;
	object = cJSON_GetObjectItemCaseSensitive(w->tree, "object");
	if (!cJSON_IsObject(object))
		return hm_err_set(e, HM_EPROTO, "%s without an object", type);
	if (out->type == WATCH_ERROR) {
		kube_status_of_tree(object, &out->status);
		return 1;
	}
	if (out->type == WATCH_BOOKMARK)
		return read_bookmark(object, out, e);
	if (kube_object_read(object, &out->object, e) < 0)
		return -e->code;
	out->resource_version = out->object.resource_version;
	return 1;
}

int watch_engine_next(struct watch_engine *w, struct watch_event *out, struct hm_err *e)
{
	if (w->failed.code != 0)
		return fail(w, e);
	for (;;) {
		const char *end;
		char *from;
		int r;

		if (find_end(w, &end) < 0)
			return fail(w, e);
		if (end == NULL)
			return 0;
		from = w->in.p + w->at;
		w->at = ++w->scanned;
		r = read_line(w, from, (size_t)(end - from), out, &w->failed);
		if (r > 0)
			return r;
		if (r < 0) {
			w->failed.code = r == -HM_ENOMEM ? HM_ENOMEM : HM_EPROTO;
			hm_err_wrap(&w->failed, "watch");
			return fail(w, e);
		}
	}
}
