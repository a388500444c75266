#include "kubelet/device_plugin.h"

#include <stdlib.h>

#include "core/check.h"
#include "core/link.h"
#include "kubelet/messages.h"
#include "rpc/server.h"

enum { PLUGIN_MAGIC = 0x4450504c, CALL_MAGIC = 0x4450434c };

struct dp_plugin {
	unsigned magic;
	struct dp_handlers handlers;
	struct rpc_server *server;
	struct str list; /* ListAndWatchResponse, packed once for all watchers */
	struct link watchers;
	size_t watcher_count;
};

/* An open ListAndWatch stream. */
struct watcher {
	struct link link;
	struct rpc_call *rpc;
};

struct dp_call {
	unsigned magic;
	struct rpc_call *rpc;
	void *data;
};

/* The call that a handler gets; NULL (and the peer is told) where memory is short. */
static struct dp_call *call_new(struct rpc_call *rpc)
{
	struct dp_call *c = calloc(1, sizeof *c);
	struct hm_err e;

	if (c == NULL) {
		hm_err_set(&e, HM_ENOMEM, "device plugin");
		rpc_call_fail(rpc, &e);
		return NULL;
	}
	c->magic = CALL_MAGIC;
	c->rpc = rpc;
	rpc_call_set_data(rpc, c);
	return c;
}

/* The rpc call of an answered or dead call, which ends here. */
static struct rpc_call *call_end(struct dp_call *c)
{
	struct rpc_call *rpc = c->rpc;

	CHECK_OBJ(c, CALL_MAGIC);
	rpc_call_set_data(rpc, NULL);
	c->magic = 0;
	free(c);
	return rpc;
}

static void on_options(struct rpc_call *rpc, const uint8_t *msg, size_t n, void *arg)
{
	hm_auto_str out = { 0 };
	struct hm_err e;

	(void)msg, (void)n, (void)arg;
	if (message_write_options(&out) == 0) {
		rpc_call_reply(rpc, (const uint8_t *)str_text(&out), out.n);
		return;
	}
	hm_err_set(&e, HM_ENOMEM, "GetDevicePluginOptions");
	rpc_call_fail(rpc, &e);
}

static void tell_watchers(struct dp_plugin *p)
{
	if (p->handlers.watchers != NULL)
		p->handlers.watchers(p->handlers.arg, p->watcher_count);
}

static void watcher_free(struct dp_plugin *p, struct watcher *w)
{
	link_remove(&w->link);
	rpc_call_set_data(w->rpc, NULL);
	p->watcher_count--;
	free(w);
}

static void on_watch(struct rpc_call *rpc, const uint8_t *msg, size_t n, void *arg)
{
	struct dp_plugin *p = arg;
	struct watcher *w = calloc(1, sizeof *w);
	struct hm_err e;

	(void)msg, (void)n;
	CHECK_OBJ(p, PLUGIN_MAGIC);
	if (w == NULL) {
		hm_err_set(&e, HM_ENOMEM, "ListAndWatch");
		rpc_call_fail(rpc, &e);
		return;
	}
	if (rpc_call_send_latest(rpc, (const uint8_t *)str_text(&p->list), p->list.n, &e) < 0) {
		free(w);
		rpc_call_fail(rpc, &e);
		return;
	}
	w->rpc = rpc;
	link_append(&p->watchers, &w->link);
	p->watcher_count++;
	rpc_call_set_data(rpc, w);
	tell_watchers(p);
}

static void on_watch_gone(struct rpc_call *rpc, void *arg)
{
	struct dp_plugin *p = arg;
	struct watcher *w = rpc_call_data(rpc);

	if (w == NULL)
		return;
	watcher_free(p, w);
	tell_watchers(p);
}

static void on_preferred(struct rpc_call *rpc, const uint8_t *msg, size_t n, void *arg)
{
	struct dp_plugin *p = arg;
	pb_auto void *message = NULL;
	hm_auto_heap struct dp_preferred_request *requests = NULL;
	struct dp_call *call;
	struct hm_err e;
	size_t count;

	if (message_read_preferred(msg, n, &message, &requests, &count, &e) < 0) {
		hm_err_wrap(&e, "GetPreferredAllocation");
		rpc_call_fail(rpc, &e);
		return;
	}
	call = call_new(rpc);
	if (call != NULL)
		p->handlers.preferred(p->handlers.arg, call, requests, count);
}

static void on_allocate(struct rpc_call *rpc, const uint8_t *msg, size_t n, void *arg)
{
	struct dp_plugin *p = arg;
	pb_auto void *message = NULL;
	hm_auto_heap struct dp_container_request *requests = NULL;
	struct dp_call *call;
	struct hm_err e;
	size_t count;

	if (message_read_allocate(msg, n, &message, &requests, &count, &e) < 0) {
		hm_err_wrap(&e, "Allocate");
		rpc_call_fail(rpc, &e);
		return;
	}
	call = call_new(rpc);
	if (call != NULL)
		p->handlers.allocate(p->handlers.arg, call, requests, count);
}

static void on_pre_start(struct rpc_call *rpc, const uint8_t *msg, size_t n, void *arg)
{
	struct dp_plugin *p = arg;
	pb_auto void *message = NULL;
	struct dp_container_request request;
	struct dp_call *call;
	struct hm_err e;

	if (message_read_pre_start(msg, n, &message, &request, &e) < 0) {
		hm_err_wrap(&e, "PreStartContainer");
		rpc_call_fail(rpc, &e);
		return;
	}
	call = call_new(rpc);
	if (call != NULL)
		p->handlers.pre_start(p->handlers.arg, call, &request);
}

static void on_call_gone(struct rpc_call *rpc, void *arg)
{
	struct dp_plugin *p = arg;
	struct dp_call *call = rpc_call_data(rpc);

	if (call == NULL)
		return;
	if (p->handlers.gone != NULL)
		p->handlers.gone(p->handlers.arg, call);
	call_end(call);
}

static const struct rpc_method methods[] = {
	{ "/v1beta1.DevicePlugin/GetDevicePluginOptions", on_options, NULL },
	{ "/v1beta1.DevicePlugin/ListAndWatch", on_watch, on_watch_gone },
	{ "/v1beta1.DevicePlugin/GetPreferredAllocation", on_preferred, on_call_gone },
	{ "/v1beta1.DevicePlugin/Allocate", on_allocate, on_call_gone },
	{ "/v1beta1.DevicePlugin/PreStartContainer", on_pre_start, on_call_gone },
};

int dp_plugin_new(struct loop *l, const char *socket_path, const struct dp_handlers *handlers, struct dp_plugin **out,
		  struct hm_err *e)
{
	hm_auto(dp_plugin) *p = calloc(1, sizeof *p);
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (p == NULL)
		return hm_err_set(e, HM_ENOMEM, "device plugin");
	p->magic = PLUGIN_MAGIC;
	p->handlers = *handlers;
	list_init(&p->watchers);
	if (rpc_server_new(l, socket_path, methods, HM_COUNT(methods), p, &p->server, e) < 0)
		return hm_err_wrap(e, "device plugin");
	*out = HM_STEAL(p);
	return 0;
}

void dp_plugin_free(struct dp_plugin *p)
{
	if (p == NULL)
		return;
	CHECK_OBJ(p, PLUGIN_MAGIC);
	rpc_server_free(p->server); /* tells of every open call: on_watch_gone, on_call_gone */
	CHECK(p->watcher_count == 0);
	str_fini(&p->list);
	p->magic = 0;
	free(p);
}

int dp_set_devices(struct dp_plugin *p, const struct dp_device *devices, size_t count, struct hm_err *e)
{
	hm_auto_str list = { 0 };
	struct str old = p->list;
	size_t watchers = p->watcher_count;
	struct hm_err own;

	CHECK_OBJ(p, PLUGIN_MAGIC);
	e = e != NULL ? e : &own;
	if (message_write_devices(&list, devices, count, e) < 0)
		return -e->code;
	p->list = list;
	list = old;
	LIST_FOR_EACH (&p->watchers, it) {
		struct watcher *w = HM_CONTAINER(it, struct watcher, link);
		struct rpc_call *rpc = w->rpc;
		struct hm_err failure;

		if (rpc_call_send_latest(rpc, (const uint8_t *)str_text(&p->list), p->list.n, &failure) == 0)
			continue;
		/* A watcher that keeps an old list would lie for ever; one whose stream ends has the kubelet ask anew.
		 */
		watcher_free(p, w);
		rpc_call_fail(rpc, &failure);
	}
	if (p->watcher_count != watchers)
		tell_watchers(p);
	return 0;
}

bool dp_owns_socket(const struct dp_plugin *p)
{
	return rpc_server_owns_socket(p->server) != 0;
}

size_t dp_watchers(const struct dp_plugin *p)
{
	return p->watcher_count;
}

/* Replies with `out`, or says that there was no memory for it. */
static void reply(struct dp_call *call, int written, const struct str *out)
{
	struct rpc_call *rpc = call_end(call);
	struct hm_err e;

	if (written == 0) {
		rpc_call_reply(rpc, (const uint8_t *)str_text(out), out->n);
		return;
	}
	hm_err_set(&e, HM_ENOMEM, "answer");
	rpc_call_fail(rpc, &e);
}

void dp_reply_preferred(struct dp_call *call, const char *const *const *ids, const size_t *id_counts, size_t count)
{
	hm_auto_str out = { 0 };

	reply(call, message_write_preferred(&out, ids, id_counts, count), &out);
}

void dp_reply_allocate(struct dp_call *call, const struct dp_container_answer *answers, size_t count)
{
	hm_auto_str out = { 0 };

	reply(call, message_write_allocate(&out, answers, count), &out);
}

void dp_reply_pre_start(struct dp_call *call)
{
	struct str nothing = { 0 };

	reply(call, 0, &nothing);
}

void dp_fail(struct dp_call *call, const struct hm_err *e)
{
	rpc_call_fail(call_end(call), e);
}

void dp_call_set_data(struct dp_call *call, void *data)
{
	call->data = data;
}

void *dp_call_data(const struct dp_call *call)
{
	return call->data;
}
