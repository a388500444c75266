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
		unsigned with_mig;

		if (card < 0 && sim_visible_mig(node, p, n, &with_mig) >= 0)
			card = (int)with_mig;
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

int sim_visible_mig(const struct sim_node *node, const char *text, size_t n, unsigned *card)
{
	for (unsigned i = 0; i < node->card_count && i < SIM_MAX_CARDS; i++) {
		const struct sim_card *c = &node->cards[i];

		for (unsigned k = 0; k < SIM_MIG_INSTANCES; k++) {
			const struct sim_mig_ci *ci = &c->mig_cis[k];

			if (atomic_load(&ci->live) == 0 || strncmp(ci->uuid, text, n) != 0 || ci->uuid[n] != '\0')
				continue;
			*card = i;
			return (int)k;
		}
	}
	return -1;
}

bool sim_visible_shows_mig(const struct sim_node *node, unsigned card, unsigned place)
{
	const char *text = getenv("NVIDIA_VISIBLE_DEVICES");
	unsigned all[SIM_MAX_CARDS], count = all_cards(node, all), on = 0;

	if (text == NULL || strcmp(text, "all") == 0)
		return true;
	for (const char *p = text; *p != '\0';) {
		size_t n = strcspn(p, ",");

		if (sim_visible_find(node, all, count, p, n, false) == (int)card ||
		    (sim_visible_mig(node, p, n, &on) == (int)place && on == card))
			return true;
		p += n + (p[n] == ',');
	}
	return false;
}
