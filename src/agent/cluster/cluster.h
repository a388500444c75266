/* Our connection to the API server: the one client of the agent, who we are, and events. Where there is none (slices on
 * a bare node) the object is there and off: its client is NULL, what is told goes nowhere. Nothing here waits: a server
 * that is away is the client's and the reflectors' to try for ever. */
#ifndef HM_AGENT_CLUSTER_CLUSTER_H
#define HM_AGENT_CLUSTER_CLUSTER_H

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kube/client.h"
#include "kube/event.h"

struct cluster_config {
	const char *kubeconfig;     /* NULL: where kube/config.h looks */
	const char *node;           /* NULL or "": not known */
	bool required;              /* the mode lives of the API: being off is an error that says what to set */
	uint32_t per_second, burst; /* as kube_client_options': our own rate */
};

struct cluster;

/* Not required: off where no node name or no API server is configured; a configuration that was named and cannot be
 * used is an error all the same. All is copied. */
int cluster_new(struct loop *l, const struct cluster_config *config, struct cluster **out,
		struct hm_err *e) HM_MUST_USE;
/* After all that uses the client. NULL does nothing. */
void cluster_free(struct cluster *c);
HM_DEFINE_AUTO(cluster, cluster_free);

struct kube_client *cluster_client(const struct cluster *c); /* NULL: off */
const char *cluster_node(const struct cluster *c);           /* our node's name; "" while off */

/* What an event is about. */
struct cluster_pod {
	const char *name_space, *name, *uid;
};

/* type: "Normal" or "Warning"; reason: a word; the message is cut after 500 bytes. Best effort (kube/event.h). A NULL
 * cluster is off. */
void cluster_tell_pod(struct cluster *c, const struct cluster_pod *pod, const char *type, const char *reason,
		      const char *fmt, ...) HM_PRINTF(5, 6);
void cluster_tell_node(struct cluster *c, const char *type, const char *reason, const char *fmt, ...) HM_PRINTF(4, 5);

struct cluster_stats {
	const struct kube_stats *requests; /* NULL: off */
	struct kube_events_state events;
};
void cluster_stats(const struct cluster *c, struct cluster_stats *out);

#endif
