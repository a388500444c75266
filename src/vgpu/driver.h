/* The two driver libraries, libcuda.so.1 and libnvidia-ml.so.1, as the program has loaded them. */
#ifndef HM_VGPU_DRIVER_H
#define HM_VGPU_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

enum driver_library { DRIVER_CUDA, DRIVER_NVML, DRIVER_LIBRARIES };

/* A function that the library exports; NULL: it lacks it, or is not loaded. */
void *driver_symbol(enum driver_library lib, const char *name);
/* Loads the library, unless the program has. False: there is none. */
bool driver_load(enum driver_library lib);
/* Does this address lie in the library? */
bool driver_contains(enum driver_library lib, uintptr_t address);
/* The same of a library that may be loaded this moment: reads what the linker knows and nothing else. */
bool driver_contains_now(enum driver_library lib, uintptr_t address);
/* The library of a function's name. */
enum driver_library driver_of_name(const char *name);

/* dlsym and its like as libc has them, whoever overrides them; where there are none, functions that answer NULL. */
typedef void *dlsym_function(void *handle, const char *name);
typedef void *dlvsym_function(void *handle, const char *name, const char *version);
typedef void *dlopen_function(const char *name, int flags);
typedef char *dlerror_function(void);
dlsym_function *libc_dlsym(void);
dlvsym_function *libc_dlvsym(void);
dlopen_function *libc_dlopen(void);
dlerror_function *libc_dlerror(void);

#endif
