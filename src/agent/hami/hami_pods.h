/* Mode hami's part that is about pods: those of this node watched, their containers started from the annotations, the
 * scheduler told, its lock released. Made in order, and freed in the other. */
#ifndef HM_AGENT_HAMI_HAMI_PODS_H
#define HM_AGENT_HAMI_HAMI_PODS_H

#include "agent/claims/claims.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/node_object.h"
#include "agent/cluster/pods.h"
#include "agent/hami/hami_classic.h"
#include "agent/hami/hami_late.h"
#include "agent/hami/lock_release.h"
#include "agent/hami/pod_finish.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "core/cleanup.h"
#include "core/err.h"

/* All borrowed. */
struct hami_pods_config {
	const struct agent_options *options;
	const struct agent_paths *paths;
	struct claims *claims;
	struct cluster *cluster;
	struct node_object *node;
};

struct hami_pods;

/* -HM_EINVAL, -HM_ENOTFOUND, -HM_EPERM where the folder of signature keys cannot be used. */
int hami_pods_new(const struct hami_pods_config *config, struct hami_pods **out, struct hm_err *e) HM_MUST_USE;
void hami_pods_free(struct hami_pods *p);
HM_DEFINE_AUTO(hami_pods, hami_pods_free);

/* The cards are these now; borrowed until the next call. */
void hami_pods_take(struct hami_pods *p, const struct inventory *cards);

struct hami_late *hami_pods_late(const struct hami_pods *p);
struct hami_classic *hami_pods_classic(const struct hami_pods *p);
struct pods *hami_pods_watched(const struct hami_pods *p);

struct hami_pods_stats {
	struct pods_stats pods;
	struct hami_late_stats late;
	struct pod_finish_stats finish;
	struct hami_classic_stats classic;
	struct lock_release_stats lock;
	size_t signature_keys;
};
void hami_pods_stats(const struct hami_pods *p, struct hami_pods_stats *out);

#endif
