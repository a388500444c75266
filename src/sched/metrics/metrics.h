/* /metrics of the scheduler. */
#ifndef HM_SCHED_METRICS_METRICS_H
#define HM_SCHED_METRICS_METRICS_H

#include <stdbool.h>

#include "base/str.h"
#include "sched/serve/server.h"

/* All borrowed. */
struct metrics_sources {
	const struct server *server;
	const struct server_route *routes; /* as the server's */
	size_t route_count;
	const struct secrets *secrets;
	bool (*ready)(void *arg);
	void *arg;
};

/* A page of io/http_server.h; the argument is the sources. */
int metrics_page(void *sources, struct str *out);

#endif
