/* A coordination.k8s.io/v1 Lease: what it says, and the bodies that take, renew and leave it. Times in it are other
 * clocks': they are written for people and compared with nothing (sched/lead/election.h counts by our own clock). */
#ifndef HM_KUBE_LEASE_H
#define HM_KUBE_LEASE_H

#include <stdint.h>

#include "base/str.h"
#include "core/err.h"
#include "io/json.h"
#include "kube/object.h"

#define KUBE_LEASES "/apis/coordination.k8s.io/v1"

enum { KUBE_HOLDER_BYTES = 512, KUBE_LEASE_MAX_S = 86400 };

struct kube_lease {
	char resource_version[KUBE_VERSION_BYTES];
	char holder[KUBE_HOLDER_BYTES]; /* "": nobody */
	uint32_t duration_s;            /* 0: not said; more than KUBE_LEASE_MAX_S counts as that */
	uint32_t transitions;
	char acquired[40], renewed[40]; /* as they stand; "" where not said */
};

/* -HM_EPROTO names what is wrong. */
int kube_lease_read(const struct cJSON *tree, struct kube_lease *out, struct hm_err *e) HM_MUST_USE;

/* What we want it to say. */
struct kube_lease_write {
	const char *holder; /* "": left to the next who comes */
	uint32_t duration_s, transitions;
	uint64_t acquired_ms, renewed_ms; /* wall clock; acquired_ms 0: stays as it is (not for a new one) */
};

/* The body of a merge patch of the Lease in this version (KUBE_CONFLICT where it has another). -HM_ENOMEM. */
int kube_lease_patch(const struct kube_lease_write *w, const char *resource_version, struct str *out,
		     struct hm_err *e) HM_MUST_USE;
/* The body of a POST that makes it. -HM_ENOMEM. */
int kube_lease_text(const struct kube_lease_write *w, const char *name, struct str *out, struct hm_err *e) HM_MUST_USE;

#endif
