/* hami.io/mutex.lock of our Node: HAMi's scheduler takes it before it binds a pod and binds no other one until it is
 * gone. It is released as soon as the kubelet's checkpoint has an entry for every container of the lock's pod that asks
 * for devices, or that pod has ended or is gone: at Allocate, not at PreStart, which comes after the image was pulled.
 * A pod whose other devices another vendor's plugin has yet to hand out keeps it until a container of it has started,
 * or for 30 s. The lock names a pod by name alone: the pod is looked up by it, in our watch, else at the API server;
 * one that was bound before the lock was taken is another. The lock is removed only under the resourceVersion it was
 * read with. Locks of pods that are being bound stay. */
#ifndef HM_AGENT_HAMI_LOCK_RELEASE_H
#define HM_AGENT_HAMI_LOCK_RELEASE_H

#include <stdint.h>

#include "agent/claims/checkpoint_cache.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/node_object.h"
#include "agent/cluster/pods.h"
#include "core/cleanup.h"
#include "core/err.h"

enum {
	LOCK_RELEASE_LOOK_MS = 2000,    /* while there is a lock: what no event told */
	LOCK_RELEASE_OTHERS_MS = 30000, /* how long another vendor's plugin is waited for: it is asked within moments */
	LOCK_RELEASE_ASK_MS =
		10000, /* how old a lock is before the API server is asked for a pod that we do not know */
};

/* All borrowed. */
struct lock_release_config {
	struct cluster *cluster;
	struct node_object *node;
	struct pods *pods;
	struct checkpoint_cache *checkpoint;
	const char *checkpoint_path; /* its folder is watched */
};

struct lock_release;

int lock_release_new(const struct lock_release_config *config, struct lock_release **out, struct hm_err *e) HM_MUST_USE;
void lock_release_free(struct lock_release *r);
HM_DEFINE_AUTO(lock_release, lock_release_free);

struct lock_release_stats {
	uint64_t released, failures, asked; /* asked: GETs of a pod that our watch does not have */
};
void lock_release_stats(const struct lock_release *r, struct lock_release_stats *out);

#endif
