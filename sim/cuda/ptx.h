/* What the simulation reads of a PTX text: that it is one, its target, and the names and parameters of its entries. It
 * runs no PTX: kernels.h knows by name what a kernel does. */
#ifndef HM_SIM_CUDA_PTX_H
#define HM_SIM_CUDA_PTX_H

#include <stdbool.h>
#include <stddef.h>

enum { PTX_ENTRIES = 64, PTX_PARAMS = 16, PTX_NAME_BYTES = 256 };

struct ptx_entry {
	char name[PTX_NAME_BYTES];
	unsigned params;
	unsigned param_bytes[PTX_PARAMS];
};

enum ptx_result { PTX_OK, PTX_BAD, PTX_NO_MEMORY };

struct ptx {
	unsigned target; /* 75 for sm_75 */
	unsigned count;
	struct ptx_entry *entries; /* heap, the caller's to free */
};

enum ptx_result ptx_read(const char *text, size_t n, struct ptx *out);

#endif
