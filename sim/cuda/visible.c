#include "sim/cuda/visible.h"

#include <stdlib.h>
#include <string.h>

#include "sim/lib/sim_client.h"
#include "sim/lib/sim_visible.h"

/* The list's order is CUDA's order; it ends at the first entry that names no card or one already named. A UUID may be
 * cut short as long as it stays unambiguous. */
unsigned cu_visible_devices(unsigned out[SIM_MAX_CARDS])
{
	const struct sim_node *node = sim_node();
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	unsigned cards[SIM_MAX_CARDS], count = sim_visible_cards(node, cards), used = 0;
	bool taken[SIM_MAX_CARDS] = { false };

	if (list == NULL) {
		memcpy(out, cards, count * sizeof cards[0]);
		return count;
	}
	while (*list != '\0') {
		size_t n = strcspn(list, ",");
		int at = sim_visible_find(node, cards, count, list, n, true);

		if (at < 0 || taken[at])
			break;
		taken[at] = true;
		out[used++] = cards[at];
		list += n + (list[n] == ',');
	}
	return used;
}
