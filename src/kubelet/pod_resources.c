#include "kubelet/pod_resources.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/check.h"
#include "kubelet/pb.h"
#include "kubelet/proto/pod_resources.pb-c.h"
#include "rpc/client.h"

enum { MAGIC = 0x504f4452, DEADLINE_MS = 5000 };

struct pod_resources_call {
	unsigned magic;
	char *resource;
	void (*done)(void *arg, const struct pod_resources_container *containers, size_t count, const struct hm_err *e);
	void *arg;
	struct rpc_client *client;
	struct loop_timer *soon; /* tells `failure` */
	struct hm_err failure;
	V1__ListPodResourcesResponse *answer;
	struct pod_resources_container *containers; /* borrow from answer */
	size_t count, cap;
};

static void tell(struct pod_resources_call *c, const struct hm_err *e)
{
	void (*done)(void *, const struct pod_resources_container *, size_t, const struct hm_err *) = c->done;

	c->done = NULL;
	if (done == NULL)
		return;
	if (e != NULL)
		done(c->arg, NULL, 0, e); /* may free c */
	else
		done(c->arg, c->containers, c->count, NULL);
}

static void on_soon(void *arg)
{
	struct pod_resources_call *c = arg;
	struct hm_err e;

	CHECK_OBJ(c, MAGIC);
	e = c->failure;
	tell(c, &e);
}

static size_t count_ids(const struct pod_resources_call *c, const V1__ContainerResources *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->n_devices; i++) {
		if (strcmp(k->devices[i]->resource_name, c->resource) == 0)
			n += k->devices[i]->n_device_ids;
	}
	return n;
}

/* The kubelet lists one entry per device (seen on 1.34: two devices of one container in two entries), so the ids of a
 * container are gathered from all of them. */
static int keep_container(struct pod_resources_call *c, const V1__PodResources *pod, const V1__ContainerResources *k,
			  struct hm_err *e)
{
	size_t n = count_ids(c, k), at = 0;
	hm_auto_heap const char **ids = NULL;

	if (n == 0)
		return 0;
	if (!pb_name_ok(pod->name) || !pb_name_ok(pod->namespace_) || !pb_name_ok(k->name))
		return hm_err_set(e, HM_EPROTO, "a name is not 1 to %d printable characters", PB_MAX_NAME_BYTES);
	ids = calloc(n, sizeof *ids);
	if (ids == NULL)
		return hm_err_set(e, HM_ENOMEM, "%zu ids", n);
	for (size_t i = 0; i < k->n_devices; i++) {
		const V1__ContainerDevices *d = k->devices[i];

		if (strcmp(d->resource_name, c->resource) != 0)
			continue;
		if (pb_check_ids("device_ids", d->device_ids, d->n_device_ids, e) < 0)
			return -e->code;
		for (size_t m = 0; m < d->n_device_ids; m++)
			ids[at++] = d->device_ids[m];
	}
	if (!HM_PUSH(c->containers, c->count, c->cap,
		     (struct pod_resources_container) { pod->namespace_, pod->name, k->name, ids, n }))
		return hm_err_set(e, HM_ENOMEM, "%zu containers", c->count);
	ids = NULL; /* the container's now */
	return 0;
}

static int read_answer(struct pod_resources_call *c, const uint8_t *msg, size_t n, struct hm_err *e)
{
	c->answer = pb_unpack(&v1__list_pod_resources_response__descriptor, "ListPodResourcesResponse", msg, n, e);
	if (c->answer == NULL)
		return -e->code;
	for (size_t i = 0; i < c->answer->n_pod_resources; i++) {
		const V1__PodResources *pod = c->answer->pod_resources[i];

		for (size_t k = 0; k < pod->n_containers; k++) {
			if (keep_container(c, pod, pod->containers[k], e) < 0)
				return hm_err_wrap(e, "pod %zu", i);
		}
	}
	return 0;
}

static void on_message(void *arg, const uint8_t *msg, size_t n)
{
	struct pod_resources_call *c = arg;

	CHECK_OBJ(c, MAGIC);
	if (c->answer != NULL || c->failure.code != 0)
		return; /* unary: a second message is the peer's fault, and not read */
	if (read_answer(c, msg, n, &c->failure) < 0)
		hm_err_wrap(&c->failure, "pod-resources");
}

static void on_done(void *arg, int status, const char *text)
{
	struct pod_resources_call *c = arg;
	struct hm_err e = c->failure;

	CHECK_OBJ(c, MAGIC);
	if (status == RPC_OK && e.code == 0 && c->answer == NULL)
		hm_err_set(&e, HM_EPROTO, "pod-resources: answered without a message");
	else if (status == RPC_UNAVAILABLE || status == RPC_RESOURCE_EXHAUSTED) /* restarting; the 100 calls/s limit */
		hm_err_set(&e, HM_EAGAIN, "pod-resources: %s: %s", rpc_status_name(status), text);
	else if (status != RPC_OK)
		hm_err_set(&e, status == RPC_DEADLINE_EXCEEDED ? HM_ETIMEDOUT : HM_EIO, "pod-resources: %s: %s",
			   rpc_status_name(status), text);
	tell(c, e.code != 0 ? &e : NULL);
}

static int start(struct pod_resources_call *c, struct loop *l, const char *socket_path, struct hm_err *e)
{
	struct rpc_reply reply = { .message = on_message, .done = on_done, .arg = c };
	static const uint8_t nothing[1]; /* ListPodResourcesRequest has no fields */

	if (rpc_client_new(l, socket_path, &c->client, e) < 0)
		return -e->code;
	return rpc_client_call(c->client, "/v1.PodResourcesLister/List", nothing, 0, DEADLINE_MS, &reply, NULL, e);
}

int pod_resources_list(struct loop *l, const char *socket_path, const char *resource,
		       void (*done)(void *arg, const struct pod_resources_container *containers, size_t count,
				    const struct hm_err *e),
		       void *arg, struct pod_resources_call **out, struct hm_err *e)
{
	hm_auto(pod_resources_call) *c = calloc(1, sizeof *c);
	struct hm_err own, dial = { 0 };

	e = e != NULL ? e : &own;
	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "pod-resources");
	c->magic = MAGIC;
	c->done = done;
	c->arg = arg;
	c->resource = strdup(resource);
	if (c->resource == NULL)
		return hm_err_set(e, HM_ENOMEM, "pod-resources");
	if (loop_timer_new(l, on_soon, c, &c->soon, e) < 0)
		return hm_err_wrap(e, "pod-resources");
	if (start(c, l, socket_path, &dial) < 0) {
		hm_err_wrap(&dial, "pod-resources");
		c->failure = dial;
		loop_timer_arm(c->soon, 0);
	}
	*out = HM_STEAL(c);
	return 0;
}

void pod_resources_free(struct pod_resources_call *c)
{
	if (c == NULL)
		return;
	CHECK_OBJ(c, MAGIC);
	c->done = NULL;
	rpc_client_free(HM_STEAL(c->client)); /* its done finds nothing to tell */
	loop_timer_free(c->soon);
	for (size_t i = 0; i < c->count; i++)
		free((void *)(uintptr_t)c->containers[i].ids);
	free(c->containers);
	pb_free(c->answer);
	free(c->resource);
	c->magic = 0;
	free(c);
}
