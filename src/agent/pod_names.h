/* Names of pods for the claims: the checkpoint knows UIDs alone. Looked up by pod-resources behind a container's start,
 * only to be shown, so nothing waits for it and a failure is no trouble. */
#ifndef HM_AGENT_POD_NAMES_H
#define HM_AGENT_POD_NAMES_H

#include "agent/claims.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kubelet/pod_resources.h"

enum {
	POD_NAMES_AFTER_MS = 200,  /* one look for a burst of starts */
	POD_NAMES_RETRY_MS = 3000, /* where a name is still missing */
	POD_NAMES_TRIES = 3,
};

struct pod_names;

int pod_names_new(struct loop *l, const char *socket, const char *resource, struct claims *claims,
		  struct pod_names **out, struct hm_err *e) HM_MUST_USE;
void pod_names_free(struct pod_names *n);
HM_DEFINE_AUTO(pod_names, pod_names_free);

void pod_names_want(struct pod_names *n);

/* Fills in the names that the list tells; the number of claims still without one. An init container is never listed: it
 * gets the name that another claim with its pod's UID has. */
size_t pod_names_apply(struct claims *claims, const struct pod_resources_container *containers, size_t count);

#endif
