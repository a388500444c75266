/* Whether a name is an NVML call that sim/nvml models (sim/nvml/modelled.def). */
#ifndef HM_SIMCTL_NVML_CALLS_H
#define HM_SIMCTL_NVML_CALLS_H

#include <stdbool.h>

bool nvml_call_is_modelled(const char *name);

#endif
