/* A pod's wishes made ready to be asked of many cards. */
#ifndef HM_MODEL_PLACEMENT_FIT_WISHES_H
#define HM_MODEL_PLACEMENT_FIT_WISHES_H

#include <stdbool.h>

#include "base/map.h"
#include "model/placement/card_order.h"
#include "model/placement/card_score.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_ask.h"

enum { WISHES_KINDS_KNOWN = 64, WISHES_MAX_TYPES_BYTES = 16 * 1024 };

struct wishes {
	struct pod_wishes texts;
	struct card_order order;
	struct card_weights weights;
	bool numa_bind;
	bool takes_mig;                   /* the pod would take an instance of a card in MIG mode */
	struct map *use_uuids, *no_uuids; /* owned; NULL: no such wish */
	struct {
		const char *type, *mode;
		bool does;
	} known[WISHES_KINDS_KNOWN]; /* answers given before, for equal pointers */
	unsigned known_count;        /* ever; the oldest makes room */
};

void wishes_fini(struct wishes *w);

/* *out is empty, or was read before. -HM_EINVAL for weights that cannot be read, and lists of types of more than
 * WISHES_MAX_TYPES_BYTES: each is held against each kind of card; -HM_ENOMEM. */
int wishes_read(const struct pod_wishes *texts, const char *card_policy, struct wishes *out,
		struct hm_err *e) HM_MUST_USE;

/* Type and mode, both kept texts of the nodes. */
bool wishes_take_kind(struct wishes *w, const struct node_card *card);
bool wishes_take_uuid(const struct wishes *w, const struct node_card *card);

#endif
