/* A cluster as `kubectl get nodes -o json` and `kubectl get pods -A -o json` tell it: cards as agents registered them,
 * what bound pods hold, and the pods that wait. CPU and memory of nodes are not looked at. */
#ifndef HM_SCHED_SIMULATE_SNAPSHOT_H
#define HM_SCHED_SIMULATE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "io/json.h"
#include "sched/simulate/scene.h"
#include "sched/view/pod_hold.h"

struct snapshot_pod {
	struct pod_ask ask;
	struct pod_hold held; /* `holds` only where it is bound */
};

struct snapshot {
	struct cJSON *nodes, *pods;    /* owned: asks and holdings borrow from them */
	struct snapshot_pod *gpu_pods; /* owned; those that ask for cards and have not ended, in the file's order */
	size_t count, cap;
	size_t unread; /* pods whose request cannot be read: passed over */
};

void snapshot_fini(struct snapshot *s);
static inline void snapshot_auto_fini(struct snapshot *s)
{
	snapshot_fini(s);
}
/* A local: hm_auto_snapshot s = { 0 }; */
#define hm_auto_snapshot __attribute__((cleanup(snapshot_auto_fini))) struct snapshot

/* Lists, or one object. -HM_EPROTO, -HM_EINVAL, -HM_ENOMEM. */
int snapshot_read_nodes(struct snapshot *s, const char *text, size_t n, struct hm_err *e) HM_MUST_USE;
int snapshot_read_pods(struct snapshot *s, const char *text, size_t n, struct hm_err *e) HM_MUST_USE;

/* Nodes with cards; bound pods hold what they hold. A node whose cards cannot be read is named in *e: -HM_EPROTO. */
int snapshot_build(const struct snapshot *s, struct scene *out, struct hm_err *e) HM_MUST_USE;

/* The mix that its pods make, for fgd. */
int snapshot_mix(const struct snapshot *s, struct pod_mix *out, struct hm_err *e) HM_MUST_USE;

#endif
