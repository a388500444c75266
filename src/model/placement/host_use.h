/* What pods have of their nodes' CPU and memory: one record for every pod that is bound, with cards or without, and for
 * every pod that we promised cards. The sums are the node_books'. */
#ifndef HM_MODEL_PLACEMENT_HOST_USE_H
#define HM_MODEL_PLACEMENT_HOST_USE_H

#include <stdbool.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/placement/node_book.h"

struct host_uses;

struct host_uses *host_uses_new(void);    /* NULL where memory is short */
void host_uses_free(struct host_uses *u); /* before the node_books */
HM_DEFINE_AUTO(host_uses, host_uses_free);

/* A pod's, or a promise to it. */
struct host_use {
	struct node_book *node;
	struct host_amount amount;
	bool promised; /* no Binding is known of yet */
};

/* The pod has this from now on, and not what it had before; *left is that one's node, where it was another (which may
 * be of no use to anybody any more), else NULL. -HM_ENOMEM changes nothing. */
int host_uses_take(struct host_uses *u, const char *uid, const struct host_use *use, struct node_book **left,
		   struct hm_err *e) HM_MUST_USE;

/* The pod has nothing any more; only_promise: unless it is bound. Returns its node, NULL where nothing has changed. */
struct node_book *host_uses_give(struct host_uses *u, const char *uid, bool only_promise);

#endif
