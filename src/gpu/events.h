/* What the driver reports of a card of its own accord: Xid errors and double-bit ECC errors. Each card has an event set
 * of its own, so that one that errs is known and takes nothing from the others. Blocking calls that may hang: run them
 * in io/worker. */
#ifndef HM_GPU_EVENTS_H
#define HM_GPU_EVENTS_H

#include <stddef.h>

#include "core/err.h"

struct gpu_driver;

enum gpu_event_kind { GPU_EVENT_XID, GPU_EVENT_DOUBLE_BIT };

struct gpu_event {
	enum gpu_event_kind kind;
	unsigned xid;                            /* of GPU_EVENT_XID */
	unsigned gpu_instance, compute_instance; /* NVML_NO_INSTANCE: the card as a whole */
	unsigned count;                          /* how many of just these came */
};

/* What has come since the last call, equal ones counted together; waits for nothing. The first call of a card registers
 * it; what came before that is not told. At most cap different ones, *count of them;
 * what is left comes with the next call.
 *
 * -HM_EUNSUPPORTED: driver or card has no events (then never asked again until the driver is opened anew). Any other
 * error is the card's or the driver's, and the next call registers it anew. */
int gpu_events_take(struct gpu_driver *d, const char *uuid, struct gpu_event *out, size_t cap, size_t *count,
		    struct hm_err *e) HM_MUST_USE;

/* Ends the card's registration until the next take: for what wants a card that nobody holds open, such as a change of
 * the MIG mode. */
void gpu_events_release(struct gpu_driver *d, const char *uuid);

#endif
