/* What the simulation reads of a PTX text: that it is one, its target, the names and parameters of its entries and the
 * sizes of its variables. It runs no PTX: kernels.h knows by name what a kernel does. */
#ifndef HM_SIM_CUDA_PTX_H
#define HM_SIM_CUDA_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PTX_ENTRIES = 64, PTX_PARAMS = 16, PTX_NAME_BYTES = 256, PTX_VARIABLES = 64 };
#define PTX_VARIABLE_BYTES ((uint64_t)1 << 40) /* each at most */

struct ptx_entry {
	char name[PTX_NAME_BYTES];
	unsigned params;
	unsigned param_bytes[PTX_PARAMS];
};

/* A variable in device memory, aligned to 256 bytes there. */
struct ptx_variable {
	char name[PTX_NAME_BYTES];
	uint64_t offset, bytes;
};

enum ptx_result { PTX_OK, PTX_BAD, PTX_NO_MEMORY };

struct ptx {
	unsigned target; /* 75 for sm_75 */
	unsigned count;
	struct ptx_entry *entries; /* heap, the caller's to free: ptx_clear */
	unsigned variable_count;
	struct ptx_variable *variables;
	uint64_t variable_bytes; /* of all */
	size_t text_bytes;
};

void ptx_clear(struct ptx *p);
enum ptx_result ptx_read(const char *text, size_t n, struct ptx *out);

#endif
