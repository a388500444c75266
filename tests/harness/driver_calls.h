/* For programs that find the driver's functions themselves, by dlopen and dlsym: before this is included, DRIVER_CALLS
 * is a list of X(name); they are then the members of `cuda`. */
#ifndef HM_TESTS_HARNESS_DRIVER_CALLS_H
#define HM_TESTS_HARNESS_DRIVER_CALLS_H

#include <dlfcn.h>
#include <string.h>

#include "abi/cuda_api.h"
#include "core/macros.h"

#ifndef DRIVER_CALLS
#define DRIVER_CALLS X(cuInit)
#endif

static struct {
#define X(name) __typeof__(&name) name;
	DRIVER_CALLS
#undef X
} cuda;

/* NULL, or the name of what is missing. */
HM_MUST_USE static inline const char *driver_calls_load(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (lib == NULL)
		return "libcuda.so.1";
#define X(name)                                                                                                        \
	{                                                                                                              \
		void *p = dlsym(lib, #name);                                                                           \
		if (p == NULL)                                                                                         \
			return #name;                                                                                  \
		memcpy(&cuda.name, &p, sizeof p);                                                                      \
	}
	DRIVER_CALLS
#undef X
	return NULL;
}

#endif
