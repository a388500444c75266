/* The scheduler's memory under test, told of the world as the scheduler tells it, and compared with the oracle. */
#ifndef HM_TESTS_MODEL_CHECKER_SUBJECT_H
#define HM_TESTS_MODEL_CHECKER_SUBJECT_H

#include "model/placement/cluster.h"
#include "model/placement/fgd.h"
#include "model/placement/place.h"
#include "model_checker/world.h"

struct subject {
	struct cluster *c;
	struct placer *p;
	struct pod_mix mix;
	struct fgd *fgd; /* or NULL */
};

/* with_fgd: the policy fgd is there (it takes most of the time); else pods that wish for it are taken for binpack. */
void subject_init(struct subject *s, bool with_fgd);
/* It forgets all but the pods that it learned from, which is of no matter. */
void subject_restart(struct subject *s);
void subject_fini(struct subject *s);

void subject_put_node(struct world *w, struct subject *s, int node);
/* CPU and memory of the node alone. */
void subject_set_host(struct world *w, struct subject *s, int node);
void subject_cordon_node(struct world *w, struct subject *s, int node);
/* The pod's object, as the watch or a list brings it. */
void subject_tell_pod(struct world *w, struct subject *s, struct w_pod *p);
/* place_pod, and the reservation of what it chose. True: p->held has it. */
bool subject_place(struct world *w, struct subject *s, struct w_pod *p, const bool candidates[W_NODES],
		   uint64_t expires_ms);

/* Who would have to go from the node so that the pod fits there; how many. Negative: it would not help, or none need
 * go. */
int subject_preempt(struct world *w, struct subject *s, struct w_pod *p, int node, struct w_pod *victims[W_PODS]);

void subject_compare(struct world *w, const struct subject *s);

#endif
