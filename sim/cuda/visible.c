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

static bool named_mig(const struct sim_node *node, const char *list, unsigned *card, uint32_t *live)
{
	unsigned cards[SIM_MAX_CARDS], count = sim_visible_cards(node, cards);
	int place = sim_visible_mig(node, list, strcspn(list, ","), card);

	for (unsigned i = 0; place >= 0 && i < count; i++)
		if (cards[i] == *card && sim_visible_shows_mig(node, *card, (unsigned)place)) {
			*live = atomic_load(&node->cards[*card].mig_cis[place].live);
			return true;
		}
	return false;
}

static bool first_mig(const struct sim_node *node, unsigned card, uint32_t *live)
{
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++) {
		*live = atomic_load(&node->cards[card].mig_cis[i].live);
		if (*live != 0 && sim_visible_shows_mig(node, card, i))
			return true;
	}
	return false;
}

bool cu_visible_mig(unsigned cards[SIM_MAX_CARDS], unsigned *count, unsigned *card, uint32_t *live)
{
	const struct sim_node *node = sim_node();
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	unsigned with_mig[SIM_MAX_CARDS], migs = 0, whole = 0;

	if (list != NULL && strncmp(list, "MIG-", 4) == 0) {
		*count = 0;
		return named_mig(node, list, card, live);
	}
	for (unsigned i = 0; i < *count; i++) {
		if (atomic_load(&node->cards[cards[i]].mig_mode) != 0)
			with_mig[migs++] = cards[i];
		else
			cards[whole++] = cards[i];
	}
	*count = whole;
	for (unsigned i = 0; whole == 0 && i < migs; i++)
		if (first_mig(node, with_mig[i], live)) {
			*card = with_mig[i];
			return true;
		}
	return false;
}
