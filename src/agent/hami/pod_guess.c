#include "agent/hami/pod_guess.h"

#include <string.h>

#include "agent/claims/prestart.h"
#include "contract/hami.h"
#include "hami/devices_text.h"

enum rank { BY_LOCK, JUST_ANSWERED, FRESH, SAME_IDS, OTHER_IDS, LEFT_OVER, KEPT, NO_CANDIDATE };

struct candidate {
	enum rank rank;
	const struct pod_view *pod;
	const struct pod_container *container;
	uint64_t number;
};

/* The kubelet's entry of this container; NULL: none. */
static const struct checkpoint_entry *entry_of(const struct pod_guess_facts *f, const char *uid, const char *container)
{
	for (size_t i = 0; f->checkpoint != NULL && i < f->checkpoint->count; i++) {
		const struct checkpoint_entry *entry = &f->checkpoint->entries[i];

		if (strcmp(entry->pod_uid, uid) == 0 && strcmp(entry->container, container) == 0 &&
		    strcmp(entry->resource, f->resource) == 0)
			return entry;
	}
	return NULL;
}

/* The newest claim of this container. */
static const struct claim *claim_of(const struct pod_guess_facts *f, const char *uid, const char *container)
{
	const struct claim *found = NULL;

	for (size_t i = 0; i < claims_count(f->claims); i++) {
		const struct claim *c = claims_at(f->claims, i);

		if (c->state != CLAIM_ENDED && strcmp(c->pod_uid, uid) == 0 && strcmp(c->container, container) == 0 &&
		    strcmp(c->resource, f->resource) == 0 && (found == NULL || c->number > found->number))
			found = c;
	}
	return found;
}

static bool is_of_this_call(const struct pod_guess_facts *f, const struct pod_view *v, const struct pod_container *c)
{
	for (size_t i = 0; i < f->call_count; i++) {
		const struct claim *claim = claims_find(f->claims, f->call[i]);

		if (claim != NULL && strcmp(claim->pod_uid, v->uid) == 0 && strcmp(claim->container, c->name) == 0)
			return true;
	}
	return false;
}

static bool is_answered(const struct pod_guess_facts *f, const struct pod_view *v, const struct pod_container *c)
{
	if (is_of_this_call(f, v, c))
		return true;
	return f->checkpoint != NULL ? entry_of(f, v->uid, c->name) != NULL : claim_of(f, v->uid, c->name) != NULL;
}

static const struct pod_container *next_container(const struct pod_guess_facts *f, const struct pod_view *v)
{
	for (size_t i = 0; i < v->container_count; i++)
		if (v->containers[i].gpus > 0 && !is_answered(f, v, &v->containers[i]))
			return &v->containers[i];
	return NULL;
}

/* The container that was answered with just these ids, as checkpoint and claim agree. */
static const struct pod_container *answered_with(const struct pod_guess_facts *f, const struct pod_view *v,
						 const char *const *ids, size_t count)
{
	for (size_t i = 0; !v->deleting && i < v->container_count; i++) {
		const struct claim *c = claim_of(f, v->uid, v->containers[i].name);

		if (c != NULL && claim_has_set(c, ids, count))
			return &v->containers[i];
	}
	return NULL;
}

static bool has_phase(const struct pod_view *v, const char *phase)
{
	return strcmp(pod_view_text(v, POD_BIND_PHASE), phase) == 0;
}

static bool is_placed_here(const struct pod_guess_facts *f, const struct pod_view *v)
{
	return !v->terminal && pod_view_is_bound_to(v, f->node) && strcmp(pod_view_text(v, POD_NODE), f->node) == 0 &&
	       v->annotations[POD_BIND_TIME] != NULL &&
	       (has_phase(v, HAMI_PHASE_ALLOCATING) || has_phase(v, HAMI_PHASE_SUCCESS));
}

static bool has_more_to_allocate(const struct pod_view *v)
{
	hm_auto_pod_devices devices = { 0 };
	struct hm_err ignored;

	return devices_text_parse(v->annotations[POD_TO_ALLOCATE], &devices, &ignored) == 0 &&
	       pod_devices_filled(&devices) > 0;
}

static bool is_locked(const struct pod_guess_facts *f, const struct pod_view *v)
{
	return f->lock != NULL && strcmp(f->lock->pod_namespace, v->name_space) == 0 &&
	       strcmp(f->lock->pod_name, v->name) == 0;
}

static enum rank rank_of(const struct pod_guess_facts *f, const struct pod_view *v, const struct claim *claim,
			 const char *const *ids, size_t count)
{
	if (entry_of(f, v->uid, claim != NULL ? claim->container : "") != NULL)
		return KEPT;
	if (claim != NULL && claim_has_set(claim, ids, count))
		return SAME_IDS;
	if (claim != NULL)
		return OTHER_IDS;
	if (has_phase(v, HAMI_PHASE_SUCCESS))
		return has_more_to_allocate(v) ? LEFT_OVER : NO_CANDIDATE;
	if (is_locked(f, v))
		return BY_LOCK;
	return strcmp(f->last_uid, v->uid) == 0 ? JUST_ANSWERED : FRESH;
}

/* A number that the kubelet keeps for another container is not given again. */
static uint64_t number_of(const struct pod_guess_facts *f, const struct claim *claim)
{
	uint64_t number;
	bool classic;

	if (claim == NULL || claim->cdi[0] != '\0')
		return 0;
	for (size_t i = 0; f->checkpoint != NULL && i < f->checkpoint->count; i++) {
		const struct checkpoint_entry *entry = &f->checkpoint->entries[i];

		if (prestart_entry_number(entry, f->alloc_dir, &number, &classic) && number == claim->number &&
		    entry != entry_of(f, claim->pod_uid, claim->container))
			return 0;
	}
	return claim->number;
}

static struct candidate look_at(const struct pod_guess_facts *f, const struct pod_view *v, const char *const *ids,
				size_t count)
{
	struct candidate c = { NO_CANDIDATE, v, NULL, 0 };
	const struct claim *claim;

	if (v->trouble != NULL || !is_placed_here(f, v))
		return c;
	c.container = next_container(f, v);
	if (c.container == NULL)
		c.container = answered_with(f, v, ids, count);
	if (c.container == NULL || c.container->gpus != count)
		return c;
	claim = claim_of(f, v->uid, c.container->name);
	c.rank = rank_of(f, v, claim, ids, count);
	c.number = number_of(f, claim);
	return c;
}

static bool is_better(const struct candidate *a, const struct candidate *b)
{
	return a->rank != b->rank ? a->rank < b->rank : a->pod->order < b->pod->order;
}

/* ---- the pod that the lock names */

static const struct pod_view *locked_pod(const struct pod_guess_facts *f)
{
	for (size_t i = 0; i < f->pod_count; i++)
		if (is_locked(f, f->pods[i]))
			return f->pods[i];
	return NULL;
}

/* Why the pod that the lock names is not the one; 0 where there is nothing to say: the lock may be of a moment ago, and
 * its pod has had all its answers, or has ended. */
static int check_lock(const struct pod_guess_facts *f, size_t count, struct pod_guess *out, struct hm_err *e)
{
	const struct pod_view *v = locked_pod(f);
	const struct pod_container *next;

	if (v == NULL)
		return hm_err_set(e, HM_EAGAIN, "pods \"%.100s\" not found: the node's lock names it",
				  f->lock->pod_name);
	if (v->terminal || !pod_view_is_bound_to(v, f->node) || !has_phase(v, HAMI_PHASE_ALLOCATING))
		return 0;
	next = next_container(f, v);
	if (v->trouble == NULL && (next == NULL || next->gpus == count))
		return 0;
	out->pod = v;
	if (v->trouble != NULL)
		return hm_err_set(e, HM_EINVAL, "pod %s/%s: %s", v->name_space, v->name, v->trouble);
	return hm_err_set(e, HM_EINVAL,
			  "device number not matched: the kubelet asks for %zu, container %s of pod %s/%s for %u",
			  count, next->name, v->name_space, v->name, next->gpus);
}

/* ---- */

static struct candidate find_best(const struct pod_guess_facts *f, const char *const *ids, size_t count,
				  unsigned *rivals)
{
	struct candidate best = { .rank = NO_CANDIDATE };

	*rivals = 0;
	for (size_t i = 0; i < f->pod_count; i++) {
		struct candidate c = look_at(f, f->pods[i], ids, count);

		if (c.rank == NO_CANDIDATE)
			continue;
		*rivals = c.rank < best.rank ? 0 : *rivals + (c.rank == best.rank);
		if (best.rank == NO_CANDIDATE || is_better(&c, &best))
			best = c;
	}
	return best;
}

int pod_guess_find(const struct pod_guess_facts *f, const char *const *ids, size_t count, struct pod_guess *out,
		   struct hm_err *e)
{
	struct candidate best;
	unsigned rivals;
	int r = 0;

	*out = (struct pod_guess) { 0 };
	if (f->lock != NULL)
		r = check_lock(f, count, out, e);
	if (r == -HM_EAGAIN && !f->lock_is_stale)
		return r;
	best = find_best(f, ids, count, &rivals);
	if (best.rank == NO_CANDIDATE && r < 0)
		return r;
	if (best.rank == NO_CANDIDATE)
		return hm_err_set(e, HM_EAGAIN,
				  "no binding pod found on node %s: none that HAMi's scheduler placed here and that "
				  "waits for %zu device%s",
				  f->node, count, count == 1 ? "" : "s");
	*out = (struct pod_guess) { best.pod, best.container, best.number, rivals };
	return 0;
}

bool pod_guess_is_through(const struct pod_guess_facts *f, const struct pod_view *pod)
{
	bool any = false;

	for (size_t i = 0; i < pod->container_count; i++) {
		const struct pod_container *c = &pod->containers[i];

		if (c->gpus > 0 && entry_of(f, pod->uid, c->name) == NULL)
			return false;
		any |= c->gpus > 0;
	}
	return any;
}
