#include "sched/webhook/pod.h"

#include <string.h>

#include "contract/hami.h"
#include "io/json.h"
#include "io/json_write.h"
#include "sched/webhook/annotations.h"
#include "sched/webhook/containers.h"
#include "sched/webhook/patch.h"

static const char DEFAULT_SCHEDULER[] = "default-scheduler";

static const char *ours(const struct webhook_rules *rules)
{
	return rules->scheduler_name == NULL ? "" : rules->scheduler_name;
}

/* Does the pod's author want another scheduler than ours? */
static bool is_another_schedulers(const struct webhook_rules *rules, const char *name)
{
	if (*name == '\0' || (strcmp(name, DEFAULT_SCHEDULER) == 0 && rules->force_overwrite_default_scheduler))
		return false;
	return *ours(rules) == '\0' || strcmp(name, ours(rules)) != 0;
}

/* It stays with its scheduler, as HAMi has it. On our nodes it will not start: nothing was signed for it. */
static void leave_to_another(const struct pod_containers *p, const char *scheduler, struct answer *answer)
{
	memcpy(answer->message, "pod already has different scheduler assigned",
	       sizeof "pod already has different scheduler assigned");
	if (p->gpu)
		answer_warn(answer,
			    "spec.schedulerName is %.63s: no card is reserved for this pod, and an agent that wants "
			    "signatures will not start its GPU containers",
			    scheduler);
}

static struct webhook_largest largest_of(const struct webhook_rules *rules)
{
	return rules->ask.largest == NULL ? (struct webhook_largest) { 0 } : rules->ask.largest(rules->ask.arg);
}

static bool check_amounts(const struct webhook_rules *rules, const struct pod_containers *p, struct answer *answer)
{
	const struct webhook_largest largest = largest_of(rules);

	for (size_t i = 0; i < p->count; i++)
		if (!amounts_check(&p->items[i].amounts, rules->device, p->items[i].name, &largest, answer))
			return false;
	return true;
}

/* A privileged container sees all cards of its node, whatever it was given. A neighbour does, too, but is often
 * needed (service meshes): warned of. */
static bool check_privileged(const struct pod_containers *p, struct answer *answer)
{
	if (!p->gpu)
		return true;
	for (size_t i = 0; i < p->count; i++)
		if (p->items[i].privileged && p->items[i].gpu)
			return answer_forbid(answer, "container %.63s is privileged", p->items[i].name);
	for (size_t i = 0; i < p->count; i++)
		if (p->items[i].privileged)
			answer_warn(answer, "container %.63s is privileged: it can reach every card of its node",
				    p->items[i].name);
	return true;
}

static bool check_ephemeral(const struct webhook_rules *rules, const struct cJSON *spec, struct answer *answer)
{
	const struct cJSON *node;

	cJSON_ArrayForEach(node, review_list(spec, "ephemeralContainers"))
	{
		const char *name = review_text(node, "name");
		struct amounts amounts;

		if (!amounts_read(node, rules->device, &amounts, answer))
			return false;
		for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++)
			if (amount_set(&amounts, k))
				return answer_forbid(answer,
						     "ephemeral container %.63s: %s: no card can be given to it; use a "
						     "container of the pod",
						     name == NULL ? "" : name, amount_name(rules->device, k));
	}
	return true;
}

static bool check_quota(const struct webhook_rules *rules, const struct review *r, const struct pod_ask *asks,
			struct answer *answer)
{
	char why[256] = "";

	if (rules->ask.quota_fits == NULL ||
	    rules->ask.quota_fits(rules->ask.arg, r->name_space, asks->containers, asks->count, why, sizeof why))
		return true;
	if (why[0] != '\0')
		answer_warn(answer, "%s", why);
	return answer_forbid(answer, "exceeding resource quota");
}

/* --- advice ------------------------------------------------------------------------------------------------------ */
static void advise_zero(const struct pod_container *c, const struct device_config *d, enum amount_kind kind,
			struct answer *answer)
{
	bool no_cores = kind == AMOUNT_MEMORY && !amount_set(&c->amounts, AMOUNT_CORES);

	if (amount_set(&c->amounts, kind) && amount_value(&c->amounts, kind) == 0)
		answer_warn(answer, "container %.63s: %s is 0: this counts as not said%s%s%s", c->name,
			    amount_name(d, kind), no_cores ? ", but that " : "",
			    no_cores ? amount_name(d, AMOUNT_CORES) : "", no_cores ? " is not set to 100" : "");
}

/* A larger node may be on its way (Cluster Autoscaler). */
static void advise_count(const struct pod_container *c, const struct device_config *d,
			 const struct webhook_largest *largest, struct answer *answer)
{
	if (largest->node_cards > 0 && amount_value(&c->amounts, AMOUNT_COUNT) > largest->node_cards)
		answer_warn(answer, "container %.63s: %s is %lld: no node of the cluster has more than %lld cards",
			    c->name, amount_name(d, AMOUNT_COUNT), (long long)amount_value(&c->amounts, AMOUNT_COUNT),
			    (long long)largest->node_cards);
}

static void advise_gpu_container(const struct pod_container *c, const struct device_config *d, struct answer *answer)
{
	const struct cJSON *env;

	advise_zero(c, d, AMOUNT_MEMORY, answer);
	advise_zero(c, d, AMOUNT_PERCENT, answer);
	if (amount_value(&c->amounts, AMOUNT_MEMORY) > 0 && amount_set(&c->amounts, AMOUNT_PERCENT))
		answer_warn(answer, "container %.63s: %s has no effect beside %s", c->name,
			    amount_name(d, AMOUNT_PERCENT), amount_name(d, AMOUNT_MEMORY));
	cJSON_ArrayForEach(env, review_list(c->node, "env"))
	{
		const char *name = review_text(env, "name");

		if (name != NULL && strcmp(name, HAMI_ENV_DISABLE_CONTROL) == 0)
			answer_warn(answer,
				    "container %.63s: " HAMI_ENV_DISABLE_CONTROL
				    " is not obeyed unless the node's agent allows it",
				    c->name);
	}
}

static void advise_container(const struct pod_container *c, const struct device_config *d,
			     const struct webhook_largest *largest, struct answer *answer)
{
	if (c->gpu) {
		advise_count(c, d, largest, answer);
		advise_gpu_container(c, d, answer);
		return;
	}
	for (enum amount_kind k = AMOUNT_COUNT + 1; k < AMOUNT_KINDS; k++)
		if (amount_set(&c->amounts, k))
			answer_warn(answer, "container %.63s: %s has no effect: it asks for no %s", c->name,
				    amount_name(d, k), amount_name(d, AMOUNT_COUNT));
}

static void advise_pod_level(const struct cJSON *spec, const struct device_config *d, struct answer *answer)
{
	const struct cJSON *limits = review_member(review_member(spec, "resources"), "limits");

	for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++)
		if (*amount_name(d, k) != '\0' && review_member(limits, amount_name(d, k)) != NULL)
			answer_warn(answer, "spec.resources.limits: %s has no effect: cards are given to containers",
				    amount_name(d, k));
}

static void advise(const struct webhook_rules *rules, const struct cJSON *object, const struct pod_containers *p,
		   struct answer *answer)
{
	const struct webhook_largest largest = largest_of(rules);

	for (size_t i = 0; i < p->count; i++)
		advise_container(&p->items[i], rules->device, &largest, answer);
	advise_pod_level(review_member(object, "spec"), rules->device, answer);
	annotations_advise(rules, review_member(review_member(object, "metadata"), "annotations"), p->gpu, answer);
}

/* --- patch ------------------------------------------------------------------------------------------------------- */
static void set_text(struct str *patch, const char *key, const char *text)
{
	hm_auto_str value = { 0 };

	json_add_text(&value, text);
	patch_set(patch, "/spec", key, str_text(&value));
	if (str_failed(&value))
		patch->failed = true;
}

static void patch_pod(const struct webhook_rules *rules, const struct cJSON *spec, const char *scheduler,
		      const struct pod_containers *p, struct str *patch)
{
	const char *runtime = rules->device->runtime_class;

	containers_patch(p, rules->device, patch);
	if (!p->gpu)
		return;
	if (runtime != NULL && *runtime != '\0' && review_member(spec, "runtimeClassName") == NULL)
		set_text(patch, "runtimeClassName", runtime);
	if (*ours(rules) != '\0' && strcmp(scheduler, ours(rules)) != 0)
		set_text(patch, "schedulerName", ours(rules));
}

/* After the scheduler is known to be ours. */
static int admit_ours(const struct webhook_rules *rules, const struct review *r, const struct cJSON *spec,
		      const struct pod_containers *p, struct answer *answer, struct hm_err *e)
{
	hm_auto_pod_ask asks = { 0 };
	const char *node = review_text(spec, "nodeName");

	if (!check_amounts(rules, p, answer) || !check_privileged(p, answer))
		return 0;
	if (p->gpu && *ours(rules) != '\0' && node != NULL && *node != '\0') {
		(void)answer_forbid(answer, "pod has node assigned");
		return 0;
	}
	if (!p->gpu)
		return 0;
	if (containers_ask(p, rules->device, &asks, e) < 0)
		return -e->code;
	(void)check_quota(rules, r, &asks, answer);
	return 0;
}

int pod_admit(const struct webhook_rules *rules, const struct review *r, struct answer *answer, struct hm_err *e)
{
	const struct cJSON *spec = review_member(r->object, "spec");
	const char *scheduler = review_text(spec, "schedulerName");
	hm_auto_pod_containers containers = { 0 };

	if (containers_read(spec, rules->device, &containers, answer, e) < 0)
		return -e->code;
	if (!answer->allowed)
		return 0;
	if (cJSON_GetArraySize(review_list(spec, "containers")) == 0) {
		(void)answer_forbid(answer, "pod has no containers");
		return 0;
	}
	if (!annotations_guard(rules, r, answer) || !check_ephemeral(rules, spec, answer))
		return 0;
	containers_derive(&containers, rules->device);
	scheduler = scheduler == NULL ? "" : scheduler;
	if (is_another_schedulers(rules, scheduler)) {
		leave_to_another(&containers, scheduler, answer);
		return 0;
	}
	if (admit_ours(rules, r, spec, &containers, answer, e) < 0)
		return -e->code;
	if (!answer->allowed)
		return 0;
	advise(rules, r->object, &containers, answer);
	patch_pod(rules, spec, scheduler, &containers, &answer->patch);
	return 0;
}

void pod_change(const struct webhook_rules *rules, const struct review *r, struct answer *answer)
{
	if (annotations_guard(rules, r, answer) && strcmp(r->subresource, "ephemeralcontainers") == 0)
		(void)check_ephemeral(rules, review_member(r->object, "spec"), answer);
}
