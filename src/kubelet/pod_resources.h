/* pod-resources v1 List: pods and their containers' devices (no init containers). The second source besides the
 * checkpoint, and where pod names come from. */
#ifndef HM_KUBELET_POD_RESOURCES_H
#define HM_KUBELET_POD_RESOURCES_H

#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

struct pod_resources_container {
	const char *pod_namespace, *pod, *container;
	const char *const *ids; /* of the asked resource; none: the container is there, and holds nothing of it */
	size_t id_count;
};

struct pod_resources_call;

/* List: an entry for each container with its devices of `resource` (NULL: of any, an entry for each resource). done
 * runs once from the loop: e NULL and the list (valid until it returns), or the error. -HM_EAGAIN where the kubelet's
 * rate limit refused. The call may be freed inside. */
int pod_resources_list(struct loop *l, const char *socket_path, const char *resource,
		       void (*done)(void *arg, const struct pod_resources_container *containers, size_t count,
				    const struct hm_err *e),
		       void *arg, struct pod_resources_call **out, struct hm_err *e) HM_MUST_USE;
void pod_resources_free(struct pod_resources_call *c); /* silently, if not done */
HM_DEFINE_AUTO(pod_resources_call, pod_resources_free);

#endif
