/* HAMi's lock on a node (hami/node_lock.h), taken before a pod is bound there and given back where that fails. Only for
 * nodes whose agent finds "the pod being bound" by it; an agent that binds late needs none.
 *
 * TAKE
 *  1. The value is looked at: first as the watch told it; where that lets nobody in, once as the API server has it now.
 *  2. Free is: no value; one that is no lock, or so long in the future or the past that it has expired; a time alone
 *     that has; one of our own pod. Where another pod is named, the API server is asked for it: a lock of a pod that is
 *     gone, has ended, or is bound elsewhere is free, too. Else it is contended.
 *  3. One patch writes our value, under the version that was looked at. A conflict: from 1, with what the API server
 *     has now; LOCK_TRIES in all.
 * GIVE BACK: read, and removed under that version if it is still the value that was written, for a lock of the same pod
 * may be the next leader's; again after a conflict. Where the patch that took it was not answered and the node still
 * has the version that it was sent under, it may be done yet: our value is written under that version, too, for one of
 * the two is refused then, and removed. */
#ifndef HM_SCHED_BIND_LOCK_TAKE_H
#define HM_SCHED_BIND_LOCK_TAKE_H

#include <stdint.h>

#include "base/str.h"
#include "core/err.h"
#include "kube/client.h"
#include "sched/view/view.h"

enum { LOCK_TRIES = 5 };

enum lock_says { LOCK_FREE, LOCK_ASK_HOLDER, LOCK_HELD };
/* What a value says to the pod name_space/name. Reads no clock. */
enum lock_says lock_says(const char *value, const char *name_space, const char *name, int64_t now_s,
			 uint64_t timeout_ms);

struct lock_request {
	struct kube_client *client;
	const char *node, *name_space, *pod; /* copied */
	const char *value;                   /* what is written, or was; copied. Begins with the time */
	const struct view_node *seen;        /* NULL: not known; not for giving back */
	uint64_t timeout_ms;
	/* Borrowed, of the same job for taking and giving back: "", or the version of a patch that was not answered. */
	struct str *doubt;
	/* From the loop, once. Code 0: taken, or given back (there was nothing of ours). HM_EEXIST: contended, and
	 * nothing was written; another: it may have been. */
	void (*done)(void *arg, const struct hm_err *e);
	void *arg;
};

struct lock_take;

/* On failure no done comes. *out can be cancelled until done. */
int lock_take_begin(const struct lock_request *r, struct lock_take **out, struct hm_err *e) HM_MUST_USE;
int lock_give_back(const struct lock_request *r, struct lock_take **out, struct hm_err *e) HM_MUST_USE;
void lock_take_cancel(struct lock_take *l); /* what was sent may be done or not. NULL does nothing */

#endif
