/* A small cluster as the API server has it, and what the scheduler has been told or has promised: all that the oracle
 * needs to know what must be held. Nothing of src/model is in here. */
#ifndef HM_TESTS_MODEL_CHECKER_WORLD_H
#define HM_TESTS_MODEL_CHECKER_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum {
	W_NODES = 3,
	W_CARDS = 3,
	W_PODS = 7,
	W_CONTAINERS = 5,
	W_SHARES = 16,
	W_SPACES = 2,
	W_QUOTAS = 2,
	W_SLICES = 8,
	W_NO_LIMIT = -1,
};

enum w_kind { W_INIT, W_SIDECAR, W_APP };

struct w_ask {
	enum w_kind kind;
	int count, memory, percent, cores; /* memory 0: percent counts */
	int cpu_milli, host_mib;           /* of the node */
};

struct w_share {
	int container;
	char uuid[40];
	int memory, cores;
	int start, size; /* of a MIG instance; size 0: none */
};

struct w_card {
	char uuid[40];
	bool present, healthy, cut, cordoned;
	int count, memory, cores, numa;
};

struct w_node {
	char name[24];
	bool present;
	int cpu_milli, host_mib; /* allocatable; -1: it does not say */
	struct w_card cards[W_CARDS];
};

/* Where a pod is, and with what. */
struct w_record {
	int node;
	bool garbage; /* the text cannot be read; where there is none: its containers run */
	bool bare;    /* somebody bound it and wrote nothing on it */
	int count;
	struct w_share shares[W_SHARES];
};

enum w_phase { W_PENDING, W_BOUND, W_TERMINATING, W_ENDED, W_GONE };
enum w_belief { W_FREE, W_RESERVED, W_BINDING, W_HELD };

struct w_pod {
	char uid[40], name[16];
	int space, count, priority;
	struct w_ask asks[W_CONTAINERS];
	const char *card_policy, *node_policy, *numa_bind; /* wishes; NULL: none */
	/* As the API server has it. */
	enum w_phase phase;
	bool init_done;
	struct w_record text;
	/* As the scheduler was told, or has promised. */
	enum w_belief belief;
	bool held_terminating;
	int seen_on; /* the node that the watch said last; -1: none */
	bool told;   /* the watch has said so, too: W_HELD is not our Binding's answer alone */
	struct w_record held;
	uint64_t expires_ms;
	bool asked_nobody; /* its Binding is on the way, and we do not know how it ended */
};

struct w_quota {
	bool set;
	long long memory, cores; /* W_NO_LIMIT */
};

struct world {
	uint64_t dice;
	uint64_t now_ms;
	unsigned pods_made;
	struct w_node nodes[W_NODES];
	struct w_pod pods[W_PODS];
	struct w_quota quotas[W_SPACES][W_QUOTAS];
	bool trace;
	struct str wrong; /* the first thing that went wrong; empty: nothing */
};

extern const char *const w_spaces[W_SPACES];
extern const char *const w_quotas[W_QUOTAS];

/* Profiles of cut cards: instances of one slice anywhere, of two at even places. */
struct w_profile {
	const char *name;
	int memory, cores, size, places;
};
extern const struct w_profile w_profiles[2];

uint64_t w_roll(struct world *w, uint64_t below);
bool w_chance(struct world *w, unsigned percent);
#define W_PICK(w, array) ((array)[w_roll(w, HM_COUNT(array))])

void world_init(struct world *w, uint64_t seed);
void world_fini(struct world *w);
void w_make_card(struct world *w, struct w_card *c);
void w_make_host(struct world *w, struct w_node *n);
/* A new pod in this place, pending. */
void w_make_pod(struct world *w, struct w_pod *p);
/* What another scheduler may have bound it to: something of what it asks for, somewhere. */
void w_make_text(struct world *w, const struct w_pod *p, struct w_record *out);

/* The API server has it on a node. */
static inline bool w_is_bound(const struct w_pod *p)
{
	return p->phase == W_BOUND || p->phase == W_TERMINATING;
}

struct w_card *w_find_card(struct w_node *n, const char *uuid); /* present or not; NULL */

/* The pod as JSON, as the API server has it. */
void w_write_pod(const struct w_pod *p, const struct world *w, struct str *out);

void w_say(const struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void w_fail(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
