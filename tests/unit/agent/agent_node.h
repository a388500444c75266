/* What the agent's parts stand on, in the test's own folder: two cards of four slots each, their device nodes, options,
 * paths, and the records, which a sweep makes and frees itself. */
#ifndef HM_TESTS_AGENT_NODE_H
#define HM_TESTS_AGENT_NODE_H

#include <stdio.h>

#include "agent/cards/fleet.h"
#include "agent/claims/counter.h"
#include "agent/claims/pending.h"
#include "agent/container/edits.h"
#include "harness/temp.h"
#include "io/file.h"
#include "unit/agent/checkpoint_text.h"
#include "unit/model/make_inventory.h"

#define GPU0 "GPU-00000000-0000-0000-0000-000000000000"
#define GPU1 "GPU-00000000-0000-0000-0000-000000000001"
#define SLOT(gpu, n) gpu "::" #n

struct agent_node {
	struct agent_options options;
	struct agent_paths paths;
	struct fleet *fleet;
	char state_dir[200], cdi_dir[200], kubelet_socket[200], device_root[200], pods_socket[200];
	/* node_open's */
	struct claims *claims;
	struct counter *counter;
	struct pending *pending;
	struct edits *edits;
};

static inline void node_place(char *out, const char *name)
{
	snprintf(out, 200, "%s", temp_path(name));
}

/* Below temp_setup's folder. */
static inline void node_setup(struct agent_node *n)
{
	struct option_spec table[AGENT_OPTION_COUNT];
	struct inventory *inv = make_inventory(2, 16000);
	struct hm_err e;

	*n = (struct agent_node) { 0 };
	agent_options_init(&n->options, table);
	n->options.mode = "slices";
	node_place(n->state_dir, "state");
	node_place(n->cdi_dir, "cdi");
	node_place(n->kubelet_socket, "kubelet.sock");
	node_place(n->pods_socket, "pods.sock");
	node_place(n->device_root, "root");
	n->options.state_dir = n->state_dir;
	n->options.cdi_dir = n->cdi_dir;
	n->options.kubelet_socket = n->kubelet_socket;
	n->options.pod_resources_socket = n->pods_socket;
	n->options.device_root = n->device_root;
	if (agent_paths_init(&n->paths, &n->options, &e) < 0 || fleet_new(NULL, inv, &n->fleet, &e) < 0 ||
	    file_mkdirs(temp_path("root/dev"), 0755, &e) < 0 || file_mkdirs(n->cdi_dir, 0755, &e) < 0 ||
	    file_mkdirs(n->state_dir, 0755, &e) < 0)
		fail_msg("%s", e.msg);
	temp_write("root/dev/nvidia0", "");
	temp_write("root/dev/nvidia1", "");
	inventory_free(inv);
}

static inline int node_open(struct agent_node *n, struct hm_err *e)
{
	if (claims_open(n->paths.claims.s, &n->claims, e) < 0 ||
	    counter_open(n->paths.counter.s, claims_max_number(n->claims) + 1, &n->counter, e) < 0)
		return -e->code;
	n->pending = pending_new();
	if (n->pending == NULL)
		return hm_err_set(e, HM_ENOMEM, "pending");
	return edits_new(&n->options, &n->paths, "/lib/libvgpu.so", NULL, &n->edits, e);
}

static inline void node_close(struct agent_node *n)
{
	edits_free(HM_STEAL(n->edits));
	pending_free(HM_STEAL(n->pending));
	counter_free(HM_STEAL(n->counter));
	claims_free(HM_STEAL(n->claims));
}

static inline void node_teardown(struct agent_node *n)
{
	node_close(n);
	fleet_free(n->fleet);
}

#endif
