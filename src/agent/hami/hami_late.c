#include "agent/hami/hami_late.h"

#include <stdlib.h>
#include <string.h>

#include "agent/cluster/entry_map.h"
#include "agent/hami/hami_lookup.h"
#include "agent/hami/hami_steer.h"
#include "agent/hami/mig_manager.h"
#include "base/log.h"
#include "contract/hami.h"
#include "contract/names.h"
#include "core/fmt.h"
#include "hami/replica_id.h"
#include "io/loop.h"

struct hami_late {
	struct hami_late_config config;
	struct mig_manager *mig; /* NULL: another operating mode */
	struct hami_late_stats stats;
};

static const struct {
	const char *name;
	bool for_good;
} refusals[HAMI_REFUSALS] = {
	[HAMI_UNKNOWN_POD] = { "unknown-pod", false },        [HAMI_UNKNOWN_CARD] = { "unknown-card", false },
	[HAMI_NOT_PLACED] = { "not-placed", true },           [HAMI_BAD_POD] = { "bad-pod", true },
	[HAMI_BAD_ANNOTATION] = { "bad-annotation", true },   [HAMI_NOT_SIGNED] = { "not-signed", true },
	[HAMI_OTHER_SIGNATURE] = { "other-signature", true },
};

const char *hami_refusal_name(enum hami_refusal why)
{
	return (size_t)why < HAMI_REFUSALS ? refusals[why].name : "unknown";
}

/* `e` holds the reason. */
static int refuse(struct hami_late *h, const struct pod_view *v, enum hami_refusal why, struct hm_err *e)
{
	const struct cluster_pod pod = { v->name_space, v->name, v->uid };

	hm_err_wrap(e, "pod %s/%s", v->name_space, v->name);
	h->stats.refused[why]++;
	if (!refusals[why].for_good) {
		e->code = HM_EAGAIN;
		return -HM_EAGAIN;
	}
	cluster_tell_pod(h->config.cluster, &pod, "Warning", "GPUAllocationRefused", "%s", e->msg);
	pod_finish_failure(h->config.finish, v->uid);
	e->code = HM_EINVAL;
	return -HM_EINVAL;
}

/* ---- whether the annotation is to be believed */

static const char *pinned_signature(const struct hami_late *h, const char *uid)
{
	for (size_t i = 0; i < claims_count(h->config.claims); i++) {
		const struct claim *c = claims_at(h->config.claims, i);

		if (c->signature[0] != '\0' && strcmp(c->pod_uid, uid) == 0)
			return c->signature;
	}
	return NULL;
}

/* Keys may come, go and change at any time. */
static bool is_signature_wanted(const struct hami_late *h)
{
	struct hm_err why;
	int r;

	if (h->config.keys == NULL)
		return false;
	r = signature_keys_refresh(h->config.keys, &why);
	if (r < 0)
		log_warn("the keys of signatures cannot be read again; the ones read before count", KV_ERR(&why));
	else if (r > 0)
		log_info("the keys of signatures have changed", KV_U64("keys", signature_keys_count(h->config.keys)));
	return signature_keys_are_wanted(h->config.keys);
}

static int verify(const struct hami_late *h, const struct pod_view *v, struct hm_err *e)
{
	const struct placement placement = { v->uid, h->config.node, v->annotations[POD_TIME],
					     v->annotations[POD_ALLOCATED], v->annotations[POD_MIG_ALLOCATIONS] };

	return signature_verify(h->config.keys, &placement, pod_view_text(v, POD_SIGNATURE), e);
}

/* 1: accepted, to be pinned; 0: nobody asks for one; or refused. At a restart the claim counts, not the text; for
 * another container the text is looked at each time, since it may have been changed under the pinned signature. */
static int check_signature(struct hami_late *h, const struct pod_view *v, bool restart, struct hm_err *e)
{
	const char *pinned = pinned_signature(h, v->uid);

	if (!is_signature_wanted(h))
		return 0;
	if (pinned != NULL && strcmp(pinned, pod_view_text(v, POD_SIGNATURE)) != 0) {
		hm_err_set(e, HM_EPERM,
			   HAMI_POD_SIGNATURE " is another than the one that this pod was first started "
					      "with");
		return refuse(h, v, HAMI_OTHER_SIGNATURE, e);
	}
	if ((pinned != NULL && restart) || verify(h, v, e) == 0)
		return 1;
	if (!h->config.signature_warn)
		return refuse(h, v, HAMI_NOT_SIGNED, e);
	h->stats.unsigned_ok++;
	log_warn("a placement that is not signed as it should be is taken (--signature=warn)", KV("pod", v->name),
		 KV("namespace", v->name_space), KV_ERR(e));
	return 0;
}

bool hami_late_trusts(const struct hami_late *h, const struct pod_view *v)
{
	const char *pinned = pinned_signature(h, v->uid);
	struct hm_err why;

	if (strcmp(pod_view_text(v, POD_NODE), h->config.node) != 0)
		return false;
	if (!is_signature_wanted(h) || h->config.signature_warn)
		return true;
	return (pinned == NULL || strcmp(pinned, pod_view_text(v, POD_SIGNATURE)) == 0) && verify(h, v, &why) == 0;
}

static int check_pod(struct hami_late *h, const struct pod_view *v, struct hm_err *e)
{
	const char *node = pod_view_text(v, POD_NODE);

	if (v->trouble != NULL) {
		hm_err_set(e, HM_EINVAL, "%s", v->trouble);
		return refuse(h, v, HAMI_BAD_POD, e);
	}
	if (v->annotations[POD_ALLOCATED] == NULL) {
		hm_err_set(e, HM_EINVAL,
			   "it was not placed by HAMi's scheduler (no annotation " HAMI_POD_ALLOCATED
			   "): delete it and set schedulerName");
		return refuse(h, v, HAMI_NOT_PLACED, e);
	}
	if (strcmp(node, h->config.node) != 0 || !pod_view_is_bound_to(v, h->config.node)) {
		hm_err_set(e, HM_EINVAL, "its cards were chosen on node \"%.100s\" (" HAMI_POD_NODE "), this is %s",
			   node, h->config.node);
		return refuse(h, v, HAMI_NOT_PLACED, e);
	}
	return 0;
}

/* ---- the claim */

/* The stricter of what the node's configuration says and what the pod asks for; with compat the pod's, as HAMi has it.
 */
static enum claim_policy policy_of(const struct hami_late *h, const struct pod_container *c)
{
	static const int strictness[] = {
		[CLAIM_POLICY_DISABLE] = 0, [CLAIM_POLICY_DEFAULT] = 1, [CLAIM_POLICY_FORCE] = 2
	};
	enum claim_policy asked;

	if (!claim_policy_of(c->policy, &asked))
		return h->config.policy;
	return h->config.compat || strictness[asked] > strictness[h->config.policy] ? asked : h->config.policy;
}

static int copy_ids(const char *const *ids, size_t count, struct claim *out, struct hm_err *e)
{
	out->devices = calloc(count + 1, sizeof *out->devices);
	if (out->devices == NULL)
		return hm_err_set(e, HM_ENOMEM, "claim of %zu devices", count);
	for (; out->device_count < count; out->device_count++)
		hm_fmt(out->devices[out->device_count], sizeof *out->devices, "%s", ids[out->device_count]);
	return 0;
}

static int check_cards(struct hami_late *h, const struct pod_view *v, const struct claim *c,
		       const struct inventory *cards, struct hm_err *e)
{
	for (size_t i = 0; i < c->card_count; i++) {
		if (inventory_find(cards, c->cards[i].uuid) != NULL)
			continue;
		hm_err_set(e, HM_EAGAIN, "this node does not have the card %s that the scheduler chose",
			   c->cards[i].uuid);
		return refuse(h, v, HAMI_UNKNOWN_CARD, e);
	}
	return 0;
}

/* Whether the ids name the claim's cards, each as often as it stands in the annotation cannot be told from the claim;
 * that they are on the same cards is what pod-resources and DCGM show. */
static bool is_on_cards(const struct claim *c)
{
	bool used[HM_MAX_CARDS] = { false };
	bool all = true;

	for (size_t i = 0; i < c->device_count; i++) {
		char card[HM_UUID_BYTES];
		bool found = false;

		for (size_t k = 0; replica_id_card(c->devices[i], card, sizeof card) && k < c->card_count; k++)
			if (strcmp(c->cards[k].uuid, card) == 0)
				found = used[k] = true;
		all &= found;
	}
	for (size_t k = 0; k < c->card_count; k++)
		all &= used[k];
	return all;
}

static void note_mismatch(struct hami_late *h, const struct claim *c)
{
	if (is_on_cards(c))
		return;
	h->stats.mismatches++;
	log_v(1, "the kubelet's devices are of other cards than the scheduler's; the scheduler's count",
	      KV_U64("number", c->number), KV("pod", c->pod_name), KV("container", c->container),
	      KV("first_id", c->devices[0]), KV("first_card", c->cards[0].uuid));
}

static int fill_mig(struct hami_late *h, const struct pod_view *v, size_t count, struct claim *c, struct hm_err *e)
{
	int r = h->mig != NULL ? mig_manager_fill(h->mig, v, c->container, c->entry, count, c, e) : 0;

	return r == -HM_EINVAL ? refuse(h, v, HAMI_BAD_ANNOTATION, e) : r;
}

/* The instance may have been made anew since (the node was started again); what is not known now stays as it was, as
 * long as the device is there. */
static int refill_mig(struct hami_late *h, const struct pod_view *v, const struct inventory *cards, struct claim *c,
		      struct hm_err *e)
{
	const struct card *card = c->card_count > 0 ? inventory_find(cards, c->cards[0].uuid) : NULL;
	int r;

	if (h->mig == NULL || v == NULL)
		return 0;
	r = mig_manager_fill(h->mig, v, c->container, c->entry, c->device_count, c, e);
	if (r == -HM_EAGAIN && card != NULL && mig_find_device(&card->mig, c->cards[0].mig) != NULL)
		return 0;
	return r;
}

static int make_claim(struct hami_late *h, const struct pod_view *v, const struct prestart_target *target,
		      const char *const *ids, size_t count, const struct inventory *cards, struct claim *out,
		      struct hm_err *e)
{
	const struct pod_container *container = pod_view_container(v, target->container);

	*out = (struct claim) { .number = target->number, .state = CLAIM_ALLOCATED, .created_ms = clock_wall_ms() };
	hm_fmt(out->resource, sizeof out->resource, "%s", h->config.resource);
	hm_fmt(out->cdi, sizeof out->cdi, HM_CDI_KIND "=" HM_CDI_DEVICE_PREFIX "%llu",
	       (unsigned long long)target->number);
	hm_fmt(out->pod_uid, sizeof out->pod_uid, "%s", v->uid);
	hm_fmt(out->pod_namespace, sizeof out->pod_namespace, "%s", v->name_space);
	hm_fmt(out->pod_name, sizeof out->pod_name, "%s", v->name);
	hm_fmt(out->container, sizeof out->container, "%s", target->container);
	if (entry_map_claim(v, target->container, out, e) < 0)
		return refuse(h, v, HAMI_BAD_ANNOTATION, e);
	if (check_cards(h, v, out, cards, e) < 0 || fill_mig(h, v, count, out, e) < 0)
		return -e->code;
	out->priority = strcmp(container->priority, "0") == 0 ? 0 : 1;
	out->policy = policy_of(h, container);
	out->oversubscribe = h->config.oversubscribe;
	out->uncontrolled = h->config.compat && container->disable_control;
	if (copy_ids(ids, count, out, e) < 0)
		return -e->code;
	note_mismatch(h, out);
	return 0;
}

/* Counted and told either way: the pod's owner thinks that it is without limits, or is. */
static void note_disable_control(struct hami_late *h, const struct pod_view *v, const struct claim *c)
{
	const struct cluster_pod pod = { v->name_space, v->name, v->uid };

	h->stats.disable_control++;
	if (c->uncontrolled)
		cluster_tell_pod(h->config.cluster, &pod, "Warning", "GPUControlDisabled",
				 HAMI_ENV_DISABLE_CONTROL
				 " of container %s is obeyed (--compat): its limits are not kept",
				 c->container);
	else
		cluster_tell_pod(h->config.cluster, &pod, "Warning", "GPUControlKept",
				 HAMI_ENV_DISABLE_CONTROL " of container %s is not obeyed: its limits are kept",
				 c->container);
}

/* ---- a start */

static bool is_restart(const struct claim *old, const struct prestart_target *target, const char *const *ids,
		       size_t count)
{
	return old != NULL && old->state == CLAIM_ACTIVE && claim_has_set(old, ids, count) &&
	       (target->pod_uid[0] == '\0' || strcmp(old->pod_uid, target->pod_uid) == 0) &&
	       (target->container[0] == '\0' || strcmp(old->container, target->container) == 0);
}

static int unknown_pod(struct hami_late *h, const struct prestart_target *target, struct hm_err *e)
{
	h->stats.refused[HAMI_UNKNOWN_POD]++;
	if (!pods_synced(h->config.pods))
		return hm_err_set(e, HM_EAGAIN,
				  "the API server has not told this node's pods yet; pod UID %s waits for that",
				  target->pod_uid);
	return hm_err_set(e, HM_EAGAIN, "the API server has not told of a pod with UID %s on node %s", target->pod_uid,
			  h->config.node);
}

static int start_for(struct hami_late *h, const struct prestart_target *target, const char *const *ids, size_t count,
		     const struct claim *old, const struct inventory *cards, struct claim *out, struct hm_err *e)
{
	bool restart = is_restart(old, target, ids, count);
	const struct pod_view *v = pods_find(h->config.pods, restart ? old->pod_uid : target->pod_uid);
	int accepted = 0;

	if (v == NULL && !restart)
		return unknown_pod(h, target, e);
	/* What runs is not to end for an annotation that somebody took away. */
	if (v != NULL && ((!restart && check_pod(h, v, e) < 0) || (accepted = check_signature(h, v, restart, e)) < 0))
		return -e->code;
	if (restart) {
		h->stats.restarts++;
		if (claim_copy(old, out, e) < 0)
			return -e->code;
		if (refill_mig(h, v, cards, out, e) == 0)
			return 0;
		claim_fini(out);
		return -e->code;
	}
	if (make_claim(h, v, target, ids, count, cards, out, e) < 0)
		return -e->code;
	if (old == NULL && pod_view_container(v, target->container)->disable_control)
		note_disable_control(h, v, out);
	if (accepted == 1)
		hm_fmt(out->signature, sizeof out->signature, "%s", pod_view_text(v, POD_SIGNATURE));
	h->stats.starts++;
	return 0;
}

int hami_late_start(struct hami_late *h, const struct prestart_target *target, const char *const *ids, size_t count,
		    const struct claim *old, const struct inventory *cards, struct claim *out, struct hm_err *e)
{
	struct prestart_target who = *target;

	if (who.pod_uid[0] == '\0' && !is_restart(old, target, ids, count) &&
	    hami_lookup_target(h->config.lookup, h->config.pods, ids, count, &who, e) < 0) {
		h->stats.refused[HAMI_UNKNOWN_POD]++;
		return -e->code;
	}
	return start_for(h, &who, ids, count, old, cards, out, e);
}

void hami_late_started(struct hami_late *h, const struct claim *c)
{
	pod_finish_success(h->config.finish, c->pod_uid);
}

int hami_late_prefer(struct hami_late *h, const struct dp_preferred_request *req, const char **out, size_t *count,
		     struct hm_err *e)
{
	hm_auto_pod_devices devices = { 0 };
	const struct checkpoint *checkpoint = NULL;
	struct hm_err why;
	size_t entry = 0;
	bool known;

	(void)e;
	if (checkpoint_cache_get(h->config.checkpoint, &checkpoint, &why) < 0)
		log_v(2, "preferred devices without the kubelet's checkpoint", KV_ERR(&why));
	known = hami_steer_find(h->config.pods, checkpoint, req->size, &devices, &entry);
	h->stats.steered += known;
	h->stats.not_steered += !known;
	*count = hami_steer_pick(known ? &devices : NULL, entry, h->config.claims, req, out);
	return 0;
}

/* ---- life */

int hami_late_new(const struct hami_late_config *config, struct hami_late **out, struct hm_err *e)
{
	struct hami_late *h = calloc(1, sizeof *h);

	if (h == NULL)
		return hm_err_set(e, HM_ENOMEM, "late binding");
	h->config = *config;
	for (size_t i = 0; config->keys != NULL && i < claims_count(config->claims); i++)
		if (claims_at(config->claims, i)->signature[0] != '\0')
			signature_keys_want(config->keys);
	*out = h;
	return 0;
}

void hami_late_free(struct hami_late *h)
{
	free(h);
}

void hami_late_set_mig(struct hami_late *h, struct mig_manager *mig)
{
	h->mig = mig;
}

bool hami_late_is_mig(const struct hami_late *h)
{
	return h->mig != NULL;
}

void hami_late_stats(const struct hami_late *h, struct hami_late_stats *out)
{
	*out = h->stats;
}
