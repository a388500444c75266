/* What the pods of a namespace hold of memory and cores, and what its ResourceQuotas leave. All quotas of a namespace
 * hold at once. The unit is that of recorded shares: MiB, and percent of a card. A quota's memory is in the unit of the
 * resource and is multiplied by the factor that pods' requests are multiplied by.
 *
 * Admission and filter ask by the same arithmetic: quota_fits of what the pod sums up to (model/placement/pod_sum.h);
 * admission of what it asks for, filter of the cards and MIG instances that it would get. */
#ifndef HM_MODEL_PLACEMENT_QUOTA_H
#define HM_MODEL_PLACEMENT_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/pod_ask.h"
#include "model/placement/pod_use.h"

#define QUOTA_NO_LIMIT INT64_MAX

struct quota_amount {
	int64_t memory_mib;
	int64_t cores;
};

/* spec.hard of one ResourceQuota, in its own units; QUOTA_NO_LIMIT where it says nothing. 0 lets nobody in. */
struct quota_limits {
	int64_t memory, cores;
};

struct quotas;
struct quota_space; /* a namespace */

/* Factors below 1 count as 1. NULL where memory is short. */
struct quotas *quotas_new(uint64_t memory_factor);
void quotas_free(struct quotas *q); /* every quota_space must be closed */
HM_DEFINE_AUTO(quotas, quotas_free);

/* One ResourceQuota, as it is now. -HM_ENOMEM changes nothing. */
int quotas_set(struct quotas *q, const char *name_space, const char *quota, struct quota_limits limits,
	       struct hm_err *e) HM_MUST_USE;
void quotas_remove(struct quotas *q, const char *name_space, const char *quota);

/* What is left there: the least over the quotas, minus what is held. Negative where a quota became smaller than that;
 * QUOTA_NO_LIMIT where there is none. */
struct quota_amount quotas_room(const struct quotas *q, const char *name_space);

/* Equality fits. What is not asked for (0) always fits: a pod without memory passes a memory quota that is full. */
static inline bool quota_fits(struct quota_amount room, struct quota_amount asked)
{
	return (asked.memory_mib <= 0 || asked.memory_mib <= room.memory_mib) &&
	       (asked.cores <= 0 || asked.cores <= room.cores);
}

/* What a pod counts for, from what it holds (shares in order of containers, kinds as in pod_use.h) and from what it
 * asks for, where percentages are of a card of card_mib. */
struct quota_amount quota_of_shares(const struct card_share *shares, size_t count, const enum ask_kind *kinds,
				    size_t kind_count);
struct quota_amount quota_of_asks(const struct card_ask *asks, size_t count, int32_t card_mib);

/* The namespace's book, for those who hold something in it; lives until it is closed as often as it was opened. NULL
 * where memory is short. */
struct quota_space *quotas_open(struct quotas *q, const char *name_space) HM_MUST_USE;
void quotas_close(struct quotas *q, struct quota_space *s);
void quota_space_add(struct quota_space *s, struct quota_amount held); /* negative: given back */
const char *quota_space_name(const struct quota_space *s);
struct quota_amount quota_space_held(const struct quota_space *s);

/* For metrics: start with at = 0; false at the end. `limits` is the least over the namespace's quotas, in their own
 * unit. */
struct quota_view {
	const char *name_space;
	struct quota_amount held;
	struct quota_limits limits;
};
bool quotas_next(const struct quotas *q, size_t *at, struct quota_view *out);

#endif
