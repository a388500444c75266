/* What a mix of pods was at some time, to tell when it has become another one. */
#ifndef HM_MODEL_PLACEMENT_MIX_MARK_H
#define HM_MODEL_PLACEMENT_MIX_MARK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/placement/pod_mix.h"

/* Zeroed: of a mix without pods. */
struct mix_mark {
	struct {
		uint64_t number, weight;
	} entries[MIX_MAX_SHAPES];
	size_t count;
	uint64_t total, seen;
	uint64_t looked_seen; /* of the mix, when it was looked at last */
};

void mix_mark_set(struct mix_mark *mark, const struct pod_mix *m);

/* A mix that is given is another one when its total is. One that learns, when an eighth as many pods came as it had,
 * and of them it has more than before, or a sixteenth is of another shape. */
bool mix_mark_is_old(struct mix_mark *mark, const struct pod_mix *m);

#endif
