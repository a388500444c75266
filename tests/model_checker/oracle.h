/* What must be held, counted from scratch: from what the world says that the scheduler was told or has promised, by the
 * rules as they are written in docs/placement.md and node_book.h, with no code of src/model. */
#ifndef HM_TESTS_MODEL_CHECKER_ORACLE_H
#define HM_TESTS_MODEL_CHECKER_ORACLE_H

#include "model_checker/world.h"

struct o_use {
	long long slots, memory, cores;
};

struct o_card {
	struct o_use use;
	unsigned busy; /* slices, a bit each */
	unsigned blocked;
};

struct o_space {
	long long memory, cores;
};

/* `but`: leave this pod out; NULL: none. */
struct o_card oracle_card(const struct world *w, int node, int card, const struct w_pod *but);
/* CPU and memory that its pods have: of the node that the watch says, else of the one that holds cards for them. */
struct o_host {
	long long cpu_milli, mib;
};
struct o_host oracle_host(const struct world *w, int node);
struct o_space oracle_space(const struct world *w, int space);

/* The pod was just promised p->held; is any card sold twice, or its namespace's quota broken? */
void oracle_check_promise(struct world *w, const struct w_pod *p);

/* The pod was refused by these nodes: is there one that has what it asks for? Looks only at pods that are simple. */
void oracle_check_refusal(struct world *w, const struct w_pod *p, const bool candidates[W_NODES]);

/* These pods (count of them; negative: nobody's going would help, or nobody need go) would have to go from the node for
 * p: may they, is it enough, and could none of them stay? The last two only of pods and nodes that are simple. */
void oracle_check_victims(struct world *w, const struct w_pod *p, int node, struct w_pod *const *victims, int count);

/* Whatever the API server knows to be bound must be held. */
void oracle_check_belief(struct world *w);

#endif
