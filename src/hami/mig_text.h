/* hami.io/vgpu-mig-allocations of a pod: which MIG instance each of its devices is. The scheduler reserves (card,
 * profile, placement); the agent adds the ids of the instance that it made. Members that we do not know are kept.
 * docs/contracts/hami-annotations.md */
#ifndef HM_HAMI_MIG_TEXT_H
#define HM_HAMI_MIG_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "contract/names.h"
#include "core/cleanup.h"
#include "core/err.h"

enum { MIG_TEXT_MAX_BYTES = 256 * 1024, MIG_TEXT_MAX_RECORDS = 1024, MIG_PROFILE_BYTES = 32 };

struct cJSON;

struct mig_record {
	uint32_t container; /* as entries of the device text: init containers first */
	uint32_t device;    /* position in the container's entry */
	char gpu_uuid[HM_UUID_BYTES];
	char profile[MIG_PROFILE_BYTES]; /* "2g.10gb" */
	uint32_t start, size;            /* placement, in memory slices */
	bool made;                       /* the instance's ids are known: */
	char mig_uuid[HM_UUID_BYTES];
	uint32_t gpu_instance, compute_instance;
	struct cJSON *others; /* owned; members of other programs, or NULL */
};

struct mig_allocations {
	struct mig_record *records; /* owned */
	size_t count, cap;
};

void mig_allocations_fini(struct mig_allocations *m);
static inline void mig_allocations_auto_fini(struct mig_allocations *m)
{
	mig_allocations_fini(m);
}
/* A local: hm_auto_mig_allocations m = { 0 }; */
#define hm_auto_mig_allocations __attribute__((cleanup(mig_allocations_auto_fini))) struct mig_allocations

/* NULL and "" are an empty list. -HM_EPROTO (no JSON), -HM_EINVAL with the place (an empty name, a placement of size
 * 0, some but not all of the instance's ids, the same container and device twice), -HM_ELIMIT, -HM_ENOMEM. *out needs
 * mig_allocations_fini on success. */
int mig_text_parse(const char *text, struct mig_allocations *out, struct hm_err *e) HM_MUST_USE;

/* Appends the annotation's value, in HAMi's order of members with others' behind them. */
void mig_text_write(const struct mig_allocations *m, struct str *out);

/* Appends what the scheduler decided and nothing else: without the instances' ids and others' members, sorted by
 * container and device; nothing for an empty list. Signatures are over this (hami/signature.h). */
void mig_text_write_canonical(const struct mig_allocations *m, struct str *out);

/* NULL where there is none. */
struct mig_record *mig_allocations_find(const struct mig_allocations *m, uint32_t container, uint32_t device);

#endif
