/* Changes a card's MIG. Blocking calls that may hang, for root: run them in io/worker. */
#ifndef HM_GPU_MIG_H
#define HM_GPU_MIG_H

#include <stdbool.h>

#include "core/err.h"
#include "model/mig.h"

struct gpu_driver;

/* The card's MIG as it is now. -HM_ENOTFOUND: no such card. */
int gpu_mig_read(struct gpu_driver *d, const char *uuid, struct mig_card *out, struct hm_err *e) HM_MUST_USE;

/* MIG mode on, or it was on already. -HM_EAGAIN: the card is in use, or a reset must come first; -HM_EUNSUPPORTED: the
 * card has no MIG. */
int gpu_mig_enable(struct gpu_driver *d, const char *uuid, struct hm_err *e) HM_MUST_USE;

/* The instance of this profile (by name, mig_find_profile) that stands there, with all of its compute slices: one that
 * stands there already, also half made, or a new one. What was made is ended again where a later step fails.
 * -HM_EINVAL: the card has no such profile, or it may never stand there; -HM_ELIMIT: the place is taken. */
int gpu_mig_ensure(struct gpu_driver *d, const char *uuid, const char *profile, struct mig_placement at,
		   struct mig_device *out, struct hm_err *e) HM_MUST_USE;

/* Ends the GPU instance with this number and all its compute instances, if it is still the one that stood at this
 * placement: a number is given again. -HM_ENOTFOUND: it is not; -HM_EAGAIN: a process is on it, and nothing has
 * changed.
 */
int gpu_mig_destroy(struct gpu_driver *d, const char *uuid, unsigned gi, struct mig_placement at,
		    struct hm_err *e) HM_MUST_USE;

/* Ends every instance of the card, of every profile. On an error some are left; the message names the first. */
int gpu_mig_clear(struct gpu_driver *d, const char *uuid, struct hm_err *e) HM_MUST_USE;

#endif
