/* A cluster as `kubectl get nodes -o json` and `kubectl get pods -A -o json` tell it: cards as agents registered them,
 * what bound pods hold, and the pods that wait. Read and healed as the live view does (../view): a node whose register
 * text is broken has no cards, a bound pod whose text cannot be read holds the most that it asks for; every bound pod
 * has its CPU and memory. */
#ifndef HM_SCHED_SIMULATE_SNAPSHOT_H
#define HM_SCHED_SIMULATE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "core/err.h"
#include "hami/device_config.h"
#include "io/json.h"
#include "sched/simulate/scene.h"
#include "sched/view/pod_hold.h"

struct snapshot_pod {
	struct pod_ask ask;   /* as much of it as can be read; all where `held` is in no doubt */
	struct pod_hold held; /* `holds` only where it is bound; else it waits */
	struct screen_pod screen;
};

struct snapshot {
	struct device_config *device;  /* owned, as what follows */
	struct cJSON *nodes, *pods;    /* asks, holdings and screens borrow from them */
	struct snapshot_pod *gpu_pods; /* those that ask for cards and have not ended, in the file's order */
	size_t count, cap;
	size_t unread;    /* pods that are passed over */
	struct str notes; /* a line for each thing that is not taken as it stands */
};

void snapshot_fini(struct snapshot *s);
static inline void snapshot_auto_fini(struct snapshot *s)
{
	snapshot_fini(s);
}
/* A local: hm_auto_snapshot s = { 0 }; */
#define hm_auto_snapshot __attribute__((cleanup(snapshot_auto_fini))) struct snapshot

/* First of all: names of resources and defaults, of HAMi's device-config.yaml; NULL: those of HAMi's chart. */
int snapshot_configure(struct snapshot *s, const char *device_config_file, struct hm_err *e) HM_MUST_USE;

static inline struct scene_pod snapshot_scene_pod(const struct snapshot_pod *p)
{
	return (struct scene_pod) { &p->ask, p->screen };
}

/* Lists, or one object. -HM_EPROTO: no JSON; -HM_ENOMEM. */
int snapshot_read_nodes(struct snapshot *s, const char *text, size_t n, struct hm_err *e) HM_MUST_USE;
int snapshot_read_pods(struct snapshot *s, const char *text, size_t n, struct hm_err *e) HM_MUST_USE;

/* Nodes with cards, which borrow from the snapshot; bound pods hold what they hold, and have what they request of CPU
 * and memory. -HM_ENOMEM. */
int snapshot_build(struct snapshot *s, struct scene *out, struct hm_err *e) HM_MUST_USE;

/* The mix that its pods make, but those in doubt. */
int snapshot_mix(const struct snapshot *s, struct pod_mix *out, struct hm_err *e) HM_MUST_USE;

#endif
