/* Between mig.c and mig_instance.c. */
#ifndef HM_SIM_NVML_MIG_H
#define HM_SIM_NVML_MIG_H

#include "abi/nvml_mig.h"
#include "sim/lib/sim_admin.h"
#include "sim/nvml/handle.h"

/* The daemon makes a change of MIG; what it answers as an NVML code. Only the node's own user and root may ask. */
int mig_ask(struct sim_request q, struct sim_reply *reply);

#endif
