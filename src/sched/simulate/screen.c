#include "sched/simulate/screen.h"

#include <string.h>

#include "core/macros.h"
#include "core/num.h"
#include "sched/view/pod_read.h"

/* Labels, taints, tolerations: each is held against each of the other object's. */
enum { MOST_ITEMS = 1024 };

/* Of a list or an object; NULL where it is neither, empty or too long. */
static const struct cJSON *items_of(const struct cJSON *at)
{
	int n = cJSON_GetArraySize(at);

	return n > 0 && n <= MOST_ITEMS && (cJSON_IsArray(at) || cJSON_IsObject(at)) ? at : NULL;
}

static const struct cJSON *object_of(const struct cJSON *at)
{
	return cJSON_IsObject(at) ? at : NULL;
}

static const char *text_of(const struct cJSON *at, const char *key)
{
	const char *text = pod_text(at, key);

	return text == NULL ? "" : text;
}

/* ---- taints */

static bool keeps_away(const struct cJSON *taint)
{
	const char *effect = text_of(taint, "effect");

	return strcmp(effect, "NoSchedule") == 0 || strcmp(effect, "NoExecute") == 0;
}

static bool any_keeps_away(const struct cJSON *taints)
{
	const struct cJSON *t;

	cJSON_ArrayForEach(t, taints)
	{
		if (keeps_away(t))
			return true;
	}
	return false;
}

static bool is_tolerated_by(const struct cJSON *toleration, const char *key, const char *value, const char *effect)
{
	const char *its_effect = text_of(toleration, "effect"), *its_key = text_of(toleration, "key");
	const char *op = text_of(toleration, "operator");

	if ((its_effect[0] != '\0' && strcmp(its_effect, effect) != 0) ||
	    (its_key[0] != '\0' && strcmp(its_key, key) != 0))
		return false;
	if (strcmp(op, "Exists") == 0)
		return true;
	return (op[0] == '\0' || strcmp(op, "Equal") == 0) && strcmp(text_of(toleration, "value"), value) == 0;
}

static bool tolerates(const struct screen_pod *p, const char *key, const char *value, const char *effect)
{
	const struct cJSON *t;

	cJSON_ArrayForEach(t, p->tolerations)
	{
		if (is_tolerated_by(t, key, value, effect))
			return true;
	}
	return false;
}

static bool tolerates_all(const struct screen_pod *p, const struct cJSON *taints)
{
	const struct cJSON *t;

	cJSON_ArrayForEach(t, taints)
	{
		if (keeps_away(t) && !tolerates(p, text_of(t, "key"), text_of(t, "value"), text_of(t, "effect")))
			return false;
	}
	return true;
}

/* ---- labels */

static bool has_labels(const struct screen_node *n, const struct cJSON *selector)
{
	const struct cJSON *want;

	cJSON_ArrayForEach(want, selector)
	{
		const char *value = pod_text(n->labels, want->string);

		if (value == NULL || !cJSON_IsString(want) || strcmp(value, want->valuestring) != 0)
			return false;
	}
	return true;
}

static bool is_among(const char *value, const struct cJSON *values)
{
	const struct cJSON *v;

	cJSON_ArrayForEach(v, values)
	{
		if (cJSON_IsString(v) && strcmp(v->valuestring, value) == 0)
			return true;
	}
	return false;
}

static bool read_whole(const char *text, int64_t *out)
{
	bool negative = text != NULL && text[0] == '-';
	uint64_t u;

	if (!num_u64_str(negative ? text + 1 : text, INT64_MAX, &u))
		return false;
	*out = negative ? -(int64_t)u : (int64_t)u;
	return true;
}

/* By the one number in `values`. */
static bool is_beyond(const char *value, const struct cJSON *values, bool greater)
{
	int64_t is, bound;

	if (cJSON_GetArraySize(values) != 1 || !read_whole(value, &is) ||
	    !read_whole(cJSON_GetStringValue(values->child), &bound))
		return false;
	return greater ? is > bound : is < bound;
}

/* NULL: the node has no such label. */
static bool is_met(const struct cJSON *requirement, const char *value)
{
	const struct cJSON *values = pod_member(requirement, "values");
	const char *op = text_of(requirement, "operator");

	if (strcmp(op, "In") == 0)
		return value != NULL && is_among(value, values);
	if (strcmp(op, "NotIn") == 0)
		return value == NULL || !is_among(value, values);
	if (strcmp(op, "Exists") == 0)
		return value != NULL;
	if (strcmp(op, "DoesNotExist") == 0)
		return value == NULL;
	if (strcmp(op, "Gt") == 0 || strcmp(op, "Lt") == 0)
		return value != NULL && is_beyond(value, values, op[0] == 'G');
	return false;
}

static bool term_is_met(const struct cJSON *term, const struct screen_node *n)
{
	const struct cJSON *labels = pod_member(term, "matchExpressions"), *fields = pod_member(term, "matchFields"),
			   *r;

	cJSON_ArrayForEach(r, labels)
	{
		if (!is_met(r, pod_text(n->labels, text_of(r, "key"))))
			return false;
	}
	cJSON_ArrayForEach(r, fields) /* there is one field that may be asked for */
	{
		if (strcmp(text_of(r, "key"), "metadata.name") != 0 || !is_met(r, n->name))
			return false;
	}
	return cJSON_GetArraySize(labels) + cJSON_GetArraySize(fields) > 0;
}

/* One of the terms will do; without terms none does. */
static bool affinity_is_met(const struct cJSON *affinity, const struct screen_node *n)
{
	const struct cJSON *term;

	cJSON_ArrayForEach(term, pod_member(affinity, "nodeSelectorTerms"))
	{
		if (term_is_met(term, n))
			return true;
	}
	return false;
}

/* ---- both */

struct screen_node screen_node_of(const struct cJSON *node)
{
	const struct cJSON *spec = pod_member(node, "spec"), *meta = pod_member(node, "metadata");
	const struct cJSON *taints = pod_member(spec, "taints");

	return (struct screen_node) { .name = pod_text(meta, "name"),
				      .labels = items_of(object_of(pod_member(meta, "labels"))),
				      .taints = any_keeps_away(taints) ? taints : NULL,
				      .unschedulable = cJSON_IsTrue(pod_member(spec, "unschedulable")),
				      .barred = cJSON_GetArraySize(taints) > MOST_ITEMS };
}

struct screen_pod screen_pod_of(const struct cJSON *pod)
{
	const struct cJSON *spec = pod_member(pod, "spec");
	const struct cJSON *affinity = pod_member(pod_member(spec, "affinity"), "nodeAffinity");

	return (struct screen_pod) {
		.tolerations = items_of(pod_member(spec, "tolerations")),
		.selector = object_of(pod_member(spec, "nodeSelector")),
		.affinity = object_of(pod_member(affinity, "requiredDuringSchedulingIgnoredDuringExecution")),
	};
}

enum screen_reason screen_pod_on(const struct screen_pod *p, const struct screen_node *n)
{
	if (n->unschedulable && !tolerates(p, "node.kubernetes.io/unschedulable", "", "NoSchedule"))
		return SCREEN_UNSCHEDULABLE;
	if (n->barred || !tolerates_all(p, n->taints))
		return SCREEN_TAINTED;
	if (!has_labels(n, p->selector) || (p->affinity != NULL && !affinity_is_met(p->affinity, n)))
		return SCREEN_NOT_SELECTED;
	return SCREEN_PASSES;
}

const char *screen_reason_words(enum screen_reason r)
{
	static const char *const words[SCREEN_REASONS] = {
		[SCREEN_UNSCHEDULABLE] = "nodes that are unschedulable",
		[SCREEN_TAINTED] = "nodes with taints",
		[SCREEN_NOT_SELECTED] = "nodes that the pod does not select",
		[SCREEN_SHORT] = "nodes with too little CPU or memory",
	};

	return words[r];
}
