/* The GPUs of a node as one snapshot, free of NVML and Kubernetes types. gpu/scan.c makes it, everything else reads it.
 */
#ifndef HM_MODEL_INVENTORY_H
#define HM_MODEL_INVENTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/names.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/mig.h"

enum link_kind { /* closer is larger */
		 LINK_NONE,
		 LINK_SYSTEM, /* across NUMA nodes */
		 LINK_NODE,   /* same NUMA node, other host bridges */
		 LINK_HOSTBRIDGE,
		 LINK_MULTI_SWITCH,
		 LINK_SINGLE_SWITCH,
		 LINK_BOARD,
		 LINK_NVLINK /* count in `nvlinks` */
};

/* From one card (the row) to another. */
struct card_link {
	enum link_kind kind;
	uint8_t nvlinks; /* number of NVLinks between the two, 0 where kind is not LINK_NVLINK */
	/* What kind and nvlinks are made of, for scores that count differently (model/score.h). */
	enum link_kind path; /* in the PCIe tree, whatever else joins them */
	uint8_t direct;      /* NVLinks straight to the other, as this card says; the other may say another number */
	uint8_t switched;    /* NVLinks to switches, of the card with fewer */
};

struct card {
	char uuid[HM_UUID_BYTES]; /* "GPU-..." */
	char model[96];           /* NVML's product name */
	char pci_bus_id[32];      /* "00000000:3B:00.0" */
	unsigned index;           /* NVML's */
	unsigned minor;           /* /dev/nvidia<minor> */
	uint64_t memory_bytes;    /* total, as NVML gives it; 0: it cannot tell */
	uint64_t reserved_bytes;  /* of it kept by driver and firmware, never for programs; 0 where NVML does not say */
	int numa_node;            /* -1: unknown */
	bool mig_enabled;
	struct mig_card mig; /* what MIG makes of it; devices only while it is enabled */
};

struct inventory {
	struct card *cards; /* in NVML's order; owned */
	size_t count;
	struct card_link *links; /* count x count, row by row; owned */
	char driver_version[80];
	int cuda_version; /* 1000 * major + 10 * minor */
	/* Cards that erred, for logs and hami-smi: "GPU 3: NVML says GPU is lost". */
	char **skipped;
	size_t skipped_count;
};

struct inventory *inventory_new(void); /* empty; NULL where memory is short */
void inventory_free(struct inventory *inv);
HM_DEFINE_AUTO(inventory, inventory_free);

const struct card *inventory_find(const struct inventory *inv, const char *uuid); /* NULL where absent */
struct card_link inventory_link(const struct inventory *inv, size_t a, size_t b);
bool inventory_equal(const struct inventory *a, const struct inventory *b);

#endif
