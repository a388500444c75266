#include "sched/extender/args.h"

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

static int read_names(struct json_scan *s, struct extender_args *a, struct hm_err *e)
{
	static const char field[] = "ExtenderArgs.NodeNames";

	a->name_count = 0;
	a->has_names = !is_null(s);
	if (!a->has_names)
		return 0;
	if (check_kind(s, JSON_ARRAY, field, "[]string", e) < 0 || !json_scan_array(s))
		return -e->code;
	while (json_scan_item(s)) {
		const char *name = "";

		if (!is_null(s)) {
			if (check_kind(s, JSON_STRING, field, "string", e) < 0)
				return -e->code;
			name = json_scan_text(s);
		}
		if (name != NULL && !HM_PUSH(a->names, a->name_count, a->name_cap, name))
			return hm_err_set(e, HM_ENOMEM, "node names");
	}
	return 0;
}

static int read_items(struct json_scan *s, struct extender_args *a, struct hm_err *e)
{
	static const char field[] = "ExtenderArgs.Nodes.items";

	a->node_count = 0;
	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_ARRAY, field, "[]v1.Node", e) < 0 || !json_scan_array(s))
		return -e->code;
	while (json_scan_item(s)) {
		struct piece node;

		if (check_kind(s, JSON_OBJECT, field, "v1.Node", e) < 0)
			return -e->code;
		node = json_scan_skip(s);
		if (node.n > 0 && !HM_PUSH(a->nodes, a->node_count, a->node_cap, node))
			return hm_err_set(e, HM_ENOMEM, "nodes");
	}
	return 0;
}

static int read_nodes(struct json_scan *s, struct extender_args *a, struct hm_err *e)
{
	char *key;

	a->has_nodes = !is_null(s);
	if (!a->has_nodes)
		return 0;
	if (check_kind(s, JSON_OBJECT, "ExtenderArgs.Nodes", "v1.NodeList", e) < 0 || !json_scan_object(s))
		return -e->code;
	while (json_scan_member(s, &key)) {
		if (strcasecmp(key, "items") != 0)
			json_scan_skip(s);
		else if (read_items(s, a, e) < 0)
			return -e->code;
	}
	return 0;
}

static int read_pod(struct json_scan *s, struct extender_args *a, struct hm_err *e)
{
	struct piece text;

	json_free(HM_STEAL(a->pod));
	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_OBJECT, "ExtenderArgs.Pod", "v1.Pod", e) < 0)
		return -e->code;
	text = json_scan_skip(s);
	return text.n > 0 && json_parse(text.p, text.n, &a->pod, e) < 0 ? hm_err_wrap(e, "Pod") : 0;
}

/* e->code is 0 while nothing but the JSON may be wrong. */
static int read_args(struct json_scan *s, struct extender_args *a, struct hm_err *e)
{
	static const struct {
		const char *key;
		int (*read)(struct json_scan *s, struct extender_args *a, struct hm_err *e);
	} fields[] = { { "pod", read_pod }, { "nodes", read_nodes }, { "nodenames", read_names } };
	char *key;

	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_OBJECT, "", "v1.ExtenderArgs", e) < 0 || !json_scan_object(s))
		return -e->code;
	while (json_scan_member(s, &key)) {
		size_t i = 0;

		while (i < HM_COUNT(fields) && strcasecmp(key, fields[i].key) != 0)
			i++;
		if (i == HM_COUNT(fields))
			json_scan_skip(s);
		else if (fields[i].read(s, a, e) < 0)
			return -e->code;
	}
	return 0;
}

int extender_args_read(char *body, size_t n, struct extender_args *out, struct hm_err *e)
{
	struct json_scan s = json_scan_of(body, n);

	*out = (struct extender_args) { 0 };
	e->code = HM_OK;
	if (read_args(&s, out, e) < 0 || json_scan_finish(&s, e) < 0)
		return -e->code;
	return out->pod != NULL ? 0 : hm_err_set(e, HM_EINVAL, "extender args missing pod");
}

void extender_args_fini(struct extender_args *a)
{
	json_free(HM_STEAL(a->pod));
	free(HM_STEAL(a->names));
	free(HM_STEAL(a->nodes));
}

static int read_text(struct json_scan *s, const char *field, const char **out, struct hm_err *e)
{
	const char *text;

	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_STRING, field, "string", e) < 0)
		return -e->code;
	text = json_scan_text(s);
	if (text != NULL)
		*out = text;
	return 0;
}

static int read_binding(struct json_scan *s, struct extender_binding *b, struct hm_err *e)
{
	const struct {
		const char *key, *field;
		const char **to;
	} fields[] = {
		{ "podname", "ExtenderBindingArgs.PodName", &b->pod_name },
		{ "podnamespace", "ExtenderBindingArgs.PodNamespace", &b->pod_namespace },
		{ "poduid", "ExtenderBindingArgs.PodUID", &b->pod_uid },
		{ "node", "ExtenderBindingArgs.Node", &b->node },
	};
	char *key;

	if (is_null(s))
		return 0;
	if (check_kind(s, JSON_OBJECT, "", "v1.ExtenderBindingArgs", e) < 0 || !json_scan_object(s))
		return -e->code;
	while (json_scan_member(s, &key)) {
		size_t i = 0;

		while (i < HM_COUNT(fields) && strcasecmp(key, fields[i].key) != 0)
			i++;
		if (i == HM_COUNT(fields))
			json_scan_skip(s);
		else if (read_text(s, fields[i].field, fields[i].to, e) < 0)
			return -e->code;
	}
	return 0;
}

int extender_binding_read(char *body, size_t n, struct extender_binding *out, struct hm_err *e)
{
	struct json_scan s = json_scan_of(body, n);

	*out = (struct extender_binding) { "", "", "", "" };
	e->code = HM_OK;
	if (read_binding(&s, out, e) < 0)
		return -e->code;
	return json_scan_finish(&s, e);
}
