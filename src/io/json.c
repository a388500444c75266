#include "io/json.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/fmt.h"

enum { PATH_BYTES = 160, MAX_DEPTH = 32 };
#define MAX_EXACT 9007199254740992ULL /* 2^53 */

static void position_of(const char *text, size_t at, size_t *line, size_t *column)
{
	*line = *column = 1;
	for (size_t i = 0; i < at; i++) {
		*column = text[i] == '\n' ? 1 : *column + 1;
		*line += text[i] == '\n';
	}
}

static int parse_error(const char *text, size_t n, const char *end, const char *what, struct hm_err *e)
{
	size_t line, column, at = end >= text && end <= text + n ? (size_t)(end - text) : 0;

	position_of(text, at, &line, &column);
	return hm_err_set(e, HM_EPROTO, "line %zu, column %zu: %s", line, column, what);
}

static const char *skip_space(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n'))
		p++;
	return p;
}

int json_parse(const char *text, size_t n, struct cJSON **out, struct hm_err *e)
{
	const char *end = NULL;
	hm_auto(cJSON) *tree = NULL;

	if (n == 0)
		return hm_err_set(e, HM_EPROTO, "empty");
	tree = cJSON_ParseWithLengthOpts(text, n, &end, 0);
	if (tree == NULL)
		return parse_error(text, n, end, "not JSON", e);
	end = skip_space(end, text + n);
	if (end != text + n)
		return parse_error(text, n, end, "something behind the JSON value", e);
	*out = HM_STEAL(tree);
	return 0;
}

bool json_begins_object(const char *text, size_t n)
{
	const char *p = skip_space(text, text + n);

	return p < text + n && *p == '{';
}

/* Behind the text that begins at p; end where it does not end. */
static const char *skip_text(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		if (*p == '\\' && p + 1 < end)
			p++;
	return p;
}

/* Behind the last bracket of what opens at p; end where it does not close. */
static char *skip_nested(char *p, char *end)
{
	size_t depth = 0;

	for (; p < end; p++) {
		if (*p == '"')
			p = (char *)skip_text(p, end);
		else if (*p == '[' || *p == '{')
			depth++;
		else if ((*p == ']' || *p == '}') && --depth == 0)
			return p + 1;
	}
	return end;
}

void json_empty_arrays(char *text, size_t n, const char *name)
{
	char *end = text + n, *p = text;
	char quoted[64];

	hm_fmt(quoted, sizeof quoted, "\"%s\"", name);
	/* Within a text each quote has a backslash before it: where the name's second one has none, the text ends
	 * there. */
	while (n > 0 && (p = memmem(p, (size_t)(end - p), quoted, strlen(quoted))) != NULL) {
		char *from = (char *)skip_space(p + strlen(quoted), end);

		p = from;
		if (from == end || *from != ':')
			continue;
		from = (char *)skip_space(from + 1, end);
		if (from == end || *from != '[')
			continue;
		p = skip_nested(from, end);
		if (p[-1] == ']' && p - from > 2)
			memset(from + 1, ' ', (size_t)(p - from) - 2);
	}
}

int json_parse_within(const char *text, size_t n, size_t max_values, struct cJSON **out, struct hm_err *e)
{
	const char *end = text + n;
	size_t values = 1;

	for (const char *p = text; p < end; p++) {
		if (*p == '"')
			p = skip_text(p, end);
		else if ((*p == ',' || *p == '[' || *p == '{') && ++values > max_values)
			return hm_err_set(e, HM_ELIMIT, "has more than %zu values", max_values);
	}
	return json_parse(text, n, out, e);
}

struct json_at json_root(const struct cJSON *tree)
{
	return (struct json_at) { .node = tree };
}

struct json_at yaml_root(const struct cJSON *tree)
{
	return (struct json_at) { .node = tree, .lines = true };
}

/* "a.b[2].c"; places deeper than MAX_DEPTH lose their beginning. */
static void path_of(const struct json_at *at, const char *key, char *out, size_t cap)
{
	const struct json_at *chain[MAX_DEPTH];
	size_t depth = 0, n = 0;

	for (; at != NULL && at->parent != NULL && depth < MAX_DEPTH; at = at->parent)
		chain[depth++] = at;
	out[0] = '\0';
	while (depth-- > 0 && n < cap) {
		if (chain[depth]->key != NULL)
			n += hm_fmt(out + n, cap - n, "%s%s", n > 0 ? "." : "", chain[depth]->key);
		else
			n += hm_fmt(out + n, cap - n, "[%zu]", chain[depth]->index);
	}
	if (key != NULL && n < cap)
		hm_fmt(out + n, cap - n, "%s%s", n > 0 ? "." : "", key);
}

static const struct cJSON *member(const struct json_at *at, const char *key)
{
	const struct cJSON *v;

	if (key == NULL)
		v = at->node;
	else
		v = cJSON_IsObject(at->node) ? cJSON_GetObjectItemCaseSensitive(at->node, key) : NULL;
	return cJSON_IsNull(v) ? NULL : v;
}

int json_err(const struct json_at *at, const char *key, struct hm_err *e, const char *fmt, ...)
{
	const struct cJSON *v = member(at, key);
	char path[PATH_BYTES], what[320];
	va_list ap;
	int r;

	va_start(ap, fmt);
	hm_vfmt(what, sizeof what, fmt, ap);
	va_end(ap);
	path_of(at, key, path, sizeof path);
	r = path[0] != '\0' ? hm_err_set(e, HM_EINVAL, "%s: %s", path, what) : hm_err_set(e, HM_EINVAL, "%s", what);
	/* What is absent has no line: that of what it is absent from. */
	for (const struct json_at *up = at; v == NULL && up != NULL; up = up->parent)
		v = up->node;
	if (at->lines && v != NULL)
		hm_err_wrap(e, "line %d", v->valueint);
	return r;
}

/* The value as a message shows it. */
static void show(const struct cJSON *v, char *out, size_t cap)
{
	if (cJSON_IsString(v))
		hm_fmt(out, cap, "\"%.60s\"", v->valuestring);
	else if (cJSON_IsNumber(v) && v->valuedouble == floor(v->valuedouble) && fabs(v->valuedouble) < 1e18)
		hm_fmt(out, cap, "%lld", (long long)v->valuedouble);
	else
		hm_fmt(out, cap, "%s",
		       cJSON_IsNumber(v)   ? "a number with a fraction"
		       : cJSON_IsObject(v) ? "an object"
		       : cJSON_IsArray(v)  ? "a list"
		       : cJSON_IsTrue(v)   ? "true"
					   : "false");
}

/* 1: there, 0: absent and optional. */
static int find(const struct json_at *at, const char *key, enum json_need need, const struct cJSON **v,
		struct hm_err *e)
{
	if (key != NULL && at->node != NULL && !cJSON_IsObject(at->node))
		return json_err(at, NULL, e, "is no object");
	*v = member(at, key);
	if (*v != NULL)
		return 1;
	return need == JSON_REQUIRED ? json_err(at, key, e, "is missing") : 0;
}

static int wrong_kind(const struct json_at *at, const char *key, const char *wanted, struct hm_err *e)
{
	char text[80];

	show(member(at, key), text, sizeof text);
	return json_err(at, key, e, "%s is not %s", text, wanted);
}

int json_text(const struct json_at *at, const char *key, enum json_need need, const char **out, struct hm_err *e)
{
	const struct cJSON *v;
	int r = find(at, key, need, &v, e);

	if (r <= 0)
		return r;
	if (!cJSON_IsString(v))
		return wrong_kind(at, key, "a text", e);
	*out = v->valuestring;
	return 0;
}

int json_copy(const struct json_at *at, const char *key, enum json_need need, char *out, size_t cap, struct hm_err *e)
{
	const char *text = NULL;
	int r = json_text(at, key, need, &text, e);

	if (r < 0 || text == NULL)
		return r;
	if (strlen(text) >= cap)
		return json_err(at, key, e, "is longer than %zu bytes", cap - 1);
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

int json_u64(const struct json_at *at, const char *key, enum json_need need, uint64_t min, uint64_t max, uint64_t *out,
	     struct hm_err *e)
{
	const struct cJSON *v;
	int r = find(at, key, need, &v, e);
	char wanted[80];

	if (r <= 0)
		return r;
	max = max < MAX_EXACT ? max : MAX_EXACT;
	hm_fmt(wanted, sizeof wanted, "a number between %llu and %llu", (unsigned long long)min,
	       (unsigned long long)max);
	if (!cJSON_IsNumber(v) || v->valuedouble != floor(v->valuedouble) || v->valuedouble < (double)min ||
	    v->valuedouble > (double)max)
		return wrong_kind(at, key, wanted, e);
	*out = (uint64_t)v->valuedouble;
	return 0;
}

int json_f64(const struct json_at *at, const char *key, enum json_need need, double min, double max, double *out,
	     struct hm_err *e)
{
	const struct cJSON *v;
	int r = find(at, key, need, &v, e);
	char wanted[80];

	if (r <= 0)
		return r;
	hm_fmt(wanted, sizeof wanted, "a number between %lld and %lld", (long long)min, (long long)max);
	if (!cJSON_IsNumber(v) || !(v->valuedouble >= min && v->valuedouble <= max))
		return wrong_kind(at, key, wanted, e);
	*out = v->valuedouble;
	return 0;
}

int json_bool(const struct json_at *at, const char *key, enum json_need need, bool *out, struct hm_err *e)
{
	const struct cJSON *v;
	int r = find(at, key, need, &v, e);

	if (r <= 0)
		return r;
	if (!cJSON_IsBool(v))
		return wrong_kind(at, key, "true or false", e);
	*out = cJSON_IsTrue(v);
	return 0;
}

static int container(const struct json_at *at, const char *key, enum json_need need, bool array, struct json_at *out,
		     struct hm_err *e)
{
	const struct cJSON *v;
	int r;

	*out = (struct json_at) { .parent = at, .key = key, .lines = at->lines };
	r = find(at, key, need, &v, e);
	if (r <= 0)
		return r;
	if (array ? !cJSON_IsArray(v) : !cJSON_IsObject(v))
		return wrong_kind(at, key, array ? "a list" : "an object", e);
	if (key == NULL)
		*out = *at;
	out->node = v;
	return 0;
}

int json_object(const struct json_at *at, const char *key, enum json_need need, struct json_at *out, struct hm_err *e)
{
	return container(at, key, need, false, out, e);
}

int json_array(const struct json_at *at, const char *key, enum json_need need, struct json_at *out, struct hm_err *e)
{
	return container(at, key, need, true, out, e);
}

size_t json_count(const struct json_at *array)
{
	return array->node == NULL ? 0 : (size_t)cJSON_GetArraySize(array->node);
}

struct json_at json_item(const struct json_at *array, size_t index)
{
	return (struct json_at) { .node = cJSON_GetArrayItem(array->node, (int)index),
				  .parent = array,
				  .index = index,
				  .lines = array->lines };
}

int json_known(const struct json_at *at, const char *const keys[], size_t count, struct hm_err *e)
{
	const struct cJSON *v;

	cJSON_ArrayForEach(v, at->node)
	{
		size_t i = 0;

		while (i < count && v->string != NULL && strcmp(v->string, keys[i]) != 0)
			i++;
		if (v->string != NULL && i == count)
			return json_err(at, v->string, e, "unknown key");
	}
	return 0;
}
