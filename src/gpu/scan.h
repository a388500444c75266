/* NVML to model/inventory. Blocking calls that may hang: run it in io/worker. */
#ifndef HM_GPU_SCAN_H
#define HM_GPU_SCAN_H

#include "core/cleanup.h"
#include "core/err.h"
#include "model/inventory.h"

struct gpu_driver; /* a loaded and initialised NVML */

/* dlopen (NULL: "libnvidia-ml.so.1" by the loader's search) and nvmlInit_v2. -HM_ENOTFOUND: no such library;
 * -HM_EAGAIN: the library is there, the driver is not ready (try later); -HM_EPERM: it may not be used by us;
 * -HM_EUNSUPPORTED: the library is no NVML. The message names path and NVML's text. */
int gpu_driver_open(const char *library_path, struct gpu_driver **out, struct hm_err *e) HM_MUST_USE;
void gpu_driver_close(struct gpu_driver *d); /* nvmlShutdown, dlclose */
HM_DEFINE_AUTO(gpu_driver, gpu_driver_close);

/* Where PCI devices are described, instead of /sys/bus/pci/devices (tests, another root). */
int gpu_driver_set_sysfs(struct gpu_driver *d, const char *root, struct hm_err *e) HM_MUST_USE;

/* A card that errs is named in `skipped`, the others serve. Fails only where the count itself cannot be read. */
int gpu_scan(struct gpu_driver *d, struct inventory **out, struct hm_err *e) HM_MUST_USE;

/* Processes on a card as the driver sees them (host pids). */
struct gpu_process {
	unsigned pid;
	uint64_t used_bytes; /* UINT64_MAX: not available */
};
/* Fills at most cap; *count may be larger than cap. -HM_ENOTFOUND no such card; -HM_EUNSUPPORTED. */
int gpu_processes(struct gpu_driver *d, const char *uuid, struct gpu_process *out, size_t cap, size_t *count,
		  struct hm_err *e) HM_MUST_USE;
/* Memory of a card as the driver sees it. `used` leaves out what driver and firmware keep, where NVML tells the two
 * apart. */
int gpu_memory(struct gpu_driver *d, const char *uuid, uint64_t *total, uint64_t *used, struct hm_err *e) HM_MUST_USE;
/* Share of the last sample period (1/6 s to 1 s) in which the card ran kernels, or moved memory. */
int gpu_utilization(struct gpu_driver *d, const char *uuid, unsigned *busy_percent, unsigned *memory_percent,
		    struct hm_err *e) HM_MUST_USE;

#endif
