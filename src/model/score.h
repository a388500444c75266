/* How well two cards are joined, in HAMi's points: what hami.io/node-nvidia-score carries and the policy topology-aware
 * adds up. Its common ancestor in the PCIe tree (60 on one board, 50 one switch, 40 several, 30 a host bridge, 20 a
 * NUMA node, 10 the system), and 100 for each NVLink: those that lead straight to the other card, else those to
 * switches, of the card with fewer. Symmetrical. */
#ifndef HM_MODEL_SCORE_H
#define HM_MODEL_SCORE_H

#include <stdbool.h>
#include <stddef.h>

#include "model/inventory.h"

enum { SCORE_MAX_NVLINKS = 18 }; /* more than that give no points: HAMi knows no card that has them */

struct card_score {
	unsigned points;
	bool asymmetric; /* one card says that NVLinks join them, the other does not: 0 points, and worth an event */
};

/* Of two cards of the inventory; of a card with itself nothing. What could not be read gives no points. */
struct card_score score_pair(const struct inventory *inv, size_t a, size_t b);

#endif
