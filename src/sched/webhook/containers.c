#include "sched/webhook/containers.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "contract/container.h"
#include "core/fmt.h"
#include "core/macros.h"
#include "io/json.h"
#include "io/json_write.h"
#include "sched/view/pod_read.h"
#include "sched/webhook/patch.h"

void pod_containers_fini(struct pod_containers *p)
{
	free(p->items);
	*p = (struct pod_containers) { 0 };
}

static void read_container(const struct cJSON *node, const char *list, size_t index, bool init,
			   struct pod_container *out)
{
	const char *name = review_text(node, "name");

	*out = (struct pod_container) {
		.node = node,
		.name = name == NULL ? "" : name,
		.list = list,
		.index = index,
		.kind = pod_kind_of(node, init),
		.privileged = cJSON_IsTrue(review_member(review_member(node, "securityContext"), "privileged")),
	};
}

int containers_read(const struct cJSON *spec, const struct device_config *c, struct pod_containers *out,
		    struct answer *answer, struct hm_err *e)
{
	static const char *const lists[] = { "initContainers", "containers" };

	for (size_t l = 0; l < HM_COUNT(lists); l++) {
		const struct cJSON *list = review_member(spec, lists[l]), *node;
		size_t index = 0;

		if (list != NULL && !cJSON_IsArray(list)) {
			(void)answer_fail(answer, 400, "spec.%s is no list", lists[l]);
			return 0;
		}
		cJSON_ArrayForEach(node, list)
		{
			struct pod_container container;

			if (out->count == POD_READ_MAX_CONTAINERS) {
				(void)answer_fail(answer, 400, "the pod has more than %d containers",
						  POD_READ_MAX_CONTAINERS);
				return 0;
			}
			read_container(node, lists[l], index++, l == 0, &container);
			if (!amounts_read(node, c, &container.amounts, answer))
				return 0;
			if (!HM_PUSH(out->items, out->count, out->cap, container))
				return hm_err_set(e, HM_ENOMEM, "a pod's containers");
		}
	}
	return 0;
}

static bool takes_all_memory(const struct amounts *a)
{
	if (amount_set(a, AMOUNT_PERCENT))
		return amount_value(a, AMOUNT_PERCENT) == 100;
	return !amount_set(a, AMOUNT_MEMORY);
}

/* A count in requests alone makes no GPU container: the API server refuses such a pod. */
static void derive(struct pod_container *p, const struct device_config *c)
{
	const struct amounts *a = &p->amounts;
	bool amounts_said =
		a->of[AMOUNT_CORES].in_limits || a->of[AMOUNT_MEMORY].in_limits || a->of[AMOUNT_PERCENT].in_limits;

	if (amount_set(a, AMOUNT_COUNT) && amount_value(a, AMOUNT_COUNT) == 0)
		return;
	p->add_count = !a->of[AMOUNT_COUNT].in_limits && amounts_said && c->default_gpu_count > 0;
	p->gpu = a->of[AMOUNT_COUNT].in_limits || p->add_count;
	p->add_cores =
		p->gpu && !amount_set(a, AMOUNT_CORES) && *amount_name(c, AMOUNT_CORES) != '\0' && takes_all_memory(a);
}

void containers_derive(struct pod_containers *p, const struct device_config *c)
{
	for (size_t i = 0; i < p->count; i++) {
		derive(&p->items[i], c);
		p->gpu |= p->items[i].gpu;
	}
}

/* --- environment ------------------------------------------------------------------------------------------------- */
struct variable {
	const char *name;
	char value[24];
};

static void add_variable(const struct variable *v, struct str *out)
{
	str_addc(out, '{');
	json_add_member(out, "name", v->name);
	json_add_member(out, "value", v->value);
	str_addc(out, '}');
}

/* The last of the name in the list: the one that counts. NULL where there is none. */
static const struct cJSON *find_variable(const struct cJSON *env, const char *name, size_t *index)
{
	const struct cJSON *item, *found = NULL;
	size_t i = 0;

	cJSON_ArrayForEach(item, env)
	{
		const char *text = review_text(item, "name");

		if (text != NULL && strcmp(text, name) == 0) {
			found = item;
			*index = i;
		}
		i++;
	}
	return found;
}

static void patch_variable(const struct cJSON *env, const char *path, const struct variable *v, struct str *patch)
{
	hm_auto_str value = { 0 };
	size_t index = 0;
	const struct cJSON *item = find_variable(env, v->name, &index);
	const char *now = review_text(item, "value");

	if (now != NULL && strcmp(now, v->value) == 0)
		return;
	add_variable(v, &value);
	if (item == NULL)
		patch_append(patch, path, str_text(&value));
	else
		patch_replace_item(patch, path, index, str_text(&value));
	if (str_failed(&value))
		patch->failed = true;
}

/* A container without the list gets one whole. */
static void patch_new_env(const char *path, const struct variable *v, size_t count, struct str *patch)
{
	hm_auto_str list = { 0 };

	str_addc(&list, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			str_addc(&list, ',');
		add_variable(&v[i], &list);
	}
	str_addc(&list, ']');
	patch_set(patch, path, "env", str_text(&list));
	if (str_failed(&list))
		patch->failed = true;
}

static size_t wanted_variables(const struct pod_container *p, const struct device_config *c, struct variable out[2])
{
	size_t n = 0;

	if (!p->gpu) {
		if (c->overwrite_env)
			out[n++] = (struct variable) { HM_ENV_VISIBLE_DEVICES, "none" };
		return n;
	}
	if (p->amounts.of[AMOUNT_PRIORITY].in_limits) {
		out[n].name = HM_ENV_PRIORITY;
		(void)hm_fmt(out[n++].value, sizeof out->value, "%lld",
			     (long long)amount_value(&p->amounts, AMOUNT_PRIORITY));
	}
	if (c->core_policy != NULL && *c->core_policy != '\0' && strcmp(c->core_policy, "default") != 0) {
		out[n].name = HM_ENV_POLICY;
		(void)hm_fmt(out[n++].value, sizeof out->value, "%s", c->core_policy);
	}
	return n;
}

static void patch_env(const struct pod_container *p, const struct device_config *c, const char *path, struct str *patch)
{
	struct variable wanted[2];
	size_t count = wanted_variables(p, c, wanted);
	const struct cJSON *env = review_list(p->node, "env");
	hm_auto_str at = { 0 };

	if (count == 0)
		return;
	if (env == NULL) {
		patch_new_env(path, wanted, count, patch);
		return;
	}
	str_addf(&at, "%s/env", path);
	for (size_t i = 0; i < count; i++)
		patch_variable(env, str_text(&at), &wanted[i], patch);
	if (str_failed(&at))
		patch->failed = true;
}

/* --- limits ------------------------------------------------------------------------------------------------------ */
static void patch_limits(const struct pod_container *p, const struct device_config *c, const char *path,
			 struct str *patch)
{
	hm_auto_str at = { 0 };
	char count[24];

	if (!p->add_count && !p->add_cores)
		return;
	str_addf(&at, "%s/resources/limits", path); /* it is there: what is derived is derived from it */
	if (p->add_count) {
		(void)hm_fmt(count, sizeof count, "\"%llu\"", (unsigned long long)c->default_gpu_count);
		patch_set(patch, str_text(&at), amount_name(c, AMOUNT_COUNT), count);
	}
	if (p->add_cores)
		patch_set(patch, str_text(&at), amount_name(c, AMOUNT_CORES), "\"100\"");
	if (str_failed(&at))
		patch->failed = true;
}

void containers_patch(const struct pod_containers *p, const struct device_config *c, struct str *patch)
{
	for (size_t i = 0; i < p->count; i++) {
		hm_auto_str path = { 0 };

		str_addf(&path, "/spec/%s/%zu", p->items[i].list, p->items[i].index);
		patch_limits(&p->items[i], c, str_text(&path), patch);
		patch_env(&p->items[i], c, str_text(&path), patch);
		if (str_failed(&path))
			patch->failed = true;
	}
}

static struct ask_amount ask_of(const struct amounts *a, enum amount_kind kind)
{
	return (struct ask_amount) { amount_set(a, kind), amount_value(a, kind) };
}

int containers_ask(const struct pod_containers *p, const struct device_config *c, struct pod_ask *out, struct hm_err *e)
{
	const struct ask_rules rules = pod_rules_of(c).ask;

	for (size_t i = 0; i < p->count; i++) {
		const struct pod_container *from = &p->items[i];
		struct ask_amounts amounts = { { true, 0 } };
		struct card_ask ask;

		if (from->gpu)
			amounts = (struct ask_amounts) {
				ask_of(&from->amounts, AMOUNT_COUNT),
				ask_of(&from->amounts, AMOUNT_MEMORY),
				ask_of(&from->amounts, AMOUNT_PERCENT),
				ask_of(&from->amounts, AMOUNT_CORES),
			};
		if (from->add_count)
			amounts.count = (struct ask_amount) { true, (int64_t)c->default_gpu_count };
		if (from->add_cores)
			amounts.cores = (struct ask_amount) { true, 100 };
		if (card_ask_make(from->kind, &amounts, &rules, &ask, e) < 0 || pod_ask_add(out, &ask, e) < 0)
			return -e->code;
	}
	return 0;
}
