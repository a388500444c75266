/* How busy a card was, from the engine's samples. */
#ifndef HM_SIM_NVML_UTILIZATION_H
#define HM_SIM_NVML_UTILIZATION_H

#include "sim/lib/sim_state.h"

/* Percent of the last complete sample; brings the samples up to date. */
unsigned utilization_percent(const struct sim_card *card);
/* The node's clock as NVML stamps things: microseconds since 1970. */
unsigned long long stamp_us(uint64_t node_ns);

#endif
