#include "agent/hami/hami_pods.h"

#include <stdlib.h>
#include <string.h>

#include "agent/claims/checkpoint_cache.h"
#include "agent/hami/hami_rebuild.h"
#include "base/log.h"

struct hami_pods {
	struct claims *claims;
	const char *alloc_dir;
	const struct inventory *cards; /* NULL: not known yet */
	struct pods_listener listener;
	bool rebuilt; /* lost claims were looked for */
	struct pods *pods;
	struct checkpoint_cache *checkpoint;
	struct pod_finish *finish;
	struct signature_keys *keys; /* NULL: not configured, or off */
	struct pod_lookup *lookup;
	struct hami_late *late;
	struct hami_classic *classic;
	struct lock_release *lock;
};

static bool names_keys(const struct agent_options *o)
{
	return o->signature_keys != NULL && o->signature_keys[0] != '\0';
}

static int open_keys(const struct agent_options *o, struct signature_keys **out, struct hm_err *e)
{
	if (!names_keys(o) || strcmp(o->signature, "off") == 0)
		return 0;
	return signature_keys_open(o->signature_keys, out, e) < 0 ? hm_err_wrap(e, "--signature-keys") : 0;
}

/* Behind hami_late_new, which may want keys for what earlier ones signed. */
static void say_keys(const struct agent_options *o, const struct signature_keys *keys)
{
	static const char unsigned_ones[] =
		"placements are taken unsigned: whoever may write a pod's annotations says what it gets";

	if (keys == NULL)
		log_info(unsigned_ones, KV("why", names_keys(o) ? "--signature=off" : "no --signature-keys"));
	else if (!signature_keys_are_wanted(keys))
		log_warn(unsigned_ones, KV("why", "no key in the folder yet"), KV("folder", o->signature_keys));
	else if (signature_keys_count(keys) == 0)
		log_warn("placements are to be signed, and there is no key to check them with",
			 KV("folder", o->signature_keys), KV("mode", o->signature));
	else
		log_info("placements are to be signed", KV_U64("keys", signature_keys_count(keys)),
			 KV("mode", o->signature));
}

static int make_late(struct hami_pods *p, const struct hami_pods_config *c, struct hm_err *e)
{
	const struct hami_options *hami = &c->options->hami;
	const struct hami_late_config late = {
		.node = cluster_node(c->cluster),
		.resource = c->options->resource_name,
		.pods = p->pods,
		.claims = c->claims,
		.checkpoint = p->checkpoint,
		.finish = p->finish,
		.lookup = p->lookup,
		.cluster = c->cluster,
		.keys = p->keys,
		.signature_warn = strcmp(c->options->signature, "warn") == 0,
		.oversubscribe = hami->device_memory_scaling > 1,
		.compat = c->options->compat,
		.policy = hami->disable_core_limit ? CLAIM_POLICY_DISABLE : CLAIM_POLICY_DEFAULT,
	};

	return hami_late_new(&late, &p->late, e);
}

static int make_classic(struct hami_pods *p, const struct hami_pods_config *c, struct hm_err *e)
{
	const struct hami_classic_config classic = {
		.loop = kube_client_loop(cluster_client(c->cluster)),
		.node = cluster_node(c->cluster),
		.resource = c->options->resource_name,
		.alloc_dir = c->paths->alloc.s,
		.pods = p->pods,
		.claims = c->claims,
		.checkpoint = p->checkpoint,
		.node_object = c->node,
		.late = p->late,
		.finish = p->finish,
		.cluster = c->cluster,
	};

	return hami_classic_new(&classic, &p->classic, e);
}

static int make(struct hami_pods *p, const struct hami_pods_config *c, struct hm_err *e)
{
	struct kube_client *client = cluster_client(c->cluster);
	const char *resource = c->options->resource_name, *checkpoint = c->paths->checkpoint.s;

	if (open_keys(c->options, &p->keys, e) < 0 ||
	    pods_new(client, cluster_node(c->cluster), resource, &p->pods, e) < 0 ||
	    checkpoint_cache_new(checkpoint, resource, &p->checkpoint, e) < 0)
		return -e->code;
	const struct pod_finish_config finish = { client, p->pods, c->claims, resource };
	const struct lock_release_config lock = { c->cluster, c->node, p->pods, p->checkpoint, checkpoint };

	if (pod_finish_new(&finish, &p->finish, e) < 0 || lock_release_new(&lock, &p->lock, e) < 0 ||
	    pod_lookup_new(kube_client_loop(client), c->paths->pod_resources.s, resource, &p->lookup, e) < 0)
		return -e->code;
	if (make_late(p, c, e) < 0)
		return -e->code;
	say_keys(c->options, p->keys);
	return make_classic(p, c, e);
}

static void rebuild(struct hami_pods *p)
{
	const struct hami_rebuild_config config = { p->alloc_dir, p->late, p->claims, p->pods, p->checkpoint };
	struct hm_err e;

	if (!p->rebuilt && p->cards != NULL)
		p->rebuilt = hami_rebuild(&config, p->cards, &e) >= 0;
}

static void on_pod(void *arg, const struct pod_view *v)
{
	(void)v;
	rebuild(arg);
}

static void on_synced(void *arg)
{
	rebuild(arg);
}

void hami_pods_take(struct hami_pods *p, const struct inventory *cards)
{
	p->cards = cards;
	rebuild(p);
}

int hami_pods_new(const struct hami_pods_config *config, struct hami_pods **out, struct hm_err *e)
{
	hm_auto(hami_pods) *p = calloc(1, sizeof *p);

	if (p == NULL)
		return hm_err_set(e, HM_ENOMEM, "pods of this node");
	p->claims = config->claims;
	p->alloc_dir = config->paths->alloc.s;
	if (make(p, config, e) < 0)
		return -e->code;
	p->listener = (struct pods_listener) { .changed = on_pod, .gone = on_pod, .synced = on_synced, .arg = p };
	pods_listen(p->pods, &p->listener);
	*out = HM_STEAL(p);
	return 0;
}

void hami_pods_free(struct hami_pods *p)
{
	if (p == NULL)
		return;
	link_remove(&p->listener.link);
	hami_classic_free(p->classic);
	hami_late_free(p->late);
	pod_lookup_free(p->lookup);
	lock_release_free(p->lock);
	pod_finish_free(p->finish);
	checkpoint_cache_free(p->checkpoint);
	pods_free(p->pods);
	signature_keys_free(p->keys);
	free(p);
}

struct hami_late *hami_pods_late(const struct hami_pods *p)
{
	return p->late;
}

struct hami_classic *hami_pods_classic(const struct hami_pods *p)
{
	return p->classic;
}

struct pods *hami_pods_watched(const struct hami_pods *p)
{
	return p->pods;
}

void hami_pods_stats(const struct hami_pods *p, struct hami_pods_stats *out)
{
	pods_stats(p->pods, &out->pods);
	hami_late_stats(p->late, &out->late);
	hami_classic_stats(p->classic, &out->classic);
	pod_finish_stats(p->finish, &out->finish);
	lock_release_stats(p->lock, &out->lock);
	out->signature_keys = p->keys != NULL ? signature_keys_count(p->keys) : 0;
}
