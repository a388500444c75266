/* The amounts of our resources that one container names. */
#ifndef HM_SCHED_WEBHOOK_AMOUNTS_H
#define HM_SCHED_WEBHOOK_AMOUNTS_H

#include <stdbool.h>
#include <stdint.h>

#include "hami/device_config.h"
#include "hami/quantity.h"
#include "sched/webhook/review.h"
#include "sched/webhook/webhook.h"

enum amount_kind { AMOUNT_COUNT, AMOUNT_MEMORY, AMOUNT_PERCENT, AMOUNT_CORES, AMOUNT_PRIORITY, AMOUNT_KINDS };

struct amount {
	bool in_limits, in_requests;
	struct quantity quantity; /* the limit, or else the request */
	const struct cJSON *text; /* as it was written */
};

struct amounts {
	struct amount of[AMOUNT_KINDS];
};

/* The resource's name; "" where the configuration has none for it. */
const char *amount_name(const struct device_config *c, enum amount_kind kind);

static inline bool amount_set(const struct amounts *a, enum amount_kind kind)
{
	return a->of[kind].in_limits || a->of[kind].in_requests;
}
static inline int64_t amount_value(const struct amounts *a, enum amount_kind kind)
{
	return a->of[kind].quantity.value;
}

/* Reads them; false where one is no quantity, and the answer says so. */
bool amounts_read(const struct cJSON *container, const struct device_config *c, struct amounts *out,
		  struct answer *answer) HM_MUST_USE;

/* Is each within its range, and no more than any card has? `name` is the container's. */
bool amounts_check(const struct amounts *a, const struct device_config *c, const char *name,
		   const struct webhook_largest *largest, struct answer *answer) HM_MUST_USE;

#endif
