/* The loaded NVML, for this folder only. */
#ifndef HM_GPU_DRIVER_H
#define HM_GPU_DRIVER_H

#include <stdbool.h>

#include "abi/nvml_mig.h"
#include "core/err.h"
#include "gpu/scan.h"

struct gpu_driver {
	void *library;
	bool initialised;
	char *sysfs;               /* owned; root of /sys/bus/pci/devices */
	struct event_sets *events; /* owned; NULL until they are asked for (events.c) */
#define X(call, core) __typeof__(call) *call;
#include "gpu/nvml_calls.def"
#undef X
};

/* Calls d->call(...), or says NVML_ERROR_FUNCTION_NOT_FOUND where the library lacks it. */
#define NVML(d, call, ...) ((d)->call == NULL ? NVML_ERROR_FUNCTION_NOT_FOUND : (d)->call(__VA_ARGS__))

/* NVML's text of a result; never NULL. */
const char *driver_error_text(const struct gpu_driver *d, int result);

/* Sets "<call>: NVML says <text>" (or that the library lacks it) and returns the negative code that fits. */
int driver_error(const struct gpu_driver *d, int result, const char *call, struct hm_err *e);

/* The card's handle, by UUID. */
int driver_card(struct gpu_driver *d, const char *uuid, struct nvml_device **out, struct hm_err *e) HM_MUST_USE;

/* A UUID becomes part of device ids, env and paths: one plain word, or it is none of ours. */
bool driver_plain_word(const char *text, size_t cap);

/* What MIG makes of a card: profiles, and devices while its mode is on. What cannot be read is left out. */
void mig_read(struct gpu_driver *d, struct nvml_device *handle, struct card *card);

/* Before nvmlShutdown: gives the driver its event sets back. */
void driver_free_events(struct gpu_driver *d);

/* Fills the links of an inventory whose cards are done; handles[i] is card i. What cannot be read is LINK_NONE. */
void links_read(struct gpu_driver *d, struct nvml_device *const *handles, struct inventory *inv);

#endif
