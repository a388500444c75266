/* What a node's YAML says of MIG. */
#ifndef HM_SIM_NODE_YAML_MIG_H
#define HM_SIM_NODE_YAML_MIG_H

#include "core/err.h"
#include "io/json.h"
#include "sim/lib/sim_state.h"

/* mig_profiles of a model. */
int node_yaml_mig_profiles(const struct json_at *model, struct sim_card_info *card, struct hm_err *e) HM_MUST_USE;
/* mig_instances of a card, after its mode is known: what it comes up with. */
int node_yaml_mig_instances(const struct json_at *at, struct sim_card_info *card, struct hm_err *e) HM_MUST_USE;

#endif
