/* What we tell the scheduler of a pod that was bound here: one patch, at its first container's verified start. All
 * entries of hami.io/vgpu-devices-to-allocate erased and bind-phase success together, the UID as precondition;
 * vgpu-devices-allocated is never touched. Nobody waits for it: a patch that fails is tried again behind the start, and
 * what was missed while we were not there is found from claims and pods. A pod that says it already is not patched. */
#ifndef HM_AGENT_HAMI_POD_FINISH_H
#define HM_AGENT_HAMI_POD_FINISH_H

#include <stddef.h>
#include <stdint.h>

#include "agent/claims/claims.h"
#include "agent/cluster/pods.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "kube/client.h"

enum {
	POD_FINISH_RETRY_MS = 1000, /* doubled, with jitter, up to */
	POD_FINISH_RETRY_MAX_MS = 60000,
	POD_FINISH_LOOK_MS = 250, /* how finely that is kept */
};

/* All borrowed. */
struct pod_finish_config {
	struct kube_client *client;
	struct pods *pods;
	const struct claims *claims;
	const char *resource; /* active claims of it were verified */
};

struct pod_finish;

int pod_finish_new(const struct pod_finish_config *config, struct pod_finish **out, struct hm_err *e) HM_MUST_USE;
void pod_finish_free(struct pod_finish *f); /* patches under way end unheard */
HM_DEFINE_AUTO(pod_finish, pod_finish_free);

/* A container of this pod starts, or the pod's annotations are refused for good: bind-phase failed. A success wins over
 * an earlier failure; never the other way round. */
void pod_finish_success(struct pod_finish *f, const char *uid);
void pod_finish_failure(struct pod_finish *f, const char *uid);

struct pod_finish_stats {
	uint64_t patches; /* taken by the server */
	uint64_t retries; /* tried again after a failure */
	uint64_t dropped; /* the pod was gone or another one */
	size_t waiting;   /* to be sent or answered */
};
void pod_finish_stats(const struct pod_finish *f, struct pod_finish_stats *out);

/* The text with every entry erased: one ";" for each entry that HAMi reads in it. */
void pod_finish_erased(const char *to_allocate, struct str *out);

#endif
