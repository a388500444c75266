/* A CUDA driver in this process, with exact books and nothing else, behind libvgpu's own code (which is linked in, not
 * preloaded). It hands out addresses and knows what each card has given away, as a real driver does: pages of 2 MiB.
 * Several processes share one world. What it lacks libvgpu sees as a driver that lacks it. */
#ifndef HM_FUZZ_CALLS_FAKE_H
#define HM_FUZZ_CALLS_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_api.h"

enum { FAKE_CARDS = 2, FAKE_PROCESSES = 8, FAKE_OBJECTS = 256, FAKE_PAGES = 256 };

#define FAKE_PAGE (UINT64_C(2) << 20)
#define FAKE_CONTEXT_BYTES (UINT64_C(6) << 20)

struct fake_process {
	uint32_t pid; /* 0: none */
	uint32_t contexts[FAKE_CARDS];
	uint64_t taken[FAKE_CARDS], strict[FAKE_CARDS];
	/* Left here by the model for the other processes: what is charged; what of it may be above the limit. */
	uint64_t charged[FAKE_CARDS], loose[FAKE_CARDS];
};

/* Shared by all processes of a run. */
struct fake_world {
	uint64_t limit[FAKE_CARDS];
	/* All that the processes have; of that, what may never pass the limit, not even for the length of a call. */
	_Atomic uint64_t taken[FAKE_CARDS], strict[FAKE_CARDS];
	_Atomic uint32_t overruns; /* times that `strict` was above the limit */
	uint64_t pool_step;        /* pools grow by multiples of this */
	bool deferred_arrays;      /* the driver tells what an array needs */
	bool nvml;                 /* lists of processes can be had */
	struct fake_process processes[FAKE_PROCESSES];
};

/* This process becomes number `index` of the world, with nothing. */
void fake_attach(struct fake_world *world, unsigned index);
/* The driver frees all that a dead process had. */
void fake_bury(struct fake_world *world, unsigned index);

/* The next call that would take memory answers this instead. */
void fake_fail_next(CUresult rc);
/* The next call that would free answers CUDA_ERROR_LAUNCH_FAILED, as a driver does after a fault on the card. */
void fake_keep_next(void);
/* The next import gets the address of this allocation. */
void fake_alias_next(CUdeviceptr ptr);
/* True once: the failure asked for has happened. */
bool fake_failed(void);
_Noreturn void fake_die(void);
/* Kills this process at the n-th change of the books from now; 0: does not. */
void fake_die_at(unsigned n);

/* What a pool, or a card's graphs (pool NULL), hold and use. */
void fake_pool_state(CUmemoryPool pool, int card, uint64_t *reserved, uint64_t *used);
/* Not hooked: the program calls the driver's own. */
void fake_set_current(CUcontext context);
void fake_map_reserve(CUdeviceptr *out);
void fake_map_free(CUdeviceptr ptr);
CUgraph fake_graph_new(int card, const uint64_t *bytes, unsigned count, bool together);
void fake_graph_free(CUgraph graph);
CUmemoryPool fake_default_pool(int card);

#endif
