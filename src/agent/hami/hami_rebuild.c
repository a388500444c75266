#include "agent/hami/hami_rebuild.h"

#include <string.h>

#include "base/log.h"
#include "core/fmt.h"

static bool runs(const struct pod_view *v, const char *container)
{
	const struct pod_container *c = pod_view_container(v, container);

	return c != NULL && !v->terminal && c->state != POD_TERMINATED &&
	       (c->state == POD_RUNNING || strcmp(v->phase, "Running") == 0);
}

/* True where one was made. */
static bool rebuild_one(const struct hami_rebuild_config *r, const struct checkpoint_entry *entry,
			const struct inventory *cards)
{
	const struct pod_view *v = pods_find(r->pods, entry->pod_uid);
	struct prestart_target target = { 0 };
	struct claim c;
	struct hm_err e;
	int code;

	if (!prestart_entry_number(entry, r->alloc_dir, &target.number, &target.classic) ||
	    claims_find(r->claims, target.number) != NULL || v == NULL || !runs(v, entry->container))
		return false;
	hm_fmt(target.pod_uid, sizeof target.pod_uid, "%s", entry->pod_uid);
	hm_fmt(target.container, sizeof target.container, "%s", entry->container);
	code = hami_late_start(r->late, &target, (const char *const *)entry->ids, entry->id_count, NULL, cards, &c, &e);
	if (code == 0) {
		c.state = CLAIM_ACTIVE;
		if (target.classic)
			c.cdi[0] = '\0';
		code = claims_put(r->claims, &c, &e);
		claim_fini(&c);
	}
	if (code < 0)
		log_warn("a container runs and its claim cannot be made again", KV("pod", v->name),
			 KV("container", entry->container), KV_ERR(&e));
	return code == 0;
}

int hami_rebuild(const struct hami_rebuild_config *r, const struct inventory *cards, struct hm_err *e)
{
	const struct checkpoint *checkpoint;
	int made = 0, code;

	if (!pods_synced(r->pods))
		return hm_err_set(e, HM_EAGAIN, "this node's pods are not known yet");
	code = checkpoint_cache_get(r->checkpoint, &checkpoint, e);
	if (code < 0)
		return code == -HM_ENOTFOUND ? 0 : hm_err_set(e, HM_EAGAIN, "the kubelet's checkpoint cannot be read");
	for (size_t i = 0; i < checkpoint->count; i++)
		made += rebuild_one(r, &checkpoint->entries[i], cards);
	if (made > 0)
		log_info("claims that were lost are there again", KV_I64("claims", made));
	return made;
}
