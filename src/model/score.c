#include "model/score.h"

#include "core/macros.h"

enum { POINTS_EACH_NVLINK = 100 };

static const unsigned path_points[] = {
	[LINK_NONE] = 0,          [LINK_SYSTEM] = 10,        [LINK_NODE] = 20,  [LINK_HOSTBRIDGE] = 30,
	[LINK_MULTI_SWITCH] = 40, [LINK_SINGLE_SWITCH] = 50, [LINK_BOARD] = 60, [LINK_NVLINK] = 0, /* is no path */
};

static unsigned nvlinks_of(struct card_link link)
{
	return link.direct > 0 ? link.direct : link.switched;
}

struct card_score score_pair(const struct inventory *inv, size_t a, size_t b)
{
	struct card_link there = inventory_link(inv, a, b), back = inventory_link(inv, b, a);
	unsigned nvlinks = HM_MIN(nvlinks_of(there), nvlinks_of(back));

	if (a == b)
		return (struct card_score) { 0 };
	if ((nvlinks_of(there) > 0) != (nvlinks_of(back) > 0))
		return (struct card_score) { 0, true };
	if (nvlinks > SCORE_MAX_NVLINKS)
		nvlinks = 0;
	return (struct card_score) { path_points[there.path] + POINTS_EACH_NVLINK * nvlinks };
}
