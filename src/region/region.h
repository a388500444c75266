/* The usage region of one container: a fixed-size shared file that all its processes and the agent map. Layout:
 * contract/region_layout.h. It is hostile ground to everyone but its own container: read once, range-check, then use.
 */
#ifndef HM_REGION_REGION_H
#define HM_REGION_REGION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/names.h"
#include "core/err.h"
#include "region/limit_file.h"

/* Makes the file (mode 0666 whatever the umask, owner as the caller) for these limits, or takes over one that fits:
 * same version and cards keeps its counters, so that a restarted container's live processes stay counted. Used by the
 * agent; and by libvgpu where no limit file is mounted, with no cards: those are added as they are met. */
int region_create(const char *path, const struct limits *limits, struct hm_err *e) HM_MUST_USE;

/* A copy of what the region says, validated; for the agent and hami-smi. Never more than a bounded read. */
struct region_process {
	uint32_t pid;           /* in the container's pid namespace */
	uint64_t start_time;    /* clock ticks since boot, field 22 of /proc/<pid>/stat */
	uint64_t pid_namespace; /* inode */
	uint64_t used_bytes[HM_MAX_CARDS];
};
struct region_card {
	char uuid[HM_UUID_BYTES];
	uint64_t limit_bytes, used_bytes, peak_bytes;
	unsigned cores;
	uint64_t refused;                /* allocations over the limit */
	uint64_t spilled, spilled_bytes; /* allocations in managed memory, since the card was full; ever */
	uint64_t spans_ns;               /* GPU time charged so far; modulo 2^64 */
};
enum { REGION_MAX_PROCESSES = 1024 };
struct region_snapshot {
	struct region_card cards[HM_MAX_CARDS];
	size_t card_count;
	struct region_process *processes; /* caller's array, REGION_MAX_PROCESSES long; NULL: not wanted */
	size_t process_count;
	uint64_t troubles; /* bad limit file, lost region, failed checks: counted by libvgpu */
	char last_trouble[128];
};
/* -HM_EPROTO where the file is no region of ours, -HM_EUNSUPPORTED another version, -HM_ENOTFOUND, -HM_EPERM. */
int region_snapshot(const char *path, struct region_snapshot *out, struct hm_err *e) HM_MUST_USE;

/* Returns the charge of processes that no longer live. `alive` tells by pid, start time and namespace; the agent's sees
 * host processes. Returns the number of slots freed, or negative. */
int region_reap(const char *path, bool (*alive)(const struct region_process *p, void *arg), void *arg,
		struct hm_err *e) HM_MUST_USE;

/* The compute limit's words of a card, from outside the container: its region, held open, and the card's number there.
 */
struct region_orders {
	uint64_t alpha, error_ns; /* region/alpha.h */
	uint64_t open_until_ns, hold_until_ns, alpha_until_ns;
};
/* A file descriptor, the caller's to close. Errors as region_snapshot's. */
int region_share_open(const char *path, struct hm_err *e) HM_MUST_USE;
/* -HM_ENOTFOUND where the card is not in the region. */
int region_share_card(int fd, const char *uuid, struct hm_err *e) HM_MUST_USE;
/* The GPU time that the container has charged so far (modulo 2^64), and the orders as they stand: by anyone's hand.
 * -HM_ENOTFOUND where the file is no longer the container's, -HM_EPROTO where it was cut or enlarged. */
int region_share_read(int fd, unsigned card, uint64_t *spans_ns, struct region_orders *out,
		      struct hm_err *e) HM_MUST_USE;
/* Writes those words of `want` that differ from `stands`. */
int region_share_write(int fd, unsigned card, const struct region_orders *stands, const struct region_orders *want,
		       struct hm_err *e) HM_MUST_USE;

#endif
