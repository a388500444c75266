#include "io/yaml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "core/link.h"

struct anchor {
	struct link on; /* parser.anchors, newest last */
	char *name;
	const struct cJSON *value; /* borrowed from the tree being built; NULL while it is still open */
	size_t nodes;              /* that a copy of it costs */
};

struct parser {
	yaml_parser_t yaml;
	struct link anchors;
	size_t nodes;
	unsigned depth;
	struct hm_err *e;
};

static int parse_node(struct parser *p, const yaml_event_t *event, struct cJSON **out);

static size_t line_of(const yaml_event_t *event)
{
	return event->start_mark.line + 1;
}

static int fail(struct parser *p, int code, const yaml_event_t *event, const char *what)
{
	return hm_err_set(p->e, code, "line %zu: %s", line_of(event), what);
}

static int next_event(struct parser *p, yaml_event_t *event)
{
	if (yaml_parser_parse(&p->yaml, event))
		return 0;
	if (p->yaml.error == YAML_MEMORY_ERROR)
		return hm_err_set(p->e, HM_ENOMEM, "YAML");
	return hm_err_set(p->e, HM_EPROTO, "line %zu: %s", p->yaml.problem_mark.line + 1,
			  p->yaml.problem != NULL ? p->yaml.problem : "not YAML");
}

/* ---- Scalars */

static const char *skip_digits(const char *s)
{
	while (*s >= '0' && *s <= '9')
		s++;
	return s;
}

/* JSON's grammar of numbers: no plus, no leading zeros, no bare dot. */
static bool is_number(const char *s)
{
	const char *after;

	s += *s == '-';
	after = skip_digits(s);
	if (after == s || (*s == '0' && after != s + 1))
		return false;
	s = after;
	if (*s == '.') {
		after = skip_digits(s + 1);
		if (after == s + 1)
			return false;
		s = after;
	}
	if (*s == 'e' || *s == 'E') {
		s += s[1] == '-' || s[1] == '+' ? 2 : 1;
		after = skip_digits(s);
		if (after == s)
			return false;
		s = after;
	}
	return *s == '\0';
}

static bool one_of(const char *s, const char *const words[])
{
	for (; *words != NULL; words++)
		if (strcmp(s, *words) == 0)
			return true;
	return false;
}

static struct cJSON *make_scalar(const char *s, bool plain)
{
	static const char *const null_words[] = { "", "~", "null", "Null", "NULL", NULL };
	static const char *const true_words[] = { "true", "True", "TRUE", NULL };
	static const char *const false_words[] = { "false", "False", "FALSE", NULL };

	if (!plain)
		return cJSON_CreateString(s);
	if (one_of(s, null_words))
		return cJSON_CreateNull();
	if (one_of(s, true_words))
		return cJSON_CreateTrue();
	if (one_of(s, false_words))
		return cJSON_CreateFalse();
	if (is_number(s)) {
		double d = strtod(s, NULL);

		if (d > -1e308 && d < 1e308)
			return cJSON_CreateNumber(d);
	}
	return cJSON_CreateString(s);
}

static int parse_scalar(struct parser *p, const yaml_event_t *event, struct cJSON **out)
{
	const char *s = (const char *)event->data.scalar.value;

	if (strlen(s) != event->data.scalar.length)
		return fail(p, HM_EPROTO, event, "a NUL byte in a text");
	*out = make_scalar(s, event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE);
	return *out != NULL ? 0 : hm_err_set(p->e, HM_ENOMEM, "YAML");
}

/* ---- Anchors and aliases */

static void anchor_free(struct anchor *a)
{
	if (a == NULL)
		return;
	link_remove(&a->on);
	free(a->name);
	free(a);
}

static int open_anchor(struct parser *p, const yaml_char_t *name, struct anchor **out)
{
	struct anchor *a;

	*out = NULL;
	if (name == NULL)
		return 0;
	a = calloc(1, sizeof *a);
	if (a == NULL || (a->name = strdup((const char *)name)) == NULL) {
		free(a);
		return hm_err_set(p->e, HM_ENOMEM, "YAML");
	}
	link_append(&p->anchors, &a->on);
	*out = a;
	return 0;
}

static const struct anchor *find_anchor(const struct parser *p, const char *name)
{
	for (const struct link *l = p->anchors.prev; l != &p->anchors; l = l->prev) {
		const struct anchor *a = HM_CONTAINER(l, struct anchor, on);

		if (strcmp(a->name, name) == 0)
			return a;
	}
	return NULL;
}

static int parse_alias(struct parser *p, const yaml_event_t *event, struct cJSON **out)
{
	const struct anchor *a = find_anchor(p, (const char *)event->data.alias.anchor);

	if (a == NULL)
		return fail(p, HM_EPROTO, event, "an alias without its anchor");
	if (a->value == NULL)
		return fail(p, HM_EPROTO, event, "an alias inside its own anchor");
	p->nodes += a->nodes;
	if (p->nodes > YAML_MAX_NODES)
		return fail(p, HM_ELIMIT, event, "too many values");
	*out = cJSON_Duplicate(a->value, true);
	return *out != NULL ? 0 : hm_err_set(p->e, HM_ENOMEM, "YAML");
}

/* ---- Collections: each ends with its closing event */

static int parse_sequence(struct parser *p, struct cJSON *list)
{
	for (;;) {
		struct cJSON *item = NULL;
		yaml_event_t event;
		bool end;
		int r = next_event(p, &event);

		if (r < 0)
			return r;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end)
			r = parse_node(p, &event, &item);
		yaml_event_delete(&event);
		if (r < 0 || end)
			return r;
		cJSON_AddItemToArray(list, item);
	}
}

static int parse_value_of(struct parser *p, struct cJSON *object, const yaml_event_t *key)
{
	const char *name = (const char *)key->data.scalar.value;
	struct cJSON *value = NULL;
	yaml_event_t event;
	int r;

	if (key->type != YAML_SCALAR_EVENT)
		return fail(p, HM_EPROTO, key, "a key that is no text");
	if (strlen(name) != key->data.scalar.length)
		return fail(p, HM_EPROTO, key, "a NUL byte in a key");
	if (cJSON_GetArraySize(object) >= YAML_MAX_KEYS)
		return fail(p, HM_ELIMIT, key, "too many keys in one object");
	if (cJSON_GetObjectItemCaseSensitive(object, name) != NULL)
		return hm_err_set(p->e, HM_EPROTO, "line %zu: key \"%.60s\" is repeated", line_of(key), name);
	r = next_event(p, &event);
	if (r < 0)
		return r;
	r = parse_node(p, &event, &value);
	yaml_event_delete(&event);
	if (r < 0)
		return r;
	if (cJSON_AddItemToObject(object, name, value))
		return 0;
	cJSON_Delete(value);
	return hm_err_set(p->e, HM_ENOMEM, "YAML");
}

static int parse_mapping(struct parser *p, struct cJSON *object)
{
	for (;;) {
		yaml_event_t key;
		bool end;
		int r = next_event(p, &key);

		if (r < 0)
			return r;
		end = key.type == YAML_MAPPING_END_EVENT;
		if (!end)
			r = parse_value_of(p, object, &key);
		yaml_event_delete(&key);
		if (r < 0 || end)
			return r;
	}
}

static const yaml_char_t *anchor_name(const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_SCALAR_EVENT: return event->data.scalar.anchor;
	case YAML_SEQUENCE_START_EVENT: return event->data.sequence_start.anchor;
	case YAML_MAPPING_START_EVENT: return event->data.mapping_start.anchor;
	default: return NULL;
	}
}

static int parse_collection(struct parser *p, const yaml_event_t *event, struct cJSON **out)
{
	bool list = event->type == YAML_SEQUENCE_START_EVENT;
	hm_auto(cJSON) *value = list ? cJSON_CreateArray() : cJSON_CreateObject();
	int r;

	if (value == NULL)
		return hm_err_set(p->e, HM_ENOMEM, "YAML");
	if (p->depth == YAML_MAX_DEPTH)
		return fail(p, HM_ELIMIT, event, "nested too deep");
	p->depth++;
	r = list ? parse_sequence(p, value) : parse_mapping(p, value);
	p->depth--;
	if (r == 0)
		*out = HM_STEAL(value);
	return r;
}

static int parse_node(struct parser *p, const yaml_event_t *event, struct cJSON **out)
{
	size_t before = p->nodes;
	struct anchor *a;
	int r;

	if (event->type == YAML_ALIAS_EVENT) {
		r = parse_alias(p, event, out);
		return r;
	}
	if (++p->nodes > YAML_MAX_NODES)
		return fail(p, HM_ELIMIT, event, "too many values");
	r = open_anchor(p, anchor_name(event), &a);
	if (r < 0)
		return r;
	if (event->type == YAML_SCALAR_EVENT)
		r = parse_scalar(p, event, out);
	else
		r = parse_collection(p, event, out);
	if (r < 0)
		return r;
	(*out)->valueint = (int)line_of(event);
	if (a != NULL) {
		a->value = *out;
		a->nodes = p->nodes - before;
	}
	return 0;
}

/* STREAM-START, DOCUMENT-START, one value, DOCUMENT-END, STREAM-END; an empty stream has no document. */
static int parse_stream(struct parser *p, struct cJSON **out)
{
	for (;;) {
		yaml_event_t event;
		yaml_event_type_t type;
		int r = next_event(p, &event);

		if (r < 0)
			return r;
		type = event.type;
		if (type == YAML_DOCUMENT_START_EVENT && *out != NULL)
			r = fail(p, HM_EPROTO, &event, "a second document");
		else if (type != YAML_STREAM_START_EVENT && type != YAML_DOCUMENT_START_EVENT &&
			 type != YAML_DOCUMENT_END_EVENT && type != YAML_STREAM_END_EVENT)
			r = parse_node(p, &event, out);
		yaml_event_delete(&event);
		if (r < 0 || type == YAML_STREAM_END_EVENT)
			return r;
	}
}

int yaml_parse(const char *text, size_t n, struct cJSON **out, struct hm_err *e)
{
	struct parser p = { .e = e };
	hm_auto(cJSON) *tree = NULL;
	int r;

	if (!yaml_parser_initialize(&p.yaml))
		return hm_err_set(e, HM_ENOMEM, "YAML");
	list_init(&p.anchors);
	yaml_parser_set_input_string(&p.yaml, (const unsigned char *)text, n);
	r = parse_stream(&p, &tree);
	LIST_FOR_EACH (&p.anchors, l)
		anchor_free(HM_CONTAINER(l, struct anchor, on));
	yaml_parser_delete(&p.yaml);
	if (r == 0 && tree == NULL)
		r = hm_err_set(e, HM_EPROTO, "empty");
	if (r == 0)
		*out = HM_STEAL(tree);
	return r;
}
