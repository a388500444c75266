/* Our Node object, followed: what the API server last said of it. Where we may not watch nodes (HAMi's chart grants
 * get, list and patch) it is listed every half minute; what cannot wait for that asks anew (node_object_refresh).
 * Deletion and a new Node of our name are met as they come. */
#ifndef HM_AGENT_CLUSTER_NODE_OBJECT_H
#define HM_AGENT_CLUSTER_NODE_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cluster/cluster.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "core/link.h"
#include "kube/patch.h"

/* Annotations that we read. */
enum node_annotation { NODE_REGISTER, NODE_SCORE, NODE_HEALTH, NODE_HANDSHAKE, NODE_LOCK, NODE_ANNOTATION_COUNT };

/* A snapshot; texts are good until the next change. */
struct node_view {
	const char *uid, *resource_version;
	const char *kubelet_version;                    /* "v1.34.4"; "" where it is not said */
	const char *container_runtime;                  /* "containerd://2.2.9"; "" likewise */
	const char *annotations[NODE_ANNOTATION_COUNT]; /* NULL: absent */
};

struct node_object;

/* The cluster is on, and outlives it. */
int node_object_new(struct cluster *c, struct node_object **out, struct hm_err *e) HM_MUST_USE;
void node_object_free(struct node_object *n); /* calls under way end without their callbacks */
HM_DEFINE_AUTO(node_object, node_object_free);

/* NULL: not heard of yet, or deleted. */
const struct node_view *node_object_view(const struct node_object *n);

/* Told after each change, from the loop; view NULL: deleted. May remove itself. */
struct node_listener {
	void (*changed)(void *arg, const struct node_view *view);
	void *arg;
	struct link link; /* node_object's own */
};
void node_object_listen(struct node_object *n, struct node_listener *listener); /* borrowed until link_remove */

/* Asks the API server what the Node is now; listeners are told. One question at a time: while one is under way this
 * does nothing. */
void node_object_refresh(struct node_object *n);

/* Annotations set or removed. The UID is always a precondition: a Node that was made again is another node. */
struct node_patch {
	const struct kube_patch_value *annotations;
	size_t count;
	bool this_version; /* nothing else of the Node may have changed since the view: KUBE_CONFLICT */
	/* Exactly once, unless cancelled. After a success the view is what the server answered, and listeners were
	 * told. */
	void (*done)(void *arg, const struct kube_answer *answer);
	void *arg;
};
/* -HM_EAGAIN while there is no view. *out can be cancelled (node_patch_cancel) until done. */
struct node_patch_call;
int node_object_patch(struct node_object *n, const struct node_patch *patch, struct node_patch_call **out,
		      struct hm_err *e) HM_MUST_USE;
/* No done any more; the change may have been made or not. NULL does nothing. */
void node_patch_cancel(struct node_patch_call *call);

struct node_object_stats {
	bool known;         /* there is a view */
	bool followed;      /* the watch stands: what changes is told at once */
	uint64_t refreshes; /* asked */
	uint64_t heard_ms;  /* loop time of the last word of the server; 0: never */
	uint64_t failures;  /* of list, watch and refresh */
};
void node_object_stats(const struct node_object *n, struct node_object_stats *out);

#endif
