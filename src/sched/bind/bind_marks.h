/* The annotations that a Binding carries: what the pod was given, for its node's agent and for every scheduler after
 * us, signed where there is a key. One entry a container, empty ones too, init containers first. Pure but for the keys.
 */
#ifndef HM_SCHED_BIND_BIND_MARKS_H
#define HM_SCHED_BIND_BIND_MARKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/err.h"
#include "hami/signature.h"
#include "kube/patch.h"
#include "model/placement/cluster.h"

enum { BIND_MARKS = 8 };

struct bind_marks {
	char time[24];
	struct str devices, mig, signature;         /* owned */
	struct kube_patch_value values[BIND_MARKS]; /* point into the above, and to the node's name */
	size_t count;
};

/* keys NULL: not signed. The holding is one of the cluster's; its texts are good as long as bind_marks is used.
 * -HM_ENOTFOUND: there is no private key; -HM_ENOMEM. *out is freed with bind_marks_fini, on failure too. */
int bind_marks_make(const struct holding *h, const struct signature_keys *keys, uint64_t wall_ms,
		    struct bind_marks *out, struct hm_err *e) HM_MUST_USE;
void bind_marks_fini(struct bind_marks *m);

#endif
