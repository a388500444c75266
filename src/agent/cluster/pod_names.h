/* What the kubelet's pod-resources list says about our claims: the names of their pods (the checkpoint knows UIDs
 * alone), only to be shown, and which pods have ended. Nothing waits for it and a failure is no trouble. */
#ifndef HM_AGENT_CLUSTER_POD_NAMES_H
#define HM_AGENT_CLUSTER_POD_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/claims/claims.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kubelet/pod_resources.h"

enum {
	/* After a container's start: at once, since an ended pod leaves the list at once. */
	POD_NAMES_AFTER_MS = 0,
	/* While there are claims. */
	POD_NAMES_EVERY_MS = 5000,
	/* Lists in a row without a pod that was on one: a kubelet that starts lists nothing for a moment. */
	POD_NAMES_GONE_AFTER = 2,
	/* A list without any container of ours tells nothing of a pod that this kubelet never listed, for so long:
	   while the API server is away, a kubelet that has just started knows no pods. */
	POD_NAMES_EMPTY_MS = 10 * 60 * 1000,
	/* So old must a claim be that no list ever showed. Init containers are on none, so a pod of which nothing else
	   has devices never is, and late binding knows its name before it runs. */
	POD_NAMES_NEW_MS = 60 * 1000,
};

struct pod_names;

/* `resource` NULL: any. All is borrowed. */
int pod_names_new(struct loop *l, const char *socket, const char *resource, struct claims *claims,
		  struct pod_names **out, struct hm_err *e) HM_MUST_USE;
void pod_names_free(struct pod_names *n);
HM_DEFINE_AUTO(pod_names, pod_names_free);

void pod_names_want(struct pod_names *n);

/* True where the claim's pod has a name, is not on the list, and was, or has been started a while ago. An ended pod's
 * entry stays in the checkpoint until the next allocation; this tells earlier. Never true for a pod whose name is not
 * known. */
bool pod_names_is_gone(const struct pod_names *n, uint64_t number);

enum pod_life {
	POD_IS_GONE,
	POD_LIVES,  /* or is not known to have ended yet; asking again soon may tell */
	POD_UNSEEN, /* the kubelet has no list for us, or none that showed the pod's name */
};

/* Of a claim whose device the kubelet gives to another pod, where nothing better tells: a kubelet that had the device
 * in its own book as this pod's has freed it, since only a restart loses that book; one that lists the pod without
 * devices has lost it; a pod that it does not list is gone as above. Asks for a new list. */
enum pod_life pod_names_life(struct pod_names *n, const struct claim *c);

/* Another kubelet than before may run: what the last one listed says nothing of what this one does not list. */
void pod_names_new_kubelet(struct pod_names *n);

/* One list, of all containers. */
void pod_names_take(struct pod_names *n, const struct pod_resources_container *containers, size_t count,
		    uint64_t now_ms);

/* Fills in the names that the list tells. An init container is never listed: it gets the name that another claim with
 * its pod's UID has. */
void pod_names_apply(struct claims *claims, const struct pod_resources_container *containers, size_t count);

#endif
