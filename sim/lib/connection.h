/* This process's tie to the node, for sim/lib itself. */
#ifndef HM_SIM_CONNECTION_H
#define HM_SIM_CONNECTION_H

#include "sim/lib/sim_admin.h"

enum { SIM_NOBODY = SIM_MAX_PROCESSES }; /* sim_me before sim_join */

/* The node where it is attached and its driver is the one we attached to. */
enum sim_result sim_attached(struct sim_node **out);
/* This process's number. */
unsigned sim_me(void);
/* Attaches and joins where that is still to be done, and locks the card: sim_card_unlock it after SIM_OK. */
enum sim_result sim_enter(unsigned card, struct sim_node **n, unsigned *process);
/* A request without a reply. */
bool sim_send(const struct sim_request *q);

#endif
