/* A node's description (sim/nodes/NAME.yaml, docs/simulation.md) into the shared state. */
#ifndef HM_SIM_NODE_YAML_H
#define HM_SIM_NODE_YAML_H

#include <stddef.h>

#include "core/err.h"
#include "sim/lib/sim_state.h"

/* Fills name, versions, card_count and each card's info; `node` is zeroed memory. Checks that UUIDs and PCI addresses
 * are unique and the matrices square and symmetric. -HM_EPROTO, -HM_EINVAL with line and key. */
int node_yaml_load(const char *text, size_t n, struct sim_node *node, struct hm_err *e) HM_MUST_USE;

#endif
