/* The region's file: opened, validated, mapped. For libvgpu, and for the short-lived child in which the agent reaps: a
 * mapping of a file that a container can truncate may end its process (SIGBUS), so the agent itself only reads. */
#ifndef HM_REGION_MAP_H
#define HM_REGION_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "contract/region_layout.h"
#include "core/err.h"
#include "region/limit_file.h"
#include "region/slots.h"

enum { REGION_PATH_BYTES = 256 };

struct region_map {
	struct region_layout *r;
	char path[REGION_PATH_BYTES]; /* "": private, no file */
	uint64_t device, inode;
	_Atomic uint32_t reaping; /* a thread of ours is at it: record locks do not tell threads apart */
};

/* Opens a region file for reading, or also writing, and validates its header into *h. Returns the file descriptor
 * (close-on-exec; symbolic links are not followed), -HM_ENOTFOUND, -HM_EPERM, -HM_EPROTO, -HM_EUNSUPPORTED or -HM_EIO.
 */
int region_open_file(const char *path, bool writable, struct region_header *h, struct hm_err *e) HM_MUST_USE;

/* Maps an existing region; keeps no file descriptor. A forked child has the mapping too, until it maps its own:
 * pointers into it may be followed before that. */
int region_map_file(const char *path, struct region_map *m, struct hm_err *e) HM_MUST_USE;
/* A region of this process alone. */
int region_map_private(const struct limits *limits, struct region_map *m, struct hm_err *e) HM_MUST_USE;
void region_unmap(struct region_map *m);
/* Puts zeros, of this process alone, in the region's place: threads in the middle of it find no slot there, and no end.
 */
void region_map_leave(struct region_map *m);

/* Is the file still whole and in its place? -HM_EPROTO (cut or enlarged), -HM_ENOTFOUND (deleted or replaced). */
int region_map_check(const struct region_map *m, struct hm_err *e) HM_MUST_USE;

/* slot_clear_if under the reap lock, waiting for it at most wait_ms. Returns the slots freed, or negative: -HM_EAGAIN
 * where another holds the lock all the time. */
int region_map_reap(struct region_map *m, unsigned wait_ms, bool (*dead)(const struct region_slot_id *id, void *arg),
		    void *arg, struct hm_err *e) HM_MUST_USE;

/* The card's number in the region; one that is not there yet is added where `add` is set. Negative: not there, or full.
 */
int region_map_card(struct region_map *m, const struct limit_card *card, bool add) HM_MUST_USE;

/* What a fresh file says in front of its counters; cards has HM_MAX_CARDS elements, all zero. */
void region_fill(struct region_header *h, struct region_card_config *cards, const struct limits *limits,
		 uint64_t generation);

/* Counts a trouble and keeps its text (cut to REGION_TROUBLE_BYTES). */
void region_trouble(struct region_layout *r, const char *text);

#endif
