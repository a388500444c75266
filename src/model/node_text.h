/* How the agent has cut this node's cards: <state>/node, written by the agent at start and whenever the cards change,
 * read by hami-smi. Format and versions: docs/contracts/node.md.
 *
 *     hami-vgpu-node 1
 *     slots_per_card=4
 *     slot_memory_mb=0                                 (as configured; 0: card memory / slots)
 *     slicing=static|dynamic
 *     binding=late|classic
 *     pid=1234                                         (the agent's; it may have ended)
 *     card=<uuid> slots=<n> slot_memory=<bytes> slot_cores=<percent>      (one line each)
 *     end
 */
#ifndef HM_MODEL_NODE_TEXT_H
#define HM_MODEL_NODE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "contract/names.h"
#include "core/err.h"
#include "model/slots.h"

enum { NODE_TEXT_MAX_BYTES = 16384 };

enum node_binding { NODE_BINDING_LATE, NODE_BINDING_CLASSIC };

struct node_card {
	char uuid[HM_UUID_BYTES];
	unsigned slots; /* 1 and up */
	uint64_t slot_memory_bytes;
	unsigned slot_cores; /* percent */
};

struct node_text {
	uint64_t slots_per_card, slot_memory_mb; /* as configured */
	enum slicing slicing;
	enum node_binding binding;
	uint64_t pid;
	struct node_card cards[HM_MAX_CARDS];
	size_t card_count;
};

/* The cut's cards and settings; binding and pid are the caller's to set. */
void node_text_from_slots(const struct slots *s, const struct slots_config *config, struct node_text *out);

/* Appends the file's text. */
void node_text_write(const struct node_text *node, struct str *out);
/* -HM_EPROTO names line and reason, -HM_EUNSUPPORTED an unknown version. Owns nothing. */
int node_text_parse(const char *text, size_t n, struct node_text *out, struct hm_err *e) HM_MUST_USE;

const char *slicing_name(enum slicing slicing);           /* "static", "dynamic" */
const char *node_binding_name(enum node_binding binding); /* "late", "classic" */

#endif
