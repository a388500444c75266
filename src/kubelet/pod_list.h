/* ListPodResourcesResponse, bytes to structs, without a socket. What comes from the peer is checked here, once. */
#ifndef HM_KUBELET_POD_LIST_H
#define HM_KUBELET_POD_LIST_H

#include "core/cleanup.h"
#include "core/err.h"
#include "kubelet/pod_resources.h"

struct pod_list {
	void *message;                              /* what the texts point into */
	struct pod_resources_container *containers; /* as pod_resources_list tells them */
	size_t count, cap;
};

/* A container without devices of the resource is an entry without ids, where its names are acceptable. `resource` NULL:
 * each resource of a container is an entry, and those whose names or ids are not acceptable, which may
 * be another plugin's, are left out instead of refused. Fills *out, which is empty; freed with pod_list_fini on failure
 * too. */
int pod_list_read(const void *bytes, size_t n, const char *resource, struct pod_list *out,
		  struct hm_err *e) HM_MUST_USE;
void pod_list_fini(struct pod_list *l);

static inline void pod_list_auto_fini(void *l)
{
	pod_list_fini(l);
}
#define pod_list_auto __attribute__((cleanup(pod_list_auto_fini)))

#endif
