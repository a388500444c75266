/* MIG as a node sees it: what a card can be cut into, and what it is cut into now. Pure.
 *
 * A profile's name is its key, all of it: "1g.5gb", "1g.5gb+me" and "1g.10gb" are three profiles. Placements count in
 * memory slices of the card (eight on those known), and two instances never share one; that the compute slices are
 * there follows from it. */
#ifndef HM_MODEL_MIG_H
#define HM_MODEL_MIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/names.h"
#include "core/macros.h"
#include "model/mig_allowlist.h"

enum {
	MIG_NAME_BYTES = 32,
	MIG_MAX_PROFILES = 24, /* NVML knows 18 */
	MIG_MAX_STARTS = 16,
	MIG_MAX_DEVICES = 16, /* of a card; drivers say 7 */
};
#define MIG_NO_ID 0xffffffffU

struct mig_placement {
	uint32_t start, size;
};

struct mig_profile {
	char name[MIG_NAME_BYTES];
	unsigned id;        /* the driver's number, what instances are made by */
	unsigned slices;    /* compute slices of an instance */
	unsigned instances; /* of them at most on a card */
	unsigned multiprocessors;
	uint64_t memory_mib;
	uint32_t size; /* memory slices of an instance; 0: placements not known */
	uint32_t starts[MIG_MAX_STARTS];
	size_t start_count;
};

/* An instance that exists and that programs can use. */
struct mig_device {
	char uuid[HM_UUID_BYTES];     /* "MIG-..." */
	char profile[MIG_NAME_BYTES]; /* of its GPU instance; "" where it could not be told */
	unsigned gi, ci;              /* numbers of its GPU instance and compute instance */
	struct mig_placement at;      /* size 0: not known */
	uint64_t memory_mib;
	bool whole; /* it has all compute slices of its GPU instance */
};

struct mig_card {
	bool capable, enabled, pending; /* `pending`: what the mode will be after a reset */
	struct mig_profile profiles[MIG_MAX_PROFILES];
	size_t profile_count;
	struct mig_device devices[MIG_MAX_DEVICES];
	size_t device_count;
	struct mig_device bare[MIG_MAX_DEVICES]; /* GPU instances without a compute instance: no devices; uuid "" */
	size_t bare_count;
};

bool mig_card_equal(const struct mig_card *a, const struct mig_card *b);

/* By name. First the same name; else the one profile of the same slices and suffix whose memory differs by at most 5 %,
 * as lists that round it otherwise have it ("7g.79gb" of an A100 80GB). NULL: none, or several. */
const struct mig_profile *mig_find_profile(const struct mig_card *c, const char *name);
const struct mig_device *mig_find_device(const struct mig_card *c, const char *uuid);

/* "nvidia.com/mig-<profile>": '+' is '.' there. False where it does not fit. */
bool mig_resource_name(const char *profile, char *out, size_t cap) HM_MUST_USE;

/* "1g.10gb" from what drivers say that give no name: slices, memory as a part of the card's, the suffix ("+me"). */
void mig_make_name(unsigned slices, uint64_t memory_mib, uint64_t card_mib, const char *suffix, char *out, size_t cap);

/* A percentage of the card's multiprocessors, rounded up; `most` is the largest profile's. */
unsigned mig_cores(const struct mig_profile *p, const struct mig_card *c);
/* How many devices a card can be cut into at most: the largest number of instances of one of the profiles allowed. */
unsigned mig_most_instances(const struct mig_profile *profiles, size_t count);

/* The profiles of the card that the list's first item for it names, under the list's names, in its order; the list
 * NULL: all that need no engine of the card's own ("+me" and the like). *listed false: no item is for it, so it has
 * none. */
size_t mig_allowed(const struct mig_allowlist *list, const char *model, uint64_t memory_bytes, const struct mig_card *c,
		   struct mig_profile out[MIG_MAX_PROFILES], bool *listed);

bool mig_overlaps(struct mig_placement a, struct mig_placement b);
/* May an instance of this profile stand there at all? */
bool mig_may_stand(const struct mig_profile *p, struct mig_placement at);

/* Does `pattern`, one of an allowlist's models, mean a card of this name and memory? Either it is a part of the name,
 * as HAMi has it; or all its words are ("A100-80GB-PCIe" is "NVIDIA A100 80GB PCIe"), where a word of memory may be the
 * card's instead of the name's ("H100-PCIE-80GB" is "NVIDIA H100 PCIe"), and SXM, which no name of these cards has,
 * means neither PCIe nor NVL ("H100-SXM5-80GB" is "NVIDIA H100 80GB HBM3"). Case is of no matter. */
bool mig_model_matches(const char *pattern, const char *model, uint64_t memory_bytes);

#endif
