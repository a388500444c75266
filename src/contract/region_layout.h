/* The usage region: one file of fixed size per container, mapped by all its processes. docs/contracts/region.md
 *
 * Nothing in it ever moves; reserved bytes are 0, so that one of them may get a meaning, in which 0 is the same as not
 * known, without a new version. Everything that several processes write is a 64-bit atomic. The words `used`, `who`,
 * `meta` and `op` are packed; the protocols over them stand on top of region/ledger.c and region/slots.c. */
#ifndef HM_CONTRACT_REGION_LAYOUT_H
#define HM_CONTRACT_REGION_LAYOUT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "contract/names.h"

#define REGION_MAGIC UINT64_C(0x314e4f4947455248) /* "HREGION1" */

enum {
	REGION_VERSION = 2,
	REGION_SLOTS = 1024,
	REGION_LANES = 8, /* operations of one process that may be under way at once; more wait */
	REGION_TROUBLE_TEXTS = 8,
	REGION_TROUBLE_BYTES = 128,
	REGION_CACHE_LINE = 64,
};

/* struct region_counter.used: bytes | slot | lane | mark. The last three name the operation that wrote the word. */
enum { USED_BYTES_BITS = 48, USED_SLOT_BITS = 10, USED_LANE_BITS = 3, USED_MARK_BITS = 3 };
#define REGION_MAX_BYTES ((UINT64_C(1) << USED_BYTES_BITS) - 1)

/* struct region_head.who: pid | start time in clock ticks since boot. 0: the slot is free. */
enum { WHO_PID_BITS = 22 };
/* struct region_head.meta: pid-namespace inode | number of uses of the slot. An inode of 0: not claimed yet. */
enum { META_NAMESPACE_BITS = 32 };

/* struct region_lane.op: state | card | sequence number. */
enum { OP_STATE_BITS = 2, OP_CARD_BITS = 4 };
enum { OP_IDLE = 0, OP_PENDING = 1, OP_APPLIED = 2 };

/* Written once, by the creator. */
struct region_header {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes;      /* of the whole file */
	uint64_t generation; /* counts the files this container had in this place */
	uint32_t card_count;
	uint32_t priority, policy, oversubscribe; /* as in the limit file, for viewers */
	uint8_t reserved[24];
};

/* For viewers: libvgpu obeys the limit file, which the container cannot write. */
struct region_card_config {
	char uuid[HM_UUID_BYTES];
	uint64_t limit_bytes;
	uint32_t cores;
	uint8_t reserved[52];
};

struct region_counter {
	_Atomic uint64_t used;
	_Atomic uint64_t peak_bytes;
	_Atomic uint64_t refused; /* requests over the limit */
	/* Allocations that the card had no room for, so that managed memory was taken (oversubscription): ever. */
	_Atomic uint64_t spilled, spilled_bytes;
	uint8_t reserved[24];
};

/* The compute limit of a card: region/bucket.h. Times are CLOCK_MONOTONIC, ns. */
struct region_compute {
	_Atomic uint64_t zero_ns;    /* when the tokens are, or were, 0 */
	_Atomic uint64_t spans_ns;   /* GPU time charged so far, uncorrected; modulo 2^64 */
	_Atomic uint64_t settled_ns; /* of error_ns: taken over into zero_ns */
	_Atomic uint64_t waits;      /* launches that had to wait */
	_Atomic uint64_t overdue;    /* launches let through because they had waited too long */
	uint8_t reserved[24];
	/* Written from outside the container, by whoever sees the driver's samples. */
	_Atomic uint64_t alpha;         /* what a nanosecond of spans counts for, in 1/65536; 0: 1 */
	_Atomic uint64_t error_ns;      /* GPU time used beyond what was charged, ever; signed, modulo 2^64 */
	_Atomic uint64_t open_until_ns; /* policy default: nobody else uses the card */
	_Atomic uint64_t hold_until_ns; /* a container of higher priority is at work */
	/* Until when alpha counts; 0: for good. Without its writer it would soon be another time's. */
	_Atomic uint64_t alpha_until_ns;
	uint8_t reserved_outside[24];
};

struct region_stats {
	_Atomic uint64_t troubles;
	_Atomic uint64_t unknown_entry_points; /* asked of cuGetProcAddress, newer than our table */
	_Atomic uint64_t attached;             /* processes, ever */
	_Atomic uint64_t reaped;               /* dead processes whose charge was returned */
	_Atomic uint64_t looks;                /* at all processes, for dead ones, begun */
	_Atomic uint64_t looked;               /* pid namespace | low half of the number of the last that is done */
	uint8_t reserved[16];
};

struct region_trouble {
	_Atomic uint64_t text[REGION_TROUBLE_BYTES / 8]; /* NUL-terminated bytes */
};

struct region_head {
	_Atomic uint64_t who;
	_Atomic uint64_t meta;
};

/* One operation at a time. A balance may be negative: memory is freed by whichever lane is at hand. The charge of a
 * process is the sum over its lanes, modulo 2^64. */
struct region_lane {
	_Atomic uint64_t op;
	_Atomic uint64_t after; /* this lane's balance on the card of `op` once the operation has taken effect */
	_Atomic uint64_t balance[HM_MAX_CARDS];
	uint8_t reserved[48];
};

struct region_layout {
	struct region_header header;
	struct region_card_config cards[HM_MAX_CARDS];
	struct region_counter counters[HM_MAX_CARDS];
	struct region_stats stats;
	struct region_trouble troubles[REGION_TROUBLE_TEXTS]; /* the newest is number (troubles - 1) % count */
	uint8_t reserved[64];
	struct region_head heads[REGION_SLOTS];
	struct region_lane lanes[REGION_SLOTS][REGION_LANES];
	struct region_compute compute[HM_MAX_CARDS];
};

_Static_assert(USED_BYTES_BITS + USED_SLOT_BITS + USED_LANE_BITS + USED_MARK_BITS == 64, "one word");
_Static_assert(REGION_SLOTS == 1 << USED_SLOT_BITS && REGION_LANES == 1 << USED_LANE_BITS, "every tag is a lane");
_Static_assert(HM_MAX_CARDS == 1 << OP_CARD_BITS, "every card number is a card");
_Static_assert(sizeof(struct region_header) == 64, "layout");
_Static_assert(sizeof(struct region_card_config) == 128, "layout");
_Static_assert(sizeof(struct region_counter) == REGION_CACHE_LINE, "layout");
_Static_assert(offsetof(struct region_counter, spilled) == 24, "layout");
_Static_assert(sizeof(struct region_compute) == 2 * REGION_CACHE_LINE, "layout");
_Static_assert(sizeof(struct region_stats) == REGION_CACHE_LINE, "layout");
_Static_assert(sizeof(struct region_head) == 16, "layout");
_Static_assert(sizeof(struct region_lane) == 3 * REGION_CACHE_LINE, "layout");
_Static_assert(offsetof(struct region_layout, cards) == 64, "layout");
_Static_assert(offsetof(struct region_layout, counters) == 2112, "layout");
_Static_assert(offsetof(struct region_layout, stats) == 3136, "layout");
_Static_assert(offsetof(struct region_layout, troubles) == 3200, "layout");
_Static_assert(offsetof(struct region_layout, heads) == 4288, "layout");
_Static_assert(offsetof(struct region_layout, lanes) == 20672, "layout");
_Static_assert(offsetof(struct region_layout, compute) == 1593536, "layout");
_Static_assert(sizeof(struct region_layout) == 1595584, "layout");
_Static_assert(offsetof(struct region_layout, compute) % REGION_CACHE_LINE == 0, "lines of their own");
_Static_assert(offsetof(struct region_layout, counters) % REGION_CACHE_LINE == 0, "lines of their own");
_Static_assert(offsetof(struct region_layout, lanes) % REGION_CACHE_LINE == 0, "lines of their own");

#endif
