#include "agent/hami/hami_lookup.h"

#include <string.h>

#include "agent/cluster/entry_map.h"
#include "core/fmt.h"

static bool is_same_share(const struct claim *a, const struct claim *b)
{
	return a->card_count == b->card_count && memcmp(a->cards, b->cards, a->card_count * sizeof a->cards[0]) == 0;
}

/* An init container that has not ended and holds as many devices may be the one that starts. */
static int check_init_containers(const struct pod_view *v, const char *container, size_t count, struct hm_err *e)
{
	struct claim listed = { 0 }, other = { 0 };

	if (entry_map_claim(v, container, &listed, e) < 0)
		return 0; /* refused where it is read for good */
	for (size_t i = 0; i < v->container_count; i++) {
		const struct pod_container *c = &v->containers[i];

		if (c->kind == POD_INIT && c->state != POD_TERMINATED && c->gpus == count &&
		    (entry_map_claim(v, c->name, &other, e) < 0 || !is_same_share(&listed, &other)))
			return hm_err_set(e, HM_EAGAIN,
					  "the kubelet's checkpoint cannot be read, and its list of pods does not say "
					  "whether container %s or init container %s of pod %s/%s starts",
					  container, c->name, v->name_space, v->name);
	}
	return 0;
}

int hami_lookup_target(struct pod_lookup *lookup, const struct pods *pods, const char *const *ids, size_t count,
		       struct prestart_target *target, struct hm_err *e)
{
	struct pod_lookup_found found;
	const struct pod_view *v;

	if (lookup == NULL)
		return hm_err_set(e, HM_EAGAIN, "the kubelet's checkpoint does not say which pod this container is of");
	if (pod_lookup_find(lookup, ids, count, &found, e) < 0)
		return -e->code;
	v = pods_find_name(pods, found.name_space, found.pod);
	if (v == NULL)
		return hm_err_set(e, HM_EAGAIN, "the API server has not told of pod %.100s/%.100s", found.name_space,
				  found.pod);
	if (v->trouble == NULL && v->annotations[POD_ALLOCATED] != NULL &&
	    check_init_containers(v, found.container, count, e) < 0)
		return -e->code;
	hm_fmt(target->pod_uid, sizeof target->pod_uid, "%s", v->uid);
	hm_fmt(target->container, sizeof target->container, "%s", found.container);
	return 0;
}
