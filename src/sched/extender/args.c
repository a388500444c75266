#include "sched/extender/args.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "io/json_scan.h"

/* As Go's decoder says it. */
static int wrong_kind(struct hm_err *e, enum json_kind got, const char *field, const char *type)
{
	return hm_err_set(e, HM_EPROTO, "json: cannot unmarshal %s into Go %s%s of type %s", json_kind_name(got),
			  *field != '\0' ? "struct field " : "value", field, type);
}

/* True where the value is null, which is passed over. */
static bool is_null(struct json_scan *s)
{
	if (json_scan_kind(s) != JSON_NULL)
		return false;
	json_scan_skip(s);
	return true;
}

/* 0 also where the JSON is bad: json_scan_finish tells. */
static int check_kind(struct json_scan *s, enum json_kind want, const char *field, const char *type, struct hm_err *e)
{
	enum json_kind k = json_scan_kind(s);

	return k == want || k == JSON_NONE ? 0 : wrong_kind(e, k, field, type);
}

/* A member of an object, its key in any case, as Go takes it. */
struct field {
	const char *key;
	const char *place; /* of the value, as an error names it */
	size_t offset;     /* read_text's */
	int (*read)(struct json_scan *s, const struct field *f, void *to, struct hm_err *e);
};

/* null is an empty one. e->code is 0 while nothing but the JSON may be wrong. */
static int read_object(struct json_scan *s, const char *place, const char *type, const struct field *fields,
		       size_t count, void *to, struct hm_err *e)
{
	char *key;

	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_OBJECT, place, type, e) < 0 || !json_scan_object(s))
		return -e->code;
	while (json_scan_member(s, &key)) {
		size_t i = 0;

		while (i < count && strcasecmp(key, fields[i].key) != 0)
			i++;
		if (i == count)
			json_scan_skip(s);
		else if (fields[i].read(s, &fields[i], to, e) < 0)
			return -e->code;
	}
	return 0;
}

static int too_large(const char *place, struct hm_err *e)
{
	return hm_err_set(e, HM_ELIMIT, "%s: is larger than %d MiB", place, EXTENDER_MAX_OBJECT_BYTES >> 20);
}

static int too_many(const char *place, struct hm_err *e)
{
	return hm_err_set(e, HM_ELIMIT, "%s: has more than %d", place, EXTENDER_MAX_NODES);
}

static int read_names(struct json_scan *s, const struct field *f, void *args, struct hm_err *e)
{
	struct extender_args *a = args;

	a->name_count = 0;
	a->has_names = !is_null(s);
	if (!a->has_names)
		return 0;
	if (check_kind(s, JSON_ARRAY, f->place, "[]string", e) < 0 || !json_scan_array(s))
		return -e->code;
	while (json_scan_item(s)) {
		const char *name = "";

		if (!is_null(s)) {
			if (check_kind(s, JSON_STRING, f->place, "string", e) < 0)
				return -e->code;
			name = json_scan_text(s);
		}
		if (name == NULL)
			continue; /* the JSON is bad */
		if (strlen(name) > EXTENDER_MAX_NAME_BYTES)
			return hm_err_set(e, HM_ELIMIT, "%s: a name is longer than %d bytes", f->place,
					  EXTENDER_MAX_NAME_BYTES);
		if (a->name_count == EXTENDER_MAX_NODES)
			return too_many(f->place, e);
		if (!HM_PUSH(a->names, a->name_count, a->name_cap, name))
			return hm_err_set(e, HM_ENOMEM, "node names");
	}
	return 0;
}

static int read_items(struct json_scan *s, const struct field *f, void *args, struct hm_err *e)
{
	struct extender_args *a = args;

	a->node_count = 0;
	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_ARRAY, f->place, "[]v1.Node", e) < 0 || !json_scan_array(s))
		return -e->code;
	while (json_scan_item(s)) {
		struct piece node;

		if (check_kind(s, JSON_OBJECT, f->place, "v1.Node", e) < 0)
			return -e->code;
		node = json_scan_skip(s);
		if (node.n > EXTENDER_MAX_OBJECT_BYTES)
			return too_large(f->place, e);
		if (a->node_count == EXTENDER_MAX_NODES)
			return too_many(f->place, e);
		if (node.n > 0 && !HM_PUSH(a->nodes, a->node_count, a->node_cap, node))
			return hm_err_set(e, HM_ENOMEM, "nodes");
	}
	return 0;
}

static int read_nodes(struct json_scan *s, const struct field *f, void *args, struct hm_err *e)
{
	static const struct field fields[] = { { "items", "ExtenderArgs.Nodes.items", .read = read_items } };
	struct extender_args *a = args;

	a->has_nodes = !is_null(s);
	return a->has_nodes ? read_object(s, f->place, "v1.NodeList", fields, HM_COUNT(fields), a, e) : 0;
}

static int read_pod(struct json_scan *s, const struct field *f, void *args, struct hm_err *e)
{
	struct extender_args *a = args;
	struct piece text;

	json_free(HM_STEAL(a->pod));
	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_OBJECT, f->place, "v1.Pod", e) < 0)
		return -e->code;
	text = json_scan_skip(s);
	if (text.n > EXTENDER_MAX_OBJECT_BYTES)
		return too_large(f->place, e);
	if (text.n > 0 && json_parse_within(text.p, text.n, EXTENDER_MAX_OBJECT_VALUES, &a->pod, e) < 0)
		return hm_err_wrap(e, "%s", f->place);
	return 0;
}

static const struct field args_fields[] = {
	{ "pod", "ExtenderArgs.Pod", .read = read_pod },
	{ "nodes", "ExtenderArgs.Nodes", .read = read_nodes },
	{ "nodenames", "ExtenderArgs.NodeNames", .read = read_names },
};

int extender_args_read(char *body, size_t n, struct extender_args *out, struct hm_err *e)
{
	struct json_scan s = json_scan_of(body, n);

	*out = (struct extender_args) { 0 };
	e->code = HM_OK;
	if (read_object(&s, "", "v1.ExtenderArgs", args_fields, HM_COUNT(args_fields), out, e) < 0 ||
	    json_scan_finish(&s, e) < 0)
		return -e->code;
	return out->pod != NULL ? 0 : hm_err_set(e, HM_EINVAL, "extender args missing pod");
}

void extender_args_fini(struct extender_args *a)
{
	json_free(HM_STEAL(a->pod));
	free(HM_STEAL(a->names));
	free(HM_STEAL(a->nodes));
}

static int read_text(struct json_scan *s, const struct field *f, void *binding, struct hm_err *e)
{
	const char *text;

	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_STRING, f->place, "string", e) < 0)
		return -e->code;
	text = json_scan_text(s);
	if (text != NULL)
		*(const char **)((char *)binding + f->offset) = text;
	return 0;
}

#define TEXT(key, name, member)                                                                                        \
	{                                                                                                              \
		key, "ExtenderBindingArgs." name, offsetof(struct extender_binding, member), read_text                 \
	}
static const struct field binding_fields[] = {
	TEXT("podname", "PodName", pod_name),
	TEXT("podnamespace", "PodNamespace", pod_namespace),
	TEXT("poduid", "PodUID", pod_uid),
	TEXT("node", "Node", node),
};
#undef TEXT

int extender_binding_read(char *body, size_t n, struct extender_binding *out, struct hm_err *e)
{
	struct json_scan s = json_scan_of(body, n);

	*out = (struct extender_binding) { "", "", "", "" };
	e->code = HM_OK;
	if (read_object(&s, "", "v1.ExtenderBindingArgs", binding_fields, HM_COUNT(binding_fields), out, e) < 0)
		return -e->code;
	return json_scan_finish(&s, e);
}
