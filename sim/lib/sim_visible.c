#include "sim/lib/sim_visible.h"

#include <stdlib.h>
#include <string.h>

#include "core/num.h"

static unsigned all_cards(const struct sim_node *node, unsigned out[SIM_MAX_CARDS])
{
	unsigned count = node->card_count <= SIM_MAX_CARDS ? node->card_count : SIM_MAX_CARDS;

	for (unsigned i = 0; i < count; i++)
		out[i] = i;
	return count;
}

int sim_visible_find(const struct sim_node *node, const unsigned *cards, unsigned count, const char *text, size_t n,
		     bool prefix)
{
	uint64_t number;
	int found = -1;

	if (num_u64(text, n, SIM_MAX_CARDS, &number))
		return number < count ? (int)number : -1;
	if (n < sizeof "GPU-" - 1 || strncmp(text, "GPU-", 4) != 0)
		return -1;
	for (unsigned i = 0; i < count; i++) {
		const char *uuid = node->cards[cards[i]].info.uuid;

		if (strncmp(uuid, text, n) != 0 || (!prefix && uuid[n] != '\0'))
			continue;
		if (found >= 0)
			return -1; /* ambiguous */
		found = (int)i;
	}
	return found;
}

unsigned sim_visible_cards_of(const struct sim_node *node, const char *text, unsigned out[SIM_MAX_CARDS])
{
	unsigned all[SIM_MAX_CARDS], count = all_cards(node, all), visible = 0;
	bool named[SIM_MAX_CARDS] = { false };

	if (text == NULL || strcmp(text, "all") == 0) {
		memcpy(out, all, count * sizeof all[0]);
		return count;
	}
	for (const char *p = text; *p != '\0';) {
		size_t n = strcspn(p, ",");
		int card = sim_visible_find(node, all, count, p, n, false); /* "none" and "void" name no card */

		if (card >= 0)
			named[card] = true;
		p += n + (p[n] == ',');
	}
	for (unsigned i = 0; i < count; i++)
		if (named[i])
			out[visible++] = i;
	return visible;
}

unsigned sim_visible_cards(const struct sim_node *node, unsigned out[SIM_MAX_CARDS])
{
	return sim_visible_cards_of(node, getenv("NVIDIA_VISIBLE_DEVICES"), out);
}
