/* --binding=auto, as far as the node's container runtime decides it: the Node tells which it is. Said where late
 * binding was asked for and cannot work. */
#ifndef HM_AGENT_HAMI_BINDING_CHOICE_H
#define HM_AGENT_HAMI_BINDING_CHOICE_H

#include "agent/cluster/cluster.h"
#include "agent/cluster/node_object.h"
#include "agent/options/options.h"
#include "core/cleanup.h"
#include "core/err.h"

/* All borrowed. */
struct binding_choice_config {
	struct cluster *cluster;
	struct node_object *node;
	const struct agent_options *options; /* settled */
	const char *path;                    /* of agent/options/runtime.h's file */
	/* The options, settled anew, would be others by now: what the file says has changed. */
	void (*other)(void *arg);
	void *arg;
};

struct binding_choice;

int binding_choice_new(const struct binding_choice_config *config, struct binding_choice **out,
		       struct hm_err *e) HM_MUST_USE;
void binding_choice_free(struct binding_choice *b); /* before its node */
HM_DEFINE_AUTO(binding_choice, binding_choice_free);

#endif
