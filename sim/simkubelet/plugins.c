#include <string.h>

#include "base/log.h"
#include "core/check.h"
#include "kubelet/pb.h"
#include "kubelet/proto/device_plugin.pb-c.h"
#include "sim/simkubelet/node.h"

/*
 * As the kubelet does it (tests/e2e/golden/kubelet-calls.json):
 * 1. Register comes. Version and name are checked.
 * 2. The plugin's socket is dialled, again and again for dial_ms, and GetDevicePluginOptions is called.
 * 3. Register is answered; ListAndWatch begins.
 * An older plugin of the same resource is stopped by the newer one.
 */
enum { REDIAL_MS = 100 };

struct plugin *plugins_find(const struct node *n, const char *resource)
{
	LIST_FOR_EACH (&n->plugins, it) {
		struct plugin *p = HM_CONTAINER(it, struct plugin, link);

		if (strcmp(p->resource, resource) == 0)
			return p;
	}
	return NULL;
}

size_t plugin_healthy(const struct plugin *p)
{
	size_t healthy = 0;

	for (size_t i = 0; i < p->device_count && p->client != NULL; i++)
		healthy += p->devices[i].healthy;
	return healthy;
}

const struct device *plugin_device(const struct plugin *p, const char *id)
{
	for (size_t i = 0; i < p->device_count; i++) {
		if (strcmp(p->devices[i].id, id) == 0)
			return &p->devices[i];
	}
	return NULL;
}

static void devices_free(struct plugin *p)
{
	for (size_t i = 0; i < p->device_count; i++)
		free(p->devices[i].id);
	free(p->devices);
	p->devices = NULL;
	p->device_count = 0;
}

static void answer_register(struct plugin *p, int status, const char *text)
{
	struct rpc_call *call = HM_STEAL(p->registering);

	if (call == NULL)
		return;
	rpc_call_set_data(call, NULL);
	if (status == RPC_OK)
		rpc_call_reply(call, (const uint8_t *)"", 0);
	else
		rpc_call_finish(call, status, text);
}

/* Its devices stay known as capacity. */
static void plugin_stop(struct plugin *p)
{
	loop_timer_disarm(p->redial);
	rpc_client_free(HM_STEAL(p->client));
}

static void plugin_free(struct plugin *p)
{
	link_remove(&p->link);
	answer_register(p, RPC_UNAVAILABLE, "the kubelet ends");
	plugin_stop(p);
	loop_timer_free(p->redial);
	devices_free(p);
	free(p->resource);
	free(p->endpoint);
	free(p);
}

/* ---- ListAndWatch ---- */

static void devices_changed(struct plugin *p)
{
	struct hm_err e;

	if (checkpoint_save(p->node, &e) < 0)
		log_warn("checkpoint", KV_ERR(&e));
	control_resources_changed(p->node);
	node_sync(p->node);
}

static void on_devices(void *arg, const uint8_t *msg, size_t n)
{
	struct plugin *p = arg;
	struct hm_err e;
	pb_auto V1beta1__ListAndWatchResponse *m =
		pb_unpack(&v1beta1__list_and_watch_response__descriptor, "ListAndWatchResponse", msg, n, &e);

	if (m == NULL) {
		log_error("ListAndWatch", KV("resource", p->resource), KV_ERR(&e));
		return;
	}
	devices_free(p);
	p->devices = node_alloc(m->n_devices + 1, sizeof *p->devices);
	p->device_count = m->n_devices;
	p->told_devices = true;
	for (size_t i = 0; i < m->n_devices; i++) {
		const V1beta1__Device *d = m->devices[i];
		bool placed = d->topology != NULL && d->topology->n_nodes > 0;

		p->devices[i] = (struct device) { node_text(d->id), strcmp(d->health, "Healthy") == 0,
						  placed ? d->topology->nodes[0]->id : -1 };
	}
	log_info("devices", KV("resource", p->resource), KV_U64("count", p->device_count),
		 KV_U64("healthy", plugin_healthy(p)));
	devices_changed(p);
}

static void on_watch_end(void *arg, int status, const char *text)
{
	struct plugin *p = arg;

	if (status == RPC_CANCELLED && p->client == NULL)
		return; /* by plugin_stop */
	log_warn("plugin is gone", KV("resource", p->resource), KV("status", rpc_status_name(status)),
		 KV("text", text));
	plugin_stop(p);
	devices_changed(p);
}

static void watch(struct plugin *p)
{
	const struct rpc_reply reply = { on_devices, on_watch_end, p };
	struct hm_err e;

	if (rpc_client_call(p->client, "/v1beta1.DevicePlugin/ListAndWatch", (const uint8_t *)"", 0, 0, &reply, NULL,
			    &e) < 0)
		log_error("ListAndWatch", KV("resource", p->resource), KV_ERR(&e));
}

/* ---- Register ---- */

static void on_options(void *arg, const uint8_t *msg, size_t n)
{
	struct plugin *p = arg;
	struct hm_err e;
	pb_auto V1beta1__DevicePluginOptions *m =
		pb_unpack(&v1beta1__device_plugin_options__descriptor, "DevicePluginOptions", msg, n, &e);

	p->wants_preferred = m != NULL && m->get_preferred_allocation_available;
	p->wants_pre_start = m != NULL && m->pre_start_required;
}

/* A plugin that registers takes the place of the one that had the resource. */
static void take_over(struct plugin *p)
{
	LIST_FOR_EACH (&p->node->plugins, it) {
		struct plugin *other = HM_CONTAINER(it, struct plugin, link);

		if (other != p && strcmp(other->resource, p->resource) == 0)
			plugin_free(other);
	}
}

static void on_options_end(void *arg, int status, const char *text)
{
	struct plugin *p = arg;

	if (status != RPC_OK) {
		if (p->client == NULL)
			return; /* by plugin_stop */
		log_warn("GetDevicePluginOptions", KV("resource", p->resource), KV("text", text));
		answer_register(p, RPC_UNKNOWN, text);
		plugin_free(p);
		return;
	}
	take_over(p);
	watch(p);
	answer_register(p, RPC_OK, NULL);
	log_info("registered", KV("resource", p->resource), KV("endpoint", p->endpoint));
}

static void dial(void *arg)
{
	struct plugin *p = arg;
	const struct rpc_reply reply = { on_options, on_options_end, p };
	hm_auto_str path = { 0 };
	struct hm_err e;

	str_addf(&path, "%s/device-plugins/%s", p->node->dir, p->endpoint);
	if (rpc_client_new(p->node->loop, str_text(&path), &p->client, &e) == 0 &&
	    rpc_client_call(p->client, "/v1beta1.DevicePlugin/GetDevicePluginOptions", (const uint8_t *)"", 0, 0,
			    &reply, NULL, &e) == 0)
		return;
	rpc_client_free(HM_STEAL(p->client));
	if (loop_now_ms(p->node->loop) < p->dial_until_ms) {
		loop_timer_arm(p->redial, REDIAL_MS);
		return;
	}
	log_warn("cannot dial the plugin", KV("resource", p->resource), KV_ERR(&e));
	answer_register(p, RPC_UNKNOWN, "failed to dial device plugin: context deadline exceeded");
	plugin_free(p);
}

/* A qualified name outside kubernetes.io: "domain/name". */
static bool resource_ok(const char *name)
{
	const char *slash = strchr(name, '/');

	return pb_name_ok(name) && slash != NULL && slash > name && slash[1] != '\0' &&
	       strstr(name, "kubernetes.io/") == NULL;
}

static int check_request(const V1beta1__RegisterRequest *m, struct hm_err *e)
{
	if (strcmp(m->version, "v1beta1") != 0)
		return hm_err_set(
			e, HM_EINVAL,
			"requested API version \"%s\" is not supported by kubelet. Supported version is [\"v1beta1\"]",
			m->version);
	if (!resource_ok(m->resource_name))
		return hm_err_set(e, HM_EINVAL, "the ResourceName \"%s\" is invalid", m->resource_name);
	if (!pb_name_ok(m->endpoint) || strchr(m->endpoint, '/') != NULL)
		return hm_err_set(e, HM_EINVAL, "the endpoint \"%s\" is no file name", m->endpoint);
	return 0;
}

static void on_register(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	struct node *node = arg;
	struct hm_err e;
	pb_auto V1beta1__RegisterRequest *m =
		pb_unpack(&v1beta1__register_request__descriptor, "RegisterRequest", msg, n, &e);
	struct plugin *p;

	if (m == NULL || check_request(m, &e) < 0) {
		rpc_call_finish(call, m == NULL ? RPC_INTERNAL : RPC_UNKNOWN, e.msg);
		return;
	}
	p = node_alloc(1, sizeof *p);
	p->node = node;
	p->resource = node_text(m->resource_name);
	p->endpoint = node_text(m->endpoint);
	p->registering = call;
	p->dial_until_ms = loop_now_ms(node->loop) + node->dial_ms;
	rpc_call_set_data(call, p);
	link_append(&node->plugins, &p->link);
	CHECK(loop_timer_new(node->loop, dial, p, &p->redial, &e) == 0);
	dial(p);
}

static void on_register_gone(struct rpc_call *call, void *arg)
{
	struct plugin *p = rpc_call_data(call);

	(void)arg;
	if (p != NULL)
		p->registering = NULL;
}

static const struct rpc_method methods[] = { { "/v1beta1.Registration/Register", on_register, on_register_gone } };

int plugins_listen(struct node *n, struct hm_err *e)
{
	return rpc_server_new(n->loop, "device-plugins/kubelet.sock", methods, HM_COUNT(methods), n, &n->registration,
			      e);
}

void plugins_stop_kubelet(struct node *n)
{
	while (!list_empty(&n->plugins))
		plugin_free(HM_CONTAINER(list_first(&n->plugins), struct plugin, link));
}
