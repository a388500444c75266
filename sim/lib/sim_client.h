/* How the simulated driver libraries (libcuda.so.1, libnvidia-ml.so.1) reach the shared node: hami-simd on a socket in
 * $HAMI_SIM_DIR (it learns the host pid by SO_PEERCRED and a death by EOF) and a shared memory file for what is hot.
 * Used inside other people's processes: no exit, no output, no heap on hot paths. Thread-safe. */
#ifndef HM_SIM_CLIENT_H
#define HM_SIM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/lib/sim_state.h" /* the shared memory's layout: node, cards, processes, counters */

/* NVML-style and CUDA-style codes are the callers' business; these are ours. */
enum sim_result {
	SIM_OK = 0,
	SIM_NO_NODE,   /* HAMI_SIM_DIR unset, or no hami-simd there */
	SIM_NO_CARD,   /* index out of range */
	SIM_NO_MEMORY, /* the card is full */
	SIM_LOST,      /* the card fell off the bus */
	SIM_NOT_FOUND, /* unknown allocation */
	SIM_RELOADED,  /* the driver was reloaded under us: everything this process held is gone */
	SIM_FAILED
};

/* Connects once per process (again after fork: the child starts with nothing). Cheap when connected. */
enum sim_result sim_attach(void);
const struct sim_node *sim_node(void); /* read-only view; NULL before sim_attach */
/* Forgets the node where this process holds nothing on it, so that sim_attach can find a reloaded driver. */
void sim_detach(void);
/* SIM_OK, or SIM_LOST while the card is off the bus or this process's state on it is gone. */
enum sim_result sim_card_state(unsigned card);

/* Charges and returns device memory of this process on a card: bytes are rounded up by the caller. `kind` is for status
 * displays: context overhead or data. Atomic against other processes; never above the card's memory. */
enum sim_mem_kind { SIM_MEM_DATA, SIM_MEM_CONTEXT };
enum sim_result sim_mem_charge(unsigned card, enum sim_mem_kind kind, uint64_t bytes);
enum sim_result sim_mem_release(unsigned card, enum sim_mem_kind kind, uint64_t bytes);
/* By all, stray holds and reserved included; of a process on a compute instance: by all on its GPU instance. */
uint64_t sim_mem_used(unsigned card);
/* From here on this process is on that compute instance (its `live`) of the card: its memory is that one's. */
enum sim_result sim_mig_enter(unsigned card, uint32_t live);
uint64_t sim_mem_own(unsigned card); /* by this process, context included */

/* Compute: queues `busy_ns` of work of this process on the card's engine behind what this process queued before;
 * *ticket names its end. Time slices between processes; on a virtual clock sim_work_wait advances it instead of
 * sleeping. */
enum sim_result sim_work_submit(unsigned card, uint64_t busy_ns, uint64_t *ticket);
/* The same; at its begin it waits, on the card, until the other of two with this key (not 0) has begun too. */
enum sim_result sim_work_submit_meeting(unsigned card, uint64_t key, uint64_t busy_ns, uint64_t *ticket);
bool sim_work_done(unsigned card, uint64_t ticket);
enum sim_result sim_work_wait(unsigned card, uint64_t ticket); /* SIM_LOST where the card is lost meanwhile */
uint64_t sim_now_ns(void);                                     /* the node's clock: wall or virtual */
/* When (sim_now_ns) the ticket was reached, for event timing. busy_ns 0 gives a ticket that ends with what was queued
 * before. SIM_NOT_FOUND: not reached yet, or more than SIM_RUN_LOG interruptions ago, or nothing was ever queued. */
enum sim_result sim_work_end_ns(unsigned card, uint64_t ticket, uint64_t *ns);
enum sim_result sim_sleep_until(uint64_t ns); /* the node's clock; advances a virtual one */
/* The same; a virtual clock stands still until so many wait (0: it does not ask), as where several begin together. */
enum sim_result sim_sleep_together(uint64_t ns, unsigned waits);
enum sim_result sim_sync(void); /* all cards' engines up to now, utilisation samples with them */

/* Fault injection for `call` (an NVML name) on a card: the code to answer, or 0. `nvml-hang` sleeps inside. */
int sim_nvml_fault(unsigned card, const char *call);
/* The same without the hang, for calls about no card in particular: those obey card 0's errors. */
int sim_nvml_code(unsigned card, const char *call);

#endif
