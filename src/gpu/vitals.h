/* How a card is, asked for: does it answer, and what does the driver say it needs. Blocking calls that may hang: run
 * them in io/worker. */
#ifndef HM_GPU_VITALS_H
#define HM_GPU_VITALS_H

#include <stdbool.h>
#include <stdint.h>

struct gpu_driver;

enum gpu_answer {
	GPU_ANSWERS,
	GPU_ERRS,       /* it is there and a call that any card must answer failed */
	GPU_LOST,       /* fallen off the bus, or in need of a reset before it answers again */
	GPU_DRIVER_GONE /* says nothing of this card: the driver is being reloaded, or was */
};

enum { GPU_ACTION_UNKNOWN = -1 };

struct gpu_vitals {
	enum gpu_answer answer;
	char why[160];     /* where it does not answer: NVML's words */
	int action;        /* enum nvml_recovery, what the driver says must be done; GPU_ACTION_UNKNOWN before R565 */
	bool rows_pending; /* a row to be remapped or a page to be retired at the next reset */
	bool rows_failed;  /* there was no spare row */
	bool counts_ecc;
	uint64_t uncorrected; /* ECC errors since the driver was loaded or the card was reset */
};

void gpu_vitals_read(struct gpu_driver *d, const char *uuid, struct gpu_vitals *out);

/* "GPU reset", "node reboot", ...; never NULL. */
const char *gpu_action_text(int action);

#endif
