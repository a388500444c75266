/* How a container gets what it holds. Late: Allocate answers a CDI name of its own and writes nothing; PreStart writes
 * the spec behind the name. Classic: all is in the Allocate answer, for runtimes without CDI; PreStart repairs the
 * files. Which of the two a container has is in its claim, so that a change of --binding leaves running ones alone. */
#ifndef HM_AGENT_CONTAINER_BINDING_H
#define HM_AGENT_CONTAINER_BINDING_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/claims/claims.h"
#include "agent/claims/pending.h"
#include "agent/container/edits.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "core/err.h"
#include "kubelet/device_plugin.h"
#include "model/inventory.h"

/* All borrowed. */
struct binding_tools {
	const struct agent_paths *paths;
	const struct inventory *inventory;
	struct claims *claims;
	struct pending *pending;
	struct edits *edits;
	bool cdi_annotations, oversubscribe;
	uint64_t now_ms;
};

/* One container's part of the Allocate answer with what its pointers point to. */
struct binding_answer {
	struct dp_container_answer dp;
	char names[HAMI_ANSWER_NAMES][HAMI_ANSWER_NAME_BYTES];
	const char *cdi_names[HAMI_ANSWER_NAMES];
	char annotation_key[HAMI_ANSWER_NAME_BYTES];
	char *annotation_value; /* owned */
	struct dp_env annotation;
	struct cdi_edits edits;
	struct dp_env *envs;
	struct dp_mount *mounts;
	struct dp_node *nodes;
};
void binding_answer_fini(struct binding_answer *a);

struct binding {
	const char *name;
	/* Fills *out, which must not move and needs binding_answer_fini on success. May take the claim (emptied). */
	int (*allocate)(const struct binding_tools *t, struct claim *c, struct binding_answer *out, struct hm_err *e);
	/* Writes what the container's start needs: claim first, so that nothing is ever without an owner. Takes the
	 * claim. */
	int (*start)(const struct binding_tools *t, struct claim *c, struct hm_err *e);
};

extern const struct binding binding_late, binding_classic;

const struct binding *binding_of(const struct claim *c);

/* Removes all that start or allocate wrote for the number: spec, folder, then the claim. */
int binding_remove(const struct agent_paths *paths, struct claims *claims, uint64_t number,
		   struct hm_err *e) HM_MUST_USE;

#endif
