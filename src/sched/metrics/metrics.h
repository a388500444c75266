/* /metrics of the scheduler. */
#ifndef HM_SCHED_METRICS_METRICS_H
#define HM_SCHED_METRICS_METRICS_H

#include <stdbool.h>

#include "base/str.h"
#include "hami/device_config.h"
#include "io/http_answer.h"
#include "model/placement/cluster.h"
#include "sched/bind/bind.h"
#include "sched/serve/server.h"
#include "sched/verbs/admission.h"
#include "sched/verbs/filter.h"
#include "sched/view/view.h"

/* All borrowed. */
struct metrics_sources {
	const struct server *server;
	const struct server_route *routes; /* as the server's */
	size_t route_count;
	const struct secrets *secrets;
	struct cluster *cluster;
	const struct filter *filter;
	const struct admission *admission;
	const struct binder *binder;
	const struct view *view;
	const struct signature_keys *keys; /* NULL: nothing is signed */
	const struct kube_client *client;
	const struct device_config *device;
	bool old_names;             /* --legacy-metrics */
	bool (*ready)(void *arg);   /* as /readyz says */
	bool (*decides)(void *arg); /* are pods placed here? */
	void *arg;
};

/* A page of io/http_server.h; the argument is the sources. Of a large cluster it is tens of megabytes, and pods are
 * placed between its parts: each value is of the moment in which it is written. */
extern const struct http_parts metrics_parts;

#endif
