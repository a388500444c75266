/* A pod's wishes made ready to be asked of many cards. */
#ifndef HM_MODEL_PLACEMENT_FIT_WISHES_H
#define HM_MODEL_PLACEMENT_FIT_WISHES_H

#include <stdbool.h>

#include "base/map.h"
#include "model/placement/card_order.h"
#include "model/placement/card_score.h"
#include "model/placement/node_state.h"
#include "model/placement/pod_ask.h"

enum {
	WISHES_KINDS_KNOWN = 1024, /* a power of two */
	WISHES_MAX_TYPES = 128,    /* words of a list */
	WISHES_MAX_TYPES_BYTES = 16 * 1024,
};

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
	} known[WISHES_KINDS_KNOWN]; /* answers given before, by the pointers' hash; the last at a place counts */
};

void wishes_fini(struct wishes *w);

/* A list of types that is not too long: each of its words is held against each kind of card. NULL is none. -HM_EINVAL
 * names the annotation. */
int wishes_check_types(const char *list, const char *annotation, struct hm_err *e) HM_MUST_USE;

/* *out is empty, or was read before. -HM_EINVAL for weights that cannot be read, and lists of types that are too long;
 * -HM_ENOMEM. */
int wishes_read(const struct pod_wishes *texts, const char *card_policy, struct wishes *out,
		struct hm_err *e) HM_MUST_USE;

/* Type and mode, both kept texts of the nodes. */
bool wishes_take_kind(struct wishes *w, const struct node_card *card);
bool wishes_take_uuid(const struct wishes *w, const struct node_card *card);

#endif
