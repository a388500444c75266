#include "kubelet/pod_resources.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "kubelet/pod_list.h"
#include "rpc/client.h"

enum { MAGIC = 0x504f4452, DEADLINE_MS = 5000 };

struct pod_resources_call {
	unsigned magic;
	char *resource; /* NULL: any */
	void (*done)(void *arg, const struct pod_resources_container *containers, size_t count, const struct hm_err *e);
	void *arg;
	struct rpc_client *client;
	struct loop_timer *soon; /* tells `failure` */
	struct hm_err failure;
	struct pod_list answer;
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
		done(c->arg, c->answer.containers, c->answer.count, NULL);
}

static void on_soon(void *arg)
{
	struct pod_resources_call *c = arg;
	struct hm_err e;

	CHECK_OBJ(c, MAGIC);
	e = c->failure;
	tell(c, &e);
}

static void on_message(void *arg, const uint8_t *msg, size_t n)
{
	struct pod_resources_call *c = arg;

	CHECK_OBJ(c, MAGIC);
	if (c->answer.message != NULL || c->failure.code != 0)
		return; /* unary: a second message is the peer's fault, and not read */
	if (pod_list_read(msg, n, c->resource, &c->answer, &c->failure) < 0)
		hm_err_wrap(&c->failure, "pod-resources");
}

static void on_done(void *arg, int status, const char *text)
{
	struct pod_resources_call *c = arg;
	struct hm_err e = c->failure;

	CHECK_OBJ(c, MAGIC);
	if (status == RPC_OK && e.code == 0 && c->answer.message == NULL)
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
	c->resource = resource != NULL ? strdup(resource) : NULL;
	if (resource != NULL && c->resource == NULL)
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
	pod_list_fini(&c->answer);
	free(c->resource);
	c->magic = 0;
	free(c);
}
