/* Where NVML is: HAMi's order, for nodes whose driver is installed in a root of its own (--driver-root-ctr-path). */
#ifndef HM_AGENT_OPTIONS_NVML_LIBRARY_H
#define HM_AGENT_OPTIONS_NVML_LIBRARY_H

#include <limits.h>
#include <stdbool.h>

/* libnvidia-ml.so.1 below the root, links followed (an absolute one is taken from the root on). False where there is
 * none, and for a root that is NULL, "" or "/": then the loader looks for it. */
bool nvml_library_find(const char *root, char out[PATH_MAX]);

#endif
