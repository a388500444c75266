/* The map that cuGetProcAddress answers from, made at build time from abi/cuda_symbols.txt: addresses of our own
 * functions, so that no other library's lookup is ever asked. */
#ifndef HM_SIM_CUDA_PROC_ADDRESS_H
#define HM_SIM_CUDA_PROC_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

struct proc_export {
	const char *name; /* without suffix */
	int version;      /* from which this variant is the name's */
	bool per_thread;  /* default stream of the calling thread */
	void (*address)(void);
};

/* Sorted by name, then stream class, then version. */
extern const struct proc_export proc_exports[];
extern const size_t proc_export_count;

#endif
