/* The set of live handles of this process, so that a stale or wild one is answered INVALID_HANDLE and never followed.
 * Under the lock of state.h. */
#ifndef HM_SIM_CUDA_HANDLES_H
#define HM_SIM_CUDA_HANDLES_H

#include <stdbool.h>

#include "core/macros.h"

enum cu_handle {
	CU_CONTEXT = 1,
	CU_STREAM,
	CU_EVENT,
	CU_MODULE,
	CU_LIBRARY,
	CU_FUNCTION,
	CU_POOL,
	CU_PHYSICAL,
	CU_ARRAY,
	CU_MIPMAP,
	CU_GRAPH,
	CU_NODE,
	CU_EXEC,
	CU_EXTERNAL,
	CU_RESOURCES,
	CU_GREEN,
};

bool cu_handle_add(const void *object, enum cu_handle kind) HM_MUST_USE; /* false: out of memory */
void cu_handle_remove(const void *object);
bool cu_handle_is(const void *object, enum cu_handle kind);

#endif
