/* The client calls that only the simulation's own programs make (hami-simctl, its holders). */
#ifndef HM_SIM_ADMIN_H
#define HM_SIM_ADMIN_H

#include "core/macros.h"
#include "sim/lib/sim_client.h"
#include "sim/lib/sim_proto.h"

/* Asks for a process number now rather than at the first charge. */
enum sim_result sim_join(bool holder) HM_MUST_USE;
/* One request and its reply; works while no driver is loaded. */
enum sim_result sim_control(const struct sim_request *q, struct sim_reply *reply) HM_MUST_USE;
/* True when the daemon closed the connection within timeout_ms (-1: for ever). */
bool sim_wait_end(int timeout_ms);

#endif
