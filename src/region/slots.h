/* The region's process slots: claimed without a lock, cleared under one that the kernel releases. */
#ifndef HM_REGION_SLOTS_H
#define HM_REGION_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "contract/region_layout.h"
#include "region/ledger.h"
#include "region/process_id.h"

uint64_t slot_who(uint32_t pid, uint64_t start_time);
struct region_slot_id {
	uint32_t pid, pid_namespace; /* pid_namespace 0: half claimed */
	uint64_t start_time;
	uint64_t who, meta;
};
/* Whose slot a head says it is; pid 0: nobody's. */
struct region_slot_id slot_id(const struct region_head *head);

/* Claims a free slot for `me` and makes *l speak for it. False: none is free. A slot that already bears our name is a
 * former image's of this process (exec): the caller clears it first with slot_clear_if. */
bool slot_claim(struct region_layout *r, const struct process_id *me, struct ledger *l);

/* Clears and frees the slots for which `dead` says true; half-claimed ones are freed too where it says so (their
 * claimant, should it live, starts over). The caller holds the reap lock. Returns the number of slots freed. */
unsigned slot_clear_if(struct region_layout *r, bool (*dead)(const struct region_slot_id *id, void *arg), void *arg);

#endif
