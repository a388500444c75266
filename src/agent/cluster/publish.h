/* What HAMi's scheduler reads of our cards, kept on our Node: the pass of HAMi's WatchAndRegister.
 *
 *  1. A pass makes the annotations' texts and compares them with the Node as the API server last told it. Where all are
 *     the same nothing is written; else one patch carries those that differ, for the Node with this UID.
 *  2. The next pass comes after 30 s; 5 s after an error; at once when something changed: the cards, their health, what
 *     is configured, or the Node (an annotation edited or taken away, the Node made again).
 *  3. What somebody else keeps changing is put right at once, and then each 5 s at most.
 *  4. Paused (the MIG manager works on the cards): no pass, no write, until it is resumed.
 *
 * The handshake is the scheduler's: hami.io/node-handshake is never written. Nothing is taken away when we end: the
 * scheduler goes by what the kubelet says then. */
#ifndef HM_AGENT_CLUSTER_PUBLISH_H
#define HM_AGENT_CLUSTER_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/cluster/node_object.h"
#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

enum { PUBLISH_EACH_MS = 30000, PUBLISH_RETRY_MS = 5000 };

/* Values of the annotations, each empty where we have nothing to say: it is left as it is. */
struct publish_texts {
	struct str texts[NODE_ANNOTATION_COUNT];
};

struct publish_config {
	struct node_object *node; /* borrowed */
	/* Appends the texts as they should be now. An error is tried again after 5 s. */
	int (*texts)(void *arg, struct publish_texts *out, struct hm_err *e);
	void *arg;
};

struct publish;

/* The first pass comes with the first publish_now. */
int publish_new(struct loop *l, const struct publish_config *config, struct publish **out,
		struct hm_err *e) HM_MUST_USE;
void publish_free(struct publish *p); /* before its node */
HM_DEFINE_AUTO(publish, publish_free);

/* Something changed: a pass from the loop, as soon as may be. */
void publish_now(struct publish *p);

/* No pass any more; `paused` is called once, from the loop, when what was under way has ended: from then on nothing is
 * written until publish_resume, which passes at once. A pause while paused only replaces what is called. */
void publish_pause(struct publish *p, void (*paused)(void *arg), void *arg);
void publish_resume(struct publish *p);

struct publish_stats {
	uint64_t passes;      /* that came to an end, well or not */
	uint64_t failures;    /* passes that failed */
	uint64_t writes;      /* patches that the API server took */
	uint64_t healed;      /* of these what we had written before: somebody else had changed it */
	bool good;            /* a pass has ended well */
	uint64_t good_age_ms; /* since the last one did */
	bool paused;
};
void publish_stats(const struct publish *p, struct publish_stats *out);

#endif
