/* Handles, and what every call begins with. */
#ifndef HM_SIM_NVML_HANDLE_H
#define HM_SIM_NVML_HANDLE_H

#include "abi/nvml.h"
#include "sim/lib/sim_client.h"

/* The node while initialised; else NVML_ERROR_UNINITIALIZED, or NVML_ERROR_DRIVER_NOT_LOADED after a reload or the
 * node's end until nvmlShutdown and nvmlInit. `call` is __func__: an injected error of that name is answered. */
int node_enter(const char *call, const struct sim_node **node);

/* The card behind a handle: as node_enter, NVML_ERROR_INVALID_ARGUMENT for no handle of ours, hangs and errors as
 * injected, NVML_ERROR_GPU_IS_LOST. */
int card_enter(const char *call, const struct nvml_device *device, const struct sim_card **card, unsigned *number);

/* Visible cards. */
unsigned visible_count(void);
unsigned visible_card(unsigned index); /* its number on the node */
int visible_index(unsigned number);    /* -1: not visible */
struct nvml_device *handle_of(unsigned number);
/* The number behind a handle that may be lost or hang; false where it is none of ours. */
bool handle_number(const struct nvml_device *device, unsigned *number);

/* MIG devices of a card, by their place in mig_cis. */
struct nvml_device *mig_handle_of(unsigned number, unsigned place);
bool is_mig_handle(const struct nvml_device *device);
/* As card_enter, of a MIG device and the card that it is on; NVML_ERROR_INVALID_ARGUMENT where it is no more. */
int mig_enter(const char *call, const struct nvml_device *device, const struct sim_card **card, unsigned *number,
	      const struct sim_mig_ci **mig);

/* Result of a copy into a caller's buffer. */
int copy_text(const char *text, char *out, unsigned length);

/* The common shape: enter, check out, then the body with `c` (const struct sim_card *) at hand. */
#define CARD(device, out)                                                                                              \
	const struct sim_card *c = NULL;                                                                               \
	unsigned number = 0;                                                                                           \
	int entered = card_enter(__func__, device, &c, &number);                                                       \
                                                                                                                       \
	if (entered == NVML_SUCCESS && (out) == NULL)                                                                  \
		entered = NVML_ERROR_INVALID_ARGUMENT;                                                                 \
	if (entered != NVML_SUCCESS)                                                                                   \
	return entered

/* The same for calls that serve MIG devices as well: `m` is that one, or NULL for a card's own handle. */
#define DEVICE(device, out)                                                                                            \
	const struct sim_card *c = NULL;                                                                               \
	const struct sim_mig_ci *m = NULL;                                                                             \
	unsigned number = 0;                                                                                           \
	int entered = is_mig_handle(device) ? mig_enter(__func__, device, &c, &number, &m)                             \
					    : card_enter(__func__, device, &c, &number);                               \
                                                                                                                       \
	if (entered == NVML_SUCCESS && (out) == NULL)                                                                  \
		entered = NVML_ERROR_INVALID_ARGUMENT;                                                                 \
	if (entered != NVML_SUCCESS)                                                                                   \
	return entered

/* A call that answers one number of a card; `value` may name `c` and `number`. */
#define ANSWER(function, value)                                                                                        \
	int function(struct nvml_device *device, unsigned *out)                                                        \
	{                                                                                                              \
		CARD(device, out);                                                                                     \
		*out = (value);                                                                                        \
		return NVML_SUCCESS;                                                                                   \
	}

#endif
