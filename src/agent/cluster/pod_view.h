/* A pod of this node as far as we care, from the API's object. Untrusted: whoever may create pods wrote it. Every part
 * is bounded; what is wrong in the spec is kept as `trouble`, so that whoever asks for the pod hears why. Pure. */
#ifndef HM_AGENT_CLUSTER_POD_VIEW_H
#define HM_AGENT_CLUSTER_POD_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "kube/object.h"

enum {
	POD_MAX_CONTAINERS = 1024,
	POD_MAX_ANNOTATION_BYTES = 256 * 1024, /* Kubernetes' own bound of all of them */
	POD_UID_BYTES = 64,
	POD_LABEL_BYTES = 64, /* a DNS label, and the NUL */
};

enum pod_container_kind {
	POD_INIT,    /* runs to its end before the next */
	POD_SIDECAR, /* an init container with restartPolicy Always */
	POD_APP,
};

enum pod_container_state { POD_WAITING, POD_RUNNING, POD_TERMINATED };

struct pod_container {
	char name[POD_LABEL_BYTES];
	enum pod_container_kind kind;
	enum pod_container_state state; /* as its status says; without one: waiting */
	uint32_t gpus;                  /* of the resource: limits, else requests; 0: none */
	/* Literal environment; valueFrom is not known here and counts as not set. */
	bool disable_control;          /* HAMI_ENV_DISABLE_CONTROL, as Go's ParseBool reads true */
	bool visible_devices;          /* it sets HM_ENV_VISIBLE_DEVICES to more than "none" or "void", in any way */
	char priority[16], policy[16]; /* HM_ENV_PRIORITY, HM_ENV_POLICY: the last; "" where not set or longer */
};

/* Annotations of contract/hami.h that are kept. */
enum pod_annotation {
	POD_TO_ALLOCATE,
	POD_ALLOCATED,
	POD_MIG_ALLOCATIONS,
	POD_NODE,
	POD_TIME,
	POD_BIND_TIME,
	POD_BIND_PHASE,
	POD_SIGNATURE,
	POD_ANNOTATIONS
};

struct pod_view {
	char uid[POD_UID_BYTES], name_space[POD_LABEL_BYTES], name[KUBE_NAME_BYTES];
	char node[KUBE_NAME_BYTES];       /* spec.nodeName; "" while unbound */
	char phase[16];                   /* "Pending", ... */
	bool terminal;                    /* phase Succeeded or Failed */
	bool deleting;                    /* has a deletionTimestamp: its containers may run on for a grace period */
	struct pod_container *containers; /* in spec order, init containers first; owned */
	size_t container_count;
	char *annotations[POD_ANNOTATIONS]; /* owned; NULL: not there, or no container asks for the resource */
	bool others_wait;                   /* entries of another vendor's plugin are still to be allocated */
	char *trouble;                      /* owned; why containers or annotations are not known; NULL: all is well */
	uint64_t order; /* of binding, among the pods of this node; the holder of the view sets it */
};

/* `resource`: what `gpus` counts. -HM_EPROTO where not even the metadata is usable, -HM_ENOMEM. */
int pod_view_new(const struct kube_object *o, const char *resource, struct pod_view **out,
		 struct hm_err *e) HM_MUST_USE;
void pod_view_free(struct pod_view *v);
HM_DEFINE_AUTO(pod_view, pod_view_free);

const struct pod_container *pod_view_container(const struct pod_view *v, const char *name); /* NULL where absent */
/* The text, "" where it is not there. */
const char *pod_view_text(const struct pod_view *v, enum pod_annotation which);
bool pod_view_is_bound_to(const struct pod_view *v, const char *node);

#endif
