/* Which cards a process may see. Real libraries see the device nodes that the container runtime let in; the
 * simulation's cards have no nodes of their own in a process's view, so that NVIDIA_VISIBLE_DEVICES, which the runtime
 * acts upon, stands for them: unset or "all" is every card; "none", "void" and "" are no card; else a list of card
 * numbers, GPU UUIDs and MIG UUIDs, commas between, where what names no card is skipped; a MIG UUID shows its card, and
 * of the card's MIG devices that one alone. Both libraries obey it: NVML shows these cards, CUDA those of them that
 * CUDA_VISIBLE_DEVICES (libcuda's business) leaves. */
#ifndef HM_SIM_VISIBLE_H
#define HM_SIM_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "sim/lib/sim_state.h"

/* The visible cards' numbers in the node's order, at most SIM_MAX_CARDS; returns how many. Reads the environment. */
unsigned sim_visible_cards(const struct sim_node *node, unsigned out[SIM_MAX_CARDS]);

/* The same for a given text; NULL is unset. */
unsigned sim_visible_cards_of(const struct sim_node *node, const char *text, unsigned out[SIM_MAX_CARDS]);

/* The card among cards[0..count) that text[0..n) names: its place in `cards`, or -1. A number counts within `cards`;
 * "GPU-..." is a UUID or, with `prefix`, an unambiguous beginning of one. */
int sim_visible_find(const struct sim_node *node, const unsigned *cards, unsigned count, const char *text, size_t n,
		     bool prefix);

/* The MIG device that text[0..n) names, among those of all cards: its place in mig_cis, or -1. */
int sim_visible_mig(const struct sim_node *node, const char *text, size_t n, unsigned *card);
/* Does the environment show this MIG device of a visible card? */
bool sim_visible_shows_mig(const struct sim_node *node, unsigned card, unsigned place);

#endif
