/* The pods of this node as the API server last told them, by UID. What was told stays true while the server is away, so
 * that nothing the kubelet asks has to wait for it. */
#ifndef HM_AGENT_CLUSTER_PODS_H
#define HM_AGENT_CLUSTER_PODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cluster/pod_view.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "core/link.h"
#include "kube/client.h"

struct pods;

/* Begins to list and watch at once. The client outlives it; the texts are copied. `resource`: what pod_view counts. */
int pods_new(struct kube_client *client, const char *node, const char *resource, struct pods **out,
	     struct hm_err *e) HM_MUST_USE;
void pods_free(struct pods *p);
HM_DEFINE_AUTO(pods, pods_free);

/* The whole list was there once. */
bool pods_synced(const struct pods *p);

/* Views are good until the next change. NULL where there is none. */
const struct pod_view *pods_find(const struct pods *p, const char *uid);
const struct pod_view *pods_find_name(const struct pods *p, const char *name_space, const char *name);
/* Start with *at = 0; NULL at the end. Nothing may change meanwhile. In no order: see pod_view.order. */
const struct pod_view *pods_next(const struct pods *p, size_t *at);

/* Told from the loop, after the fact. May remove itself. */
struct pods_listener {
	void (*changed)(void *arg, const struct pod_view *v);
	void (*gone)(void *arg, const struct pod_view *v); /* the last that was known; freed afterwards */
	void (*synced)(void *arg);                         /* once; may be NULL */
	void *arg;
	struct link link; /* pods' own */
};
void pods_listen(struct pods *p, struct pods_listener *listener); /* borrowed until link_remove */

struct pods_stats {
	size_t pods;
	uint64_t unread;   /* objects that could not be taken */
	uint64_t failures; /* of lists and watches */
	uint64_t good_ms;  /* loop time of the server's last word of use; 0: never */
};
void pods_stats(const struct pods *p, struct pods_stats *out);

#endif
