#include "sched/view/pod_read.h"

#include <string.h>

#include "contract/hami.h"
#include "hami/quantity.h"
#include "sched/view/host_read.h"

struct pod_rules pod_rules_of(const struct device_config *c)
{
	return (struct pod_rules) {
		.count = c->resource_count != NULL ? c->resource_count : "",
		.memory = c->resource_memory != NULL ? c->resource_memory : "",
		.percent = c->resource_memory_percentage != NULL ? c->resource_memory_percentage : "",
		.cores = c->resource_cores != NULL ? c->resource_cores : "",
		.ask = { .memory_factor = (int32_t)HM_MIN(c->memory_factor, (uint64_t)INT32_MAX),
			 .default_memory_mib = (int32_t)HM_MIN(c->default_memory_mib, (uint64_t)INT32_MAX),
			 .default_cores = (int32_t)HM_MIN(c->default_cores, (uint64_t)INT32_MAX) },
	};
}

const struct cJSON *pod_member(const struct cJSON *at, const char *key)
{
	return cJSON_IsObject(at) ? cJSON_GetObjectItemCaseSensitive(at, key) : NULL;
}

const char *pod_text(const struct cJSON *at, const char *key)
{
	return cJSON_GetStringValue(pod_member(at, key));
}

const char *pod_annotation(const struct cJSON *pod, const char *key)
{
	return pod_text(pod_member(pod_member(pod, "metadata"), "annotations"), key);
}

const char *pod_node(const struct cJSON *pod)
{
	const char *node = pod_text(pod_member(pod, "spec"), "nodeName");

	return node != NULL && node[0] != '\0' ? node : NULL;
}

/* ---- amounts */

/* Limits, else requests. Null is a value: the API server reads it as 0. */
static const struct cJSON *find_amount(const struct cJSON *resources, const char *resource)
{
	const struct cJSON *limit;

	if (resource[0] == '\0')
		return NULL;
	limit = pod_member(pod_member(resources, "limits"), resource);
	return limit != NULL ? limit : pod_member(pod_member(resources, "requests"), resource);
}

static int read_amount(const struct cJSON *resources, const char *resource, struct ask_amount *out, struct hm_err *e)
{
	const struct cJSON *value = find_amount(resources, resource);
	struct quantity q;

	if (value == NULL)
		return 0;
	if (quantity_read(value, &q, e) < 0)
		return hm_err_wrap(e, "%s", resource);
	if (q.kind != QUANTITY_WHOLE)
		return hm_err_set(e, HM_EINVAL, "%s: is no whole number, or one beyond all cards", resource);
	*out = (struct ask_amount) { true, q.value };
	return 0;
}

static int read_container(const struct cJSON *tree, enum ask_kind kind, const struct pod_rules *rules,
			  struct card_ask *out, struct hm_err *e)
{
	const struct cJSON *resources = pod_member(tree, "resources");
	struct ask_amounts a = { 0 };

	if (read_amount(resources, rules->count, &a.count, e) < 0 ||
	    read_amount(resources, rules->memory, &a.memory, e) < 0 ||
	    read_amount(resources, rules->percent, &a.percent, e) < 0 ||
	    read_amount(resources, rules->cores, &a.cores, e) < 0)
		return -e->code;
	return card_ask_make(kind, &a, &rules->ask, out, e);
}

enum ask_kind pod_kind_of(const struct cJSON *tree, bool init)
{
	const char *restart = pod_text(tree, "restartPolicy");

	if (!init)
		return ASK_APP;
	return restart != NULL && strcmp(restart, "Always") == 0 ? ASK_SIDECAR : ASK_INIT;
}

static struct card_ask most_of(enum ask_kind kind)
{
	return (struct card_ask) { .kind = kind, .count = 1, .percent = 100, .cores = 100 };
}

/* Of what cannot be read *why is the first. 0 or -HM_ENOMEM. */
static int read_list(const struct cJSON *list, bool init, const struct pod_rules *rules, struct pod_ask *out,
		     struct hm_err *why)
{
	const struct cJSON *item;

	cJSON_ArrayForEach(item, list)
	{
		const char *name = pod_text(item, "name");
		enum ask_kind kind = pod_kind_of(item, init);
		bool over = out->count >= POD_READ_MAX_CONTAINERS;
		struct hm_err e = { 0 };
		struct card_ask ask;

		if (over)
			hm_err_set(&e, HM_ELIMIT, "more than %d containers", (int)POD_READ_MAX_CONTAINERS);
		else if (read_container(item, kind, rules, &ask, &e) < 0)
			hm_err_wrap(&e, "container %.63s", name != NULL ? name : "without a name");
		if (e.code != 0)
			ask = most_of(kind);
		if (e.code != 0 && why->code == 0)
			*why = e;
		if (pod_ask_add(out, &ask, NULL) < 0)
			return -HM_ENOMEM;
		if (over)
			return 0;
	}
	return 0;
}

/* ---- the rest */

static void read_wishes(const struct cJSON *annotations, struct pod_wishes *w)
{
	const struct {
		const char *key, **to;
	} wishes[] = {
		{ HAMI_WISH_NODE_POLICY, &w->node_policy },
		{ HAMI_WISH_CARD_POLICY, &w->card_policy },
		{ HAMI_WISH_WEIGHTS, &w->weights },
		{ HAMI_WISH_USE_TYPE, &w->use_types },
		{ HAMI_WISH_NO_TYPE, &w->no_types },
		{ HAMI_WISH_USE_UUID, &w->use_uuids },
		{ HAMI_WISH_NO_UUID, &w->no_uuids },
		{ HAMI_WISH_NUMA, &w->numa_bind },
		{ HAMI_WISH_MODE, &w->mode },
	};
	for (size_t i = 0; i < HM_COUNT(wishes); i++)
		*wishes[i].to = pod_text(annotations, wishes[i].key);
}

static const char *or_empty(const char *text)
{
	return text != NULL ? text : "";
}

/* The API server fills it in where there are classes of priority. */
static int32_t priority_of(const struct cJSON *spec)
{
	const struct cJSON *v = pod_member(spec, "priority");

	if (!cJSON_IsNumber(v) || v->valuedouble < INT32_MIN || v->valuedouble > INT32_MAX)
		return 0;
	return (int32_t)v->valuedouble;
}

int pod_read_ask(const struct cJSON *pod, const struct pod_rules *rules, struct pod_ask *out, struct hm_err *e)
{
	const struct cJSON *meta = pod_member(pod, "metadata"), *spec = pod_member(pod, "spec");
	const struct cJSON *init = pod_member(spec, "initContainers"), *apps = pod_member(spec, "containers");
	struct host_amount host;
	struct hm_err why = { 0 };

	*out = (struct pod_ask) { .uid = or_empty(pod_text(meta, "uid")),
				  .name_space = or_empty(pod_text(meta, "namespace")),
				  .name = or_empty(pod_text(meta, "name")) };
	if (!cJSON_IsObject(meta) || !cJSON_IsObject(spec))
		return hm_err_set(e, HM_EPROTO, "no pod: metadata or spec is missing");
	if ((init != NULL && !cJSON_IsNull(init) && !cJSON_IsArray(init)) ||
	    (apps != NULL && !cJSON_IsNull(apps) && !cJSON_IsArray(apps)))
		return hm_err_set(e, HM_EPROTO, "no pod: its containers are no list");
	read_wishes(pod_member(meta, "annotations"), &out->wishes);
	out->priority = priority_of(spec);
	host = host_of_pod(pod);
	out->cpu_milli = host.cpu_milli;
	out->host_mib = host.mib;
	if (read_list(init, true, rules, out, &why) < 0 || read_list(apps, false, rules, out, &why) < 0)
		return hm_err_set(e, HM_ENOMEM, "read a pod");
	if (why.code != 0 && e != NULL)
		*e = why;
	return -why.code;
}
