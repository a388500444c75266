/* What the simulation knows of kernels: by the name of their PTX entry, how long a wave of them runs and what they do
 * to memory. tests/harness/kernels.ptx has the same kernels for a real card. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_KERNELS_H
#define HM_SIM_CUDA_KERNELS_H

#include "sim/cuda/module.h"

struct cu_launch {
	struct CUfunc_st *function;
	unsigned grid[3], block[3];
	unsigned shared_bytes;
	unsigned sms;                /* that it may use; 0: all */
	bool dry;                    /* look whether it can be launched, no more */
	bool cooperative;            /* all blocks at once, or not at all */
	uint64_t params[PTX_PARAMS]; /* each by its first 8 bytes */
};

/* Blocks of so many threads, and so much shared memory, that one SM holds at once; 0: none fits. */
unsigned cu_resident_blocks(unsigned device, unsigned threads, uint64_t shared_bytes);

/* How often the card is filled until all blocks have run. */
uint64_t cu_kernel_waves(unsigned device, const struct cu_launch *l);

/* The key of the meeting for which the kernel waits at its begin; 0: it does not. */
uint64_t cu_kernel_meets(const struct cu_launch *l);

/* Does the kernel's work on memory and says how long it occupies the card. ILLEGAL_ADDRESS where it would touch what
 * is not its; NOT_SUPPORTED where the name is not known. */
CUresult cu_kernel_run(unsigned device, const struct cu_launch *l, uint64_t *busy_ns);

#endif
