/* What pods a cluster typically gets, by shape and how often: what the fgd policy measures fragmentation against.
 * Either given (pod_mix_add), or the last pods that came (pod_mix_see). Pods without cards are no part of it: to them
 * one card that is free is as good as another. */
#ifndef HM_MODEL_PLACEMENT_POD_MIX_H
#define HM_MODEL_PLACEMENT_POD_MIX_H

#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/pod_ask.h"

enum {
	MIX_MAX_SHAPES = 512,
	MIX_WINDOW = 4096, /* pods that pod_mix_see remembers */
};

struct mix_shape {
	uint32_t cards;                   /* 0: none, and no part of a mix */
	struct card_ask each;             /* of one card; its count and kind don't matter */
	int64_t cpu_milli, host_mib;      /* requests; 0: none, or not known */
	const char *use_types, *no_types; /* as in pod_wishes; NULL: any */
};

struct mix_entry {
	struct mix_shape shape; /* owns its texts */
	uint64_t weight;        /* 0: not in the mix */
	uint64_t number;        /* the shape's own: no shape that comes later into this place has it */
};

struct pod_mix {
	struct mix_entry *entries; /* owned */
	size_t count, cap;
	uint64_t total;   /* of the weights */
	uint64_t seen;    /* pods that came, ever */
	uint64_t shapes;  /* that came, ever */
	uint16_t *window; /* owned; the entry of each of the last pods, a ring; NULL before the first */
};

void pod_mix_fini(struct pod_mix *m);
static inline void pod_mix_auto_fini(struct pod_mix *m)
{
	pod_mix_fini(m);
}
/* A local: hm_auto_pod_mix m = { 0 }; */
#define hm_auto_pod_mix __attribute__((cleanup(pod_mix_auto_fini))) struct pod_mix

/* The pod as one shape: cards of all containers that run together, each as large as the largest share. Texts are
 * borrowed from the ask. */
struct mix_shape mix_shape_of(const struct pod_ask *ask);

/* Equal shapes add up. -HM_ELIMIT above MIX_MAX_SHAPES, -HM_ENOMEM. */
int pod_mix_add(struct pod_mix *m, const struct mix_shape *shape, uint64_t weight, struct hm_err *e) HM_MUST_USE;

/* A pod came: it counts, and the one MIX_WINDOW before it no longer does. Where
 * there are MIX_MAX_SHAPES others, the rarest shape gives way to it, of several the one that came first. -HM_ENOMEM. */
int pod_mix_see(struct pod_mix *m, const struct mix_shape *shape, struct hm_err *e) HM_MUST_USE;

/* The same for pods of which nobody knows which came last: of more than MIX_WINDOW a fair sample stays. */
int pod_mix_sample(struct pod_mix *m, const struct mix_shape *shape, struct hm_err *e) HM_MUST_USE;

#endif
