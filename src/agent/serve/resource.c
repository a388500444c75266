#include "agent/serve/resource.h"

#include <stdlib.h>

#include "base/log.h"

struct resource {
	struct resource_config config;
	struct offer *offer;
	struct service *service;
	struct registrar *registrar; /* NULL: stopped */
	bool has_cards;
};

static void list(struct resource *r, struct dp_plugin *plugin)
{
	struct fleet_devices devices;
	struct hm_err e;

	if (!r->has_cards || plugin == NULL)
		return;
	if (r->offer->class->list(r->offer, &devices, &e) < 0) {
		log_error("cannot list the devices", KV("resource", r->offer->resource), KV_ERR(&e));
		return;
	}
	if (dp_set_devices(plugin, devices.items, devices.count, &e) < 0)
		log_error("cannot tell the kubelet our devices", KV("resource", r->offer->resource), KV_ERR(&e));
	fleet_devices_fini(&devices);
}

static void on_served(void *arg, struct dp_plugin *plugin)
{
	list(arg, plugin);
}

static void on_registered(void *arg)
{
	struct resource *r = arg;

	if (r->config.registered != NULL)
		r->config.registered(r->config.arg);
}

static void on_watchers(void *arg, size_t watchers)
{
	struct resource *r = arg;

	if (r->registrar != NULL)
		registrar_watchers(r->registrar, watchers);
}

int resource_new(struct loop *l, struct offer *take_offer, const struct resource_config *config, struct resource **out,
		 struct hm_err *e)
{
	hm_auto(offer) *offer = take_offer;
	hm_auto(resource) *r = calloc(1, sizeof *r);
	struct registrar_config registrar = { .paths = config->service.paths,
					      .socket = config->socket,
					      .resource = offer->resource,
					      .started_ms = config->started_ms,
					      .served = on_served,
					      .registered = on_registered,
					      .arg = r };

	if (r == NULL)
		return hm_err_set(e, HM_ENOMEM, "resource %s", offer->resource);
	r->config = *config;
	r->offer = HM_STEAL(offer);
	r->config.service.offer = r->offer;
	r->config.service.watchers = on_watchers;
	r->config.service.watchers_arg = r;
	if (service_new(l, &r->config.service, &r->service, e) < 0)
		return -e->code;
	registrar.handlers = service_handlers(r->service);
	if (registrar_new(l, &registrar, &r->registrar, e) < 0)
		return -e->code;
	*out = HM_STEAL(r);
	return 0;
}

void resource_free(struct resource *r)
{
	if (r == NULL)
		return;
	resource_stop(r);
	service_free(r->service);
	offer_free(r->offer);
	free(r);
}

int resource_take(struct resource *r, const struct fleet *f, struct hm_err *e)
{
	if (r->offer->class->take(r->offer, f, e) < 0)
		return -e->code;
	r->has_cards = true;
	service_set_fleet(r->service, f);
	resource_list_again(r);
	return 0;
}

void resource_list_again(struct resource *r)
{
	if (r->registrar != NULL)
		list(r, registrar_plugin(r->registrar));
}

void resource_start(struct resource *r)
{
	if (r->registrar != NULL)
		registrar_start(r->registrar);
}

void resource_stop(struct resource *r)
{
	registrar_free(HM_STEAL(r->registrar));
}

struct offer *resource_offer(const struct resource *r)
{
	return r->offer;
}

bool resource_is_registered(const struct resource *r)
{
	return r->registrar != NULL && registrar_is_registered(r->registrar);
}

const char *resource_trouble(const struct resource *r)
{
	return r->registrar != NULL ? registrar_trouble(r->registrar) : "";
}

struct service_stats resource_stats(const struct resource *r)
{
	return service_stats(r->service);
}
