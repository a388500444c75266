/* Classic binding under HAMi's scheduler: whose Allocate is this? The kubelet says which ids, and nothing of the pod.
 * It admits one pod after the other, asks for their containers in the spec's order, init containers first, and writes
 * each answer into its checkpoint before it asks for the next (one call for several containers is taken in their
 * order): so of each pod only its first container without an entry there can be meant, and only if it asks for as many
 * devices. Among pods for which that holds, best first:
 *
 *  1. the one that the node's lock names (HAMi's scheduler binds one pod at a time and holds the lock meanwhile);
 *  2. the one that was answered a moment ago, and has more containers;
 *  3. allocating, and this container was never answered;
 *  4. answered before, by our claims, with the same ids, then with others: an answer that was lost, or a kubelet that
 *     lost its checkpoint. It gets its own again;
 *  5. phase success, never answered by us, but its entries still stand in the to-allocate text;
 *  6. answered with just these ids, and the kubelet has the answer;
 *
 * and of several the one bound first. That is a guess only where two pods of one size are bound at once without a lock,
 * and it is found out at PreStart, when the checkpoint says who got which answer (agent/hami/hami_classic.h). Pure. */
#ifndef HM_AGENT_HAMI_POD_GUESS_H
#define HM_AGENT_HAMI_POD_GUESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/claims/claims.h"
#include "agent/cluster/pod_view.h"
#include "core/err.h"
#include "hami/node_lock.h"
#include "kubelet/checkpoint.h"

struct pod_guess_facts {
	const struct pod_view *const *pods; /* of this node, in any order */
	size_t pod_count;
	const char *node, *resource, *alloc_dir;
	const struct node_lock *lock;        /* NULL: there is none, or it names nobody */
	bool lock_is_stale;                  /* a pod that the lock names and we do not know has been waited for */
	const struct checkpoint *checkpoint; /* of the resource; NULL: not known, and our claims stand for it */
	const struct claims *claims;
	const uint64_t *call; /* numbers of claims that this call has been answered with: no checkpoint has them yet */
	size_t call_count;
	const char *last_uid; /* answered a moment ago; "": none */
};

struct pod_guess {
	const struct pod_view *pod; /* NULL: none; set with an error too where that is about this pod */
	const struct pod_container *container;
	uint64_t number; /* of the claim that it has already and gets again; 0: none */
	unsigned rivals; /* other pods for which nothing speaks less than for this one but the order of binding */
};

/* -HM_EAGAIN: no such pod is known yet. -HM_EINVAL: there is none, and the one that the lock names asks for another
 * number of devices, or cannot be read. */
int pod_guess_find(const struct pod_guess_facts *f, const char *const *ids, size_t count, struct pod_guess *out,
		   struct hm_err *e) HM_MUST_USE;

/* True where the kubelet has an answer for every container of the pod that asks for devices. */
bool pod_guess_is_through(const struct pod_guess_facts *f, const struct pod_view *pod);

#endif
