/* Whose devices these are by the kubelet's pod-resources list: the second source, for when its checkpoint cannot be
 * read. The list has no init containers: the pod is certain, the container is not. */
#ifndef HM_AGENT_CLUSTER_POD_LOOKUP_H
#define HM_AGENT_CLUSTER_POD_LOOKUP_H

#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

enum { POD_LOOKUP_FRESH_MS = 1000 }; /* a list that old still counts: the pod is on it before PreStart comes */

struct pod_lookup;

/* The socket's path is borrowed, the resource's name copied. Nothing is asked before the first question. */
int pod_lookup_new(struct loop *l, const char *socket, const char *resource, struct pod_lookup **out,
		   struct hm_err *e) HM_MUST_USE;
void pod_lookup_free(struct pod_lookup *p);
HM_DEFINE_AUTO(pod_lookup, pod_lookup_free);

struct pod_lookup_found {
	char name_space[256], pod[256], container[256];
};

/* The one container that holds exactly these ids. Never waits: -HM_EAGAIN while the kubelet is being asked, where it
 * lists nobody with them, several, or does not answer; the message says which. */
int pod_lookup_find(struct pod_lookup *p, const char *const *ids, size_t count, struct pod_lookup_found *out,
		    struct hm_err *e) HM_MUST_USE;

#endif
