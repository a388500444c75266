#include "kubelet/pod_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kubelet/pb.h"
#include "kubelet/proto/pod_resources.pb-c.h"

static size_t count_ids(const char *resource, const V1__ContainerResources *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n_devices; i++) {
		if (strcmp(k->devices[i]->resource_name, resource) == 0)
			n += k->devices[i]->n_device_ids;
	}
	return n;
}

/* The kubelet lists one entry per device (seen on 1.34: two devices of one container in two entries), so the ids of a
 * container are gathered from all of them. */
static int keep_container(struct pod_list *l, const char *resource, const V1__PodResources *pod,
			  const V1__ContainerResources *k, struct hm_err *e)
{
	size_t n = count_ids(resource, k), at = 0;
	hm_auto_heap const char **ids = NULL;

	if (!pb_name_ok(pod->name) || !pb_name_ok(pod->namespace_) || !pb_name_ok(k->name))
		return n == 0 ? 0
			      : hm_err_set(e, HM_EPROTO, "a name is not 1 to %d printable characters",
					   PB_MAX_NAME_BYTES);
	ids = calloc(n + 1, sizeof *ids);
	if (ids == NULL)
		return hm_err_set(e, HM_ENOMEM, "%zu ids", n);
	for (size_t i = 0; i < k->n_devices; i++) {
		const V1__ContainerDevices *d = k->devices[i];

		if (strcmp(d->resource_name, resource) != 0)
			continue;
		if (pb_check_ids("device_ids", d->device_ids, d->n_device_ids, e) < 0)
			return -e->code;
		for (size_t m = 0; m < d->n_device_ids; m++)
			ids[at++] = d->device_ids[m];
	}
	if (!HM_PUSH(l->containers, l->count, l->cap,
		     (struct pod_resources_container) { pod->namespace_, pod->name, k->name, ids, n }))
		return hm_err_set(e, HM_ENOMEM, "%zu containers", l->count);
	ids = NULL; /* the container's now */
	return 0;
}

static bool stood_before(const V1__ContainerResources *k, size_t at)
{
	for (size_t i = 0; i < at; i++)
		if (strcmp(k->devices[i]->resource_name, k->devices[at]->resource_name) == 0)
			return true;
	return false;
}

static int keep_all(struct pod_list *l, const V1__PodResources *pod, const V1__ContainerResources *k, struct hm_err *e)
{
	if (k->n_devices == 0)
		return keep_container(l, "", pod, k, e);
	for (size_t i = 0; i < k->n_devices; i++)
		if (!stood_before(k, i) && keep_container(l, k->devices[i]->resource_name, pod, k, e) == -HM_ENOMEM)
			return -HM_ENOMEM;
	return 0;
}

int pod_list_read(const void *bytes, size_t n, const char *resource, struct pod_list *out, struct hm_err *e)
{
	V1__ListPodResourcesResponse *answer;

	out->message = pb_unpack(&v1__list_pod_resources_response__descriptor, "ListPodResourcesResponse", bytes, n, e);
	if (out->message == NULL)
		return -e->code;
	answer = out->message;
	for (size_t i = 0; i < answer->n_pod_resources; i++) {
		const V1__PodResources *pod = answer->pod_resources[i];

		for (size_t k = 0; k < pod->n_containers; k++) {
			if ((resource != NULL ? keep_container(out, resource, pod, pod->containers[k], e)
					      : keep_all(out, pod, pod->containers[k], e)) < 0)
				return hm_err_wrap(e, "pod %zu", i);
		}
	}
	return 0;
}

void pod_list_fini(struct pod_list *l)
{
	for (size_t i = 0; i < l->count; i++)
		free((void *)(uintptr_t)l->containers[i].ids);
	free(l->containers);
	pb_free(l->message);
	*l = (struct pod_list) { 0 };
}
