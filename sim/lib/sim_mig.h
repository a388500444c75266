/* What a card's MIG allows, on the shared state. Results are NVML's codes, places are those in mig_gis and mig_cis.
 *
 * GPU instances share the card's eight memory slices: one may be made where its profile may start and nothing else is
 * yet, and of its profile no more than the profile's count. That its compute slices are there follows from it. */
#ifndef HM_SIM_MIG_H
#define HM_SIM_MIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/lib/sim_state.h"

/* The profile with the driver's number, or NULL. */
const struct sim_mig_profile *sim_mig_profile(const struct sim_card *c, uint32_t profile_id);
/* May an instance of it start there now? */
bool sim_mig_fits(const struct sim_card *c, const struct sim_mig_profile *p, uint32_t start);
/* How many more of it fit. */
unsigned sim_mig_capacity(const struct sim_card *c, const struct sim_mig_profile *p);
/* Compute slices of a GPU instance that no compute instance has. */
unsigned sim_mig_free_slices(const struct sim_card *c, unsigned gi);
/* The compute instance with this `live`: its place, or -1. */
int sim_mig_find(const struct sim_card *c, uint32_t live);
/* "1g.10gb", or "1c.3g.40gb" where it has not all of its GPU instance. */
void sim_mig_name(const struct sim_card *c, const struct sim_mig_ci *ci, char *out, size_t cap);
/* Bytes that processes have on a GPU instance, and what it has. */
uint64_t sim_mig_used(const struct sim_card *c, unsigned gi);
uint64_t sim_mig_bytes(const struct sim_card *c, unsigned gi);

/* Changes; the caller holds the card's lock. */

/* *activation: NVML_ERROR_IN_USE where processes or instances hold the card; the mode is pending then. */
int sim_mig_set_mode(struct sim_card *c, bool enable, int *activation);
/* `start` UINT32_MAX: anywhere. NVML_ERROR_INVALID_ARGUMENT where it may never start there. */
int sim_mig_create_gi(struct sim_card *c, uint32_t profile_id, uint32_t start, unsigned *place);
int sim_mig_destroy_gi(struct sim_card *c, unsigned place);
int sim_mig_create_ci(struct sim_card *c, unsigned gi, uint32_t slices, unsigned *place);
int sim_mig_destroy_ci(struct sim_card *c, unsigned place);
/* The card comes up: no instances, the pending mode is in force. */
void sim_mig_reset(struct sim_card *c);

#endif
