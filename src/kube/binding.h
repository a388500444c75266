/* The one call that binds a pod to a node and, in the same write, gives it annotations: the API server merges those of
 * the Binding into the pod and checks its UID (seen on 1.34.4; labels are not merged). */
#ifndef HM_KUBE_BINDING_H
#define HM_KUBE_BINDING_H

#include <stddef.h>

#include "base/str.h"
#include "core/err.h"
#include "kube/patch.h"

struct kube_binding {
	const char *name_space, *pod, *uid; /* another UID: KUBE_CONFLICT */
	const char *node;
	const struct kube_patch_value *annotations; /* values not NULL: a Binding removes none */
	size_t annotation_count;
};

/* What to POST: the path and the KUBE_JSON body, both cleared first. -HM_EINVAL where a value is not UTF-8, -HM_ENOMEM.
 */
int kube_binding_text(const struct kube_binding *b, struct str *path, struct str *body, struct hm_err *e) HM_MUST_USE;

#endif
