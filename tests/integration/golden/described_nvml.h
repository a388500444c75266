/* What the two halves of the described NVML tell each other. */
#ifndef HM_TESTS_GOLDEN_DESCRIBED_NVML_H
#define HM_TESTS_GOLDEN_DESCRIBED_NVML_H

#include "abi/nvml_mig.h"

enum { CARDS = 16, MIG_DEVICES = 7 };

struct profile {
	char name[32], starts[64]; /* "0,2,4" */
	unsigned slices, instances, mib, sms, size;
};

const struct profile *described_profile(unsigned id); /* NULL: there is none */
unsigned described_index(struct nvml_device *card);

/* The name of a MIG device; NULL: it is a card. */
const char *described_mig_uuid(struct nvml_device *device);

#endif
