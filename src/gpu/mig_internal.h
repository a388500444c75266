/* Between mig.c and mig_read.c. */
#ifndef HM_GPU_MIG_INTERNAL_H
#define HM_GPU_MIG_INTERNAL_H

#include "gpu/driver.h"
#include "model/mig.h"

enum { MIG_MAX_INSTANCES = 64 }; /* more than any card has of a profile */

/* By the driver's number; NULL where the card has none. */
const struct mig_profile *mig_profile_by_id(const struct mig_card *m, unsigned id);

/* The MIG device behind a handle; false where it is gone. */
bool mig_device_read(struct gpu_driver *d, struct nvml_device *card, const struct mig_card *m, struct nvml_device *mig,
		     struct mig_device *out) HM_MUST_USE;

#endif
