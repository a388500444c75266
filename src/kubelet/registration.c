#include "kubelet/registration.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "kubelet/pb.h"
#include "kubelet/proto/device_plugin.pb-c.h"
#include "rpc/client.h"

/*
 * 1. Dial kubelet.sock. It exists a moment before it accepts: refused is -HM_EAGAIN.
 * 2. Register. Before it answers, the kubelet dials our endpoint and calls GetDevicePluginOptions, so we serve from the
 *    same loop meanwhile. It gives up on its dial after 10 s; we wait longer, so that its text is what is told.
 * 3. One answer, told once; or the error of the dial, told from the loop too.
 */
enum { MAGIC = 0x52454749, DEADLINE_MS = 15000 };

struct registration {
	unsigned magic;
	void (*done)(void *arg, const struct hm_err *e); /* NULL once told, or given up */
	void *arg;
	struct rpc_client *client;
	struct loop_timer *soon; /* tells `failure` */
	struct hm_err failure;
};

static void tell(struct registration *r, const struct hm_err *e)
{
	void (*done)(void *, const struct hm_err *) = r->done;

	r->done = NULL;
	if (done != NULL)
		done(r->arg, e); /* may free r */
}

static void on_soon(void *arg)
{
	struct registration *r = arg;
	struct hm_err e;

	CHECK_OBJ(r, MAGIC);
	e = r->failure;
	tell(r, &e);
}

/* What the caller should do about it decides the code; the text is the kubelet's. */
static int code_of(int status)
{
	switch (status) {
	case RPC_UNAVAILABLE: return HM_EAGAIN; /* the connection broke: a kubelet that is restarting */
	case RPC_DEADLINE_EXCEEDED: return HM_ETIMEDOUT;
	case RPC_UNIMPLEMENTED: return HM_EUNSUPPORTED;
	default: return HM_EINVAL;
	}
}

static void on_done(void *arg, int status, const char *text)
{
	struct registration *r = arg;
	struct hm_err e;

	CHECK_OBJ(r, MAGIC);
	if (status == RPC_OK) {
		tell(r, NULL);
		return;
	}
	hm_err_set(&e, code_of(status), "kubelet refused the registration: %s: %s", rpc_status_name(status), text);
	tell(r, &e);
}

static int send_request(struct registration *r, const struct registration_request *req, struct hm_err *e)
{
	V1beta1__RegisterRequest m = V1BETA1__REGISTER_REQUEST__INIT;
	V1beta1__DevicePluginOptions options = V1BETA1__DEVICE_PLUGIN_OPTIONS__INIT;
	struct rpc_reply reply = { .done = on_done, .arg = r };
	hm_auto_str bytes = { 0 };

	options.pre_start_required = true;
	options.get_preferred_allocation_available = true;
	m.version = (char *)(uintptr_t) "v1beta1";
	m.endpoint = (char *)(uintptr_t)req->endpoint;
	m.resource_name = (char *)(uintptr_t)req->resource;
	m.options = &options;
	pb_pack(&bytes, &m);
	if (str_failed(&bytes))
		return hm_err_set(e, HM_ENOMEM, "RegisterRequest");
	return rpc_client_call(r->client, "/v1beta1.Registration/Register", (const uint8_t *)bytes.p, bytes.n,
			       DEADLINE_MS, &reply, NULL, e);
}

int registration_start(struct loop *l, const struct registration_request *req, struct registration **out,
		       struct hm_err *e)
{
	hm_auto(registration) *r = calloc(1, sizeof *r);
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (r == NULL)
		return hm_err_set(e, HM_ENOMEM, "registration");
	r->magic = MAGIC;
	r->done = req->done;
	r->arg = req->arg;
	if (loop_timer_new(l, on_soon, r, &r->soon, e) < 0)
		return hm_err_wrap(e, "registration");
	if (rpc_client_new(l, req->kubelet_socket, &r->client, &r->failure) < 0 ||
	    send_request(r, req, &r->failure) < 0) {
		hm_err_wrap(&r->failure, "register with the kubelet");
		loop_timer_arm(r->soon, 0);
	}
	*out = HM_STEAL(r);
	return 0;
}

void registration_free(struct registration *r)
{
	if (r == NULL)
		return;
	CHECK_OBJ(r, MAGIC);
	r->done = NULL;
	rpc_client_free(HM_STEAL(r->client));
	loop_timer_free(r->soon);
	r->magic = 0;
	free(r);
}
