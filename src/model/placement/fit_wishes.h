/* A pod's wishes made ready to be asked of many cards. */
#ifndef HM_MODEL_PLACEMENT_FIT_WISHES_H
#define HM_MODEL_PLACEMENT_FIT_WISHES_H

#include <stdbool.h>

#include "model/placement/card_order.h"
#include "model/placement/card_score.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_ask.h"

enum { WISHES_KINDS_KNOWN = 8 };

struct wishes {
	struct pod_wishes texts;
	struct card_order order;
	struct card_weights weights;
	bool numa_bind;
	bool takes_mig; /* the pod would take an instance of a card in MIG mode */
	struct {
		const char *type, *mode;
		bool does;
	} known[WISHES_KINDS_KNOWN]; /* answers given before, for equal pointers */
	unsigned next_known;
};

/* -HM_EINVAL for weights that cannot be read. */
int wishes_read(const struct pod_wishes *texts, const char *card_policy, struct wishes *out,
		struct hm_err *e) HM_MUST_USE;

/* Type and mode, both kept texts of the nodes. */
bool wishes_take_kind(struct wishes *w, const struct node_card *card);
bool wishes_take_uuid(const struct wishes *w, const struct node_card *card);

#endif
