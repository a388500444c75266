/* The driver as the agent sees it: NVML in the worker thread, scanned again and again, so that a driver that is not
 * there yet, reloads or hangs is met without anyone waiting for it. */
#ifndef HM_AGENT_CARDS_DRIVER_H
#define HM_AGENT_CARDS_DRIVER_H

#include <stdbool.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "io/worker.h"
#include "model/inventory.h"

enum {
	DRIVER_RETRY_MS = 1000,  /* after a failure */
	DRIVER_RESCAN_MS = 5000, /* after a success */
	DRIVER_HANG_MS = 3000,   /* an NVML call that takes longer is said to hang */
};

struct driver_listener {
	/* After each scan, in the loop: the cards (valid until it returns), or NULL and why. */
	void (*scanned)(void *arg, const struct inventory *inv, const struct hm_err *e);
	void *arg;
};

struct driver;
struct gpu_driver;

/* Where NVML is; texts may be NULL. */
struct driver_place {
	const char *library; /* this one, and no other */
	const char *root;    /* else the one below this (agent/options/nvml_library.h), else the loader's */
};

/* Starts the first scan at once. What `place` names and the worker are borrowed. */
int driver_new(struct loop *l, struct worker *w, const struct driver_place *place,
	       const struct driver_listener *listener, struct driver **out, struct hm_err *e) HM_MUST_USE;
/* No more scans; NVML is closed in the worker, then `closed` is called from the loop. Never, where NVML hangs. */
void driver_stop(struct driver *d, void (*closed)(void *arg), void *arg);
/* After worker_free only. Where the worker did not end, the rest is left to the process's end. */
void driver_free(struct driver *d, bool worker_ended);

/* The next scan comes now, not at its time. For who saw that the driver is gone, or changed the cards; at most one each
 * DRIVER_RETRY_MS. */
void driver_scan_soon(struct driver *d);

/* NVML, for other jobs of the worker, in its thread and until the job returns: NULL while there is none. */
struct gpu_driver *driver_gpu(const struct driver *d);

/* Milliseconds that the call in hand has taken where it is taken for hung, else 0. */
uint64_t driver_hung_ms(const struct driver *d);

#endif
