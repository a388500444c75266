/* /healthz: the loop runs (what a liveness probe may act on); /readyz: registered, with the reason where not. */
#ifndef HM_AGENT_METRICS_HEALTH_H
#define HM_AGENT_METRICS_HEALTH_H

#include "agent/cards/driver.h"
#include "agent/reload/reload.h"
#include "agent/serve/resource.h"
#include "core/err.h"
#include "io/http_server.h"
#include "io/loop.h"

struct health_sources {
	const struct resource *resource;
	const struct driver *driver;
	const struct reload *reload; /* may be NULL */
};

/* *sources is borrowed for the server's life. */
int health_serve(struct loop *l, const char *address, struct health_sources *sources, struct http_server **out,
		 struct hm_err *e) HM_MUST_USE;

#endif
