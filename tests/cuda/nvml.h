/* The few NVML calls that are needed here, by dlopen; NULL where they are missing. */
#ifndef HM_TESTS_CUDA_NVML_H
#define HM_TESTS_CUDA_NVML_H

#include "abi/nvml.h"

/* Loaded and initialised once; ends the program as not available where there is no NVML. */
void *nvml_symbol(const char *name);

/* NVML's handle of the card with this UUID. */
struct nvml_device *nvml_device_of(const char *uuid);

#define UUID_TEXT 41 /* GPU-, 32 digits, 4 dashes, NUL */

/* The UUID of a CUDA device as NVML writes it. */
void nvml_uuid_of(int card, char out[static UUID_TEXT]);

#endif
