/* A card's memory ledger and compute engine, on the shared state: the same code in every client and in hami-simd.
 *
 * Engine: processes with queued work take turns of SIM_QUANTUM_NS in order of their numbers; a process whose queue
 * empties gives its turn up. Nobody runs it in the background: whoever looks at it (submits, waits, samples) first runs
 * it up to the present, under the card's lock, so that every arrival is placed at its exact time. */
#ifndef HM_SIM_ENGINE_H
#define HM_SIM_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/macros.h"
#include "sim/lib/sim_client.h"
#include "sim/lib/sim_state.h"

uint64_t sim_monotonic_ns(void);
uint64_t sim_clock_now(const struct sim_node *n);

/* `owner` is a process number + 1 or SIM_LOCK_DAEMON. False after SIM_LOCK_PATIENCE_NS: the owner is stopped (a dead
 * one's lock is broken by the daemon). */
#define SIM_LOCK_PATIENCE_NS 5000000000ULL
bool sim_card_lock(struct sim_card *c, uint32_t owner) HM_MUST_USE;
bool sim_card_try_lock(struct sim_card *c, uint32_t owner) HM_MUST_USE;
void sim_card_unlock(struct sim_card *c);

/* All below: the caller holds the card's lock. */

/* SIM_OK where the process may use the card (its first use is noted), SIM_LOST where what it had there is gone. */
enum sim_result sim_share_enter(struct sim_card *c, unsigned process);
enum sim_result sim_ledger_charge(struct sim_card *c, unsigned process, enum sim_mem_kind kind, uint64_t bytes);
enum sim_result sim_ledger_release(struct sim_card *c, unsigned process, enum sim_mem_kind kind, uint64_t bytes);
/* Takes all of a process's memory and work off the card and sums the ledger anew. */
void sim_share_clear(struct sim_card *c, unsigned process);

/* Runs the engine up to `now`; an earlier `now` does nothing. */
void sim_engine_advance(struct sim_node *n, unsigned card, uint64_t now);
/* What is submitted next waits at its begin, on the card, until the other of two with this key has begun as well.
 * False: too many wait. */
bool sim_engine_meet(struct sim_node *n, unsigned card, unsigned process, uint64_t key) HM_MUST_USE;
uint64_t sim_engine_submit(struct sim_card *c, unsigned process, uint64_t busy_ns); /* the ticket */
/* After sim_engine_advance: the earliest time at which the ticket can be done, exact unless others come or go; 0 where
 * it is done. */
uint64_t sim_engine_expect(const struct sim_card *c, unsigned process, uint64_t ticket);
/* After sim_engine_advance: nanoseconds until the running process's turn or queue ends, UINT64_MAX while idle. */
uint64_t sim_engine_turn_left(const struct sim_node *n, unsigned card, unsigned *process);
/* Does it occupy the card with a kernel that waits for another? */
bool sim_engine_spins(const struct sim_node *n, unsigned card, unsigned process);
/* When the ticket was reached; false where it is not yet, or too long ago (SIM_RUN_LOG stretches). */
bool sim_engine_end_of(const struct sim_node *n, unsigned card, unsigned process, uint64_t ticket,
		       uint64_t *ns) HM_MUST_USE;

#endif
