#include <string.h>

#include "kubelet/pb.h"
#include "kubelet/proto/pod_resources.pb-c.h"
#include "sim/simkubelet/node.h"

/* List as the kubelet answers it: pods that are not over; main containers and sidecars, no other init containers; one
 * entry per device. 100 calls a second, a burst of 10; more are refused. */
enum { BURST = 10, REFILL_MS = 10 };

static void add_container(struct str *pod, const struct container *c)
{
	hm_auto_str one = { 0 };
	V1__ContainerResources name = V1__CONTAINER_RESOURCES__INIT;

	name.name = c->name;
	pb_pack(&one, &name);
	for (size_t k = 0; k < c->grant_count; k++) {
		for (size_t i = 0; i < c->grants[k].ids.count; i++) {
			V1__ContainerDevices d = V1__CONTAINER_DEVICES__INIT;

			d.resource_name = c->grants[k].resource;
			d.device_ids = &c->grants[k].ids.list[i];
			d.n_device_ids = 1;
			pb_pack_field(&one, 2, &d); /* ContainerResources.devices */
		}
	}
	pb_add_field(pod, 3, &one); /* PodResources.containers */
}

static void add_pod(struct str *out, const struct pod *p)
{
	hm_auto_str one = { 0 };
	V1__PodResources name = V1__POD_RESOURCES__INIT;

	name.name = p->name;
	name.namespace_ = p->pod_namespace;
	pb_pack(&one, &name);
	for (size_t i = 0; i < p->container_count; i++) {
		if (!p->containers[i].init || p->containers[i].sidecar)
			add_container(&one, &p->containers[i]);
	}
	pb_add_field(out, 1, &one); /* ListPodResourcesResponse.pod_resources */
}

/* A token bucket. */
static bool refused_by_rate(struct node *n)
{
	uint64_t now = loop_now_ms(n->loop), earned = (now - n->list_at_ms) / REFILL_MS;

	n->list_tokens = n->list_tokens + earned > BURST ? BURST : n->list_tokens + earned;
	n->list_at_ms = earned > 0 ? now : n->list_at_ms;
	if (n->list_tokens == 0)
		return true;
	n->list_tokens--;
	return false;
}

static void on_list(struct rpc_call *call, const uint8_t *msg, size_t size, void *arg)
{
	struct node *n = arg;
	hm_auto_str out = { 0 };

	(void)msg, (void)size;
	if (refused_by_rate(n)) {
		rpc_call_finish(call, RPC_RESOURCE_EXHAUSTED, "rejected by rate limit");
		return;
	}
	LIST_FOR_EACH (&n->pods, it) {
		const struct pod *p = HM_CONTAINER(it, struct pod, link);

		if (!p->deleted && p->started && p->phase != POD_SUCCEEDED && p->phase != POD_FAILED)
			add_pod(&out, p);
	}
	rpc_call_reply(call, (const uint8_t *)str_text(&out), out.n);
}

static const struct rpc_method methods[] = { { "/v1.PodResourcesLister/List", on_list, NULL } };

int podres_listen(struct node *n, struct hm_err *e)
{
	return rpc_server_new(n->loop, "pod-resources/kubelet.sock", methods, HM_COUNT(methods), n, &n->pod_resources,
			      e);
}
