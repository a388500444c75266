/* Cutting cards into equal slots, and which slots a request should get (design: slices). Pure: no I/O, no Kubernetes.
 */
#ifndef HM_MODEL_SLOTS_H
#define HM_MODEL_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/inventory.h"

enum slicing { SLICING_STATIC, SLICING_DYNAMIC };

struct slots_config {
	uint64_t cores_per_device;   /* HAMI_VGPU_CORES_PER_DEVICE: slots of a card, 1..HM_MAX_SLOTS_PER_CARD */
	uint64_t memory_mb_per_core; /* HAMI_VGPU_MEMORY_MB_PER_CORE: MiB of a slot; 0: card memory / slots, rounded
					down */
	enum slicing slicing;
	bool oversubscribe; /* slots may have more memory than the card, up to SLOTS_MAX_SCALE times */
};

enum { SLOTS_MAX_SCALE = 16 };

/* One card's cut. By default what driver and firmware keep is not cut, so that all slots can be had in full. A size
 * that is configured may use the card's whole memory (8 x 5120 on 40960 MiB): `unbacked` says what is promised twice
 * then. */
struct slot_card {
	const struct card *card;
	unsigned slots;
	uint64_t slot_memory_bytes;     /* a whole number of MiB */
	unsigned slot_cores;            /* percent, 100 / slots rounded down, at least 1 (100 slots and more: 1) */
	uint64_t unused_memory_bytes;   /* the remainder, what driver and firmware keep included */
	uint64_t unbacked_memory_bytes; /* of the slots, but kept by driver and firmware, or beyond the card: worth a
					   warning */
	unsigned unused_cores;
};

struct slots; /* the cut of a whole inventory */

/* -HM_EINVAL where the slots of a card ask for more memory than it has; the message names card and both numbers. The
 * inventory is borrowed for the object's life. Cards in MIG mode are left out (without an instance CUDA finds no device
 * there), and those whose memory is not known. */
int slots_new(const struct inventory *inv, const struct slots_config *config, struct slots **out,
	      struct hm_err *e) HM_MUST_USE;
void slots_free(struct slots *s);
HM_DEFINE_AUTO(slots, slots_free);

size_t slots_card_count(const struct slots *s);
const struct slot_card *slots_card(const struct slots *s, size_t card);
size_t slots_total(const struct slots *s); /* over all cards */

/* A slot is (card, number); the card counts as slots_card() does, which is not the inventory's count where a card is
 * left out. */
struct slot_ref {
	unsigned card, number;
};

/* "<GPU-UUID>::<n>" both ways. -HM_ENOTFOUND for a card or slot that does not exist here, -HM_EPROTO for other text. */
void slot_id_format(const struct slots *s, struct slot_ref r, char out[HM_DEVICE_ID_BYTES]);
int slot_id_parse(const struct slots *s, const char *id, struct slot_ref *out, struct hm_err *e) HM_MUST_USE;

/* What a set of slots amounts to on each card it touches, in the inventory's order. */
struct grant_card {
	const struct slot_card *on;
	unsigned count;        /* slots */
	uint64_t memory_bytes; /* count x slot */
	unsigned cores;        /* percent, at most 100 */
	unsigned first_number; /* smallest slot number: the number of HAMI_VGPU_UUID */
	bool broken_run;       /* the slots are no neighbours (counted in static slicing, granted all the same) */
};
struct grant {
	struct grant_card cards[HM_MAX_CARDS];
	size_t count;
};

/* The grant for these slots, duplicates refused. Never refuses a set for being broken up: the kubelet has decided. */
int slots_grant(const struct slots *s, const struct slot_ref *refs, size_t count, struct grant *out,
		struct hm_err *e) HM_MUST_USE;

/* GetPreferredAllocation: `size` of the `available` slots, all of `must` among them. Packs: the fullest card that fits
 * the whole request, else the fewest cards, closest by NVLink, then NUMA; in static slicing unbroken runs first. `held`
 * (may be NULL) tells slots that a live claim holds though the kubelet offers them: taken last. Writes size refs;
 * -HM_EINVAL where available or must cannot satisfy it. The same input gives the same answer. Refs that stand twice
 * count once. */
struct slots_request {
	const struct slot_ref *available, *must;
	size_t available_count, must_count;
	size_t size;
	bool (*held)(struct slot_ref r, void *arg);
	void *arg;
};
int slots_prefer(const struct slots *s, const struct slots_request *req, struct slot_ref *out,
		 struct hm_err *e) HM_MUST_USE;

#endif
