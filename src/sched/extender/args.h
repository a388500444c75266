/* What kube-scheduler asks an extender, read in place from the request's body (k8s.io/kube-scheduler/extender/v1): keys
 * in any case, unknown ones passed over, null as absent. Errors are texts for the answer's field Error; Go's own where
 * HAMi's server gives those. */
#ifndef HM_SCHED_EXTENDER_ARGS_H
#define HM_SCHED_EXTENDER_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/cursor.h"
#include "core/err.h"
#include "io/json.h"

/* A cluster has fewer nodes, and the API server takes no larger object and no longer name. */
enum {
	EXTENDER_MAX_NODES = 65536,
	EXTENDER_MAX_OBJECT_BYTES = 4 << 20,
	EXTENDER_MAX_OBJECT_VALUES = 1 << 17,
	EXTENDER_MAX_NAME_BYTES = 253,
};

/* Names and nodes are in the body and last as long as it. */
struct extender_args {
	struct cJSON *pod; /* owned; an object */
	bool has_names;    /* NodeNames is not null */
	const char **names;
	size_t name_count;
	bool has_nodes;      /* Nodes is not null: the scheduler sends whole Nodes (Cluster Autoscaler) */
	struct piece *nodes; /* each Node's JSON, an object, not parsed */
	size_t node_count;
	size_t name_cap, node_cap;
};

/* Writes into the body. -HM_EPROTO (JSON, kinds), -HM_EINVAL (no pod), -HM_ELIMIT, -HM_ENOMEM. In any case fini is due.
 */
int extender_args_read(char *body, size_t n, struct extender_args *out, struct hm_err *e) HM_MUST_USE;
void extender_args_fini(struct extender_args *a);

/* In the body; "" where absent. */
struct extender_binding {
	const char *pod_name, *pod_namespace, *pod_uid, *node;
};
int extender_binding_read(char *body, size_t n, struct extender_binding *out, struct hm_err *e) HM_MUST_USE;

#endif
