/* One resource that the kubelet knows: an offer, its gRPC service and its registration. */
#ifndef HM_AGENT_SERVE_RESOURCE_H
#define HM_AGENT_SERVE_RESOURCE_H

#include "agent/serve/offer.h"
#include "agent/serve/registrar.h"
#include "agent/serve/service.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

struct resource_config {
	struct service_config service; /* offer, watchers and arg are set here */
	const char *socket;            /* its name in the plugin folder; copied */
	uint64_t started_ms;           /* as registrar_config's */
	void (*registered)(void *arg); /* the kubelet took a registration; may be NULL */
	void *arg;
};

struct resource;

/* The offer moves in, whether this succeeds or not. All else of config is borrowed. */
int resource_new(struct loop *l, struct offer *take_offer, const struct resource_config *config, struct resource **out,
		 struct hm_err *e) HM_MUST_USE;
void resource_free(struct resource *r);
HM_DEFINE_AUTO(resource, resource_free);

/* New cards: offered, and listed to the kubelet. Errors are the offer's; its former cards stay then. The fleet is
 * borrowed until the next take. */
int resource_take(struct resource *r, const struct fleet *f, struct hm_err *e) HM_MUST_USE;
/* What the offer lists may have changed. */
void resource_list_again(struct resource *r);
/* Nothing is registered before this. */
void resource_start(struct resource *r);
/* The kubelet sees us go; open calls end. Offer and figures stay. */
void resource_stop(struct resource *r);

struct offer *resource_offer(const struct resource *r);
bool resource_is_registered(const struct resource *r);
const char *resource_trouble(const struct resource *r); /* why not; "" if nothing is known */
struct service_stats resource_stats(const struct resource *r);

#endif
