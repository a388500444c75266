/* What a pod asks of a node's cards: amounts for each container by HAMi's rules, and the wishes that its annotations
 * say. Pure; texts belong to whoever read the pod and live as long as the ask. */
#ifndef HM_MODEL_PLACEMENT_POD_ASK_H
#define HM_MODEL_PLACEMENT_POD_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

/* When a container runs, as Kubernetes counts it: a plain init container alone beside the sidecars before it, sidecars
 * (init containers with restartPolicy Always) from then on, app containers together with all sidecars. */
enum ask_kind { ASK_INIT, ASK_SIDECAR, ASK_APP };

struct card_ask {
	enum ask_kind kind;
	uint32_t count;     /* cards; 0: it wants none, and the rest is 0 */
	int32_t memory_mib; /* of each card; 0: `percent` counts */
	uint32_t percent;   /* of each card's memory, 1 to 100; 0 where memory_mib counts */
	uint32_t cores;     /* percent of each card's compute, 0 to 100; 0: no share of its own */
};

/* The amounts of one container's resources (limits, else requests), whole numbers in the resource's unit. */
struct ask_amount {
	bool set;
	int64_t value;
};
struct ask_amounts {
	struct ask_amount count, memory, percent, cores;
};

/* Of the device configuration. */
struct ask_rules {
	int32_t memory_factor;      /* MiB of one unit of memory asked; below 1 acts as 1 */
	int32_t default_memory_mib; /* for who says nothing of memory; 0: all of a card */
	int32_t default_cores;
};

/* -HM_EINVAL where an amount is negative, or above what can be counted; *out asks for nothing then. */
int card_ask_make(enum ask_kind kind, const struct ask_amounts *a, const struct ask_rules *rules, struct card_ask *out,
		  struct hm_err *e) HM_MUST_USE;

/* What the ask means on a card of so much memory. */
int32_t card_ask_memory(const struct card_ask *a, int32_t card_mib);

/* The annotations as they stand; NULL where absent. */
struct pod_wishes {
	const char *node_policy; /* hami.io/node-scheduler-policy */
	const char *card_policy; /* hami.io/gpu-scheduler-policy */
	const char *weights;     /* hami.io/device-scoring-weights */
	const char *use_types;   /* nvidia.com/use-gputype */
	const char *no_types;    /* nvidia.com/nouse-gputype */
	const char *use_uuids;   /* nvidia.com/use-gpuuuid */
	const char *no_uuids;    /* nvidia.com/nouse-gpuuuid */
	const char *numa_bind;   /* nvidia.com/numa-bind */
	const char *mode;        /* nvidia.com/vgpu-mode */
};

struct pod_ask {
	const char *uid, *name_space, *name; /* borrowed */
	struct card_ask *containers;         /* owned; in the order of the spec, init containers first */
	size_t count, cap;
	int64_t cpu_milli, host_mib; /* its requests of the node's CPU and memory; 0: none, or not known */
	struct pod_wishes wishes;
	int32_t priority;
};

void pod_ask_fini(struct pod_ask *p);
static inline void pod_ask_auto_fini(struct pod_ask *p)
{
	pod_ask_fini(p);
}
/* A local: hm_auto_pod_ask p = { 0 }; */
#define hm_auto_pod_ask __attribute__((cleanup(pod_ask_auto_fini))) struct pod_ask

int pod_ask_add(struct pod_ask *p, const struct card_ask *container, struct hm_err *e) HM_MUST_USE;

/* Of what it asks for and wishes, whoever asks: equal for pods that nodes and policies treat alike. */
uint64_t pod_ask_print(const struct pod_ask *p);

/* Does any container want a card? */
bool pod_ask_any(const struct pod_ask *p);

#endif
