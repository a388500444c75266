/* Kubernetes quantities ("2", "1500m", "3Gi", "1e3"), read exactly as the API server's own library reads them
 * (k8s.io/apimachinery, pkg/api/resource): what it takes is taken with the same value, what it refuses is refused. */
#ifndef HM_HAMI_QUANTITY_H
#define HM_HAMI_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct cJSON;

enum quantity_kind {
	QUANTITY_WHOLE,    /* an integer that int64_t holds */
	QUANTITY_FRACTION, /* has a part below one */
	QUANTITY_HUGE,     /* beyond int64_t */
};

struct quantity {
	enum quantity_kind kind;
	int64_t value; /* WHOLE: it. FRACTION: rounded away from zero, as the API server counts it. HUGE: INT64_MAX or
			  INT64_MIN */
};

/* -HM_EINVAL with the API server's own text. */
int quantity_parse(const char *text, size_t n, struct quantity *out, struct hm_err *e) HM_MUST_USE;

/* The member of a resource list: a text, a number, or null, which is 0 as it is for the API server. Other kinds of
 * value are -HM_EINVAL. */
int quantity_read(const struct cJSON *value, struct quantity *out, struct hm_err *e) HM_MUST_USE;

/* The same in thousandths, as the API server counts CPU: rounded away from zero, up to INT64_MAX either way. */
int quantity_read_milli(const struct cJSON *value, int64_t *out, struct hm_err *e) HM_MUST_USE;

#endif
