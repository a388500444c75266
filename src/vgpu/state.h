/* What libvgpu knows in this process: limits, region, slot, what is held. Made at the first call that needs it; a
 * forked child starts anew (its memory is wiped), so that it has a slot of its own and holds nothing. */
#ifndef HM_VGPU_STATE_H
#define HM_VGPU_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "core/macros.h"
#include "region/limit_file.h"
#include "region/map.h"
#include "vgpu/env_limits.h"
#include "vgpu/track.h"

struct throttle;

enum vgpu_mode {
	VGPU_REFUSE, /* limits there should be, but they cannot be held: nothing may be allocated */
	VGPU_ON,     /* limits hold */
	VGPU_OFF,    /* neither a limit file nor limits in the environment */
};

enum { VGPU_DEVICES = 64, VGPU_CARD_UNKNOWN = 0, VGPU_CARD_NONE = -1 };

enum { VGPU_OVERHEAD_PIDS = 8 };

/* See overhead.c. Changes under overhead_lock. */
struct vgpu_overhead {
	uint64_t charged;
	uint32_t pids[VGPU_OVERHEAD_PIDS]; /* as the driver's list names this process; several: one of them */
	uint32_t pid_count;                /* 0: not known */
};

/* See graph_memory.c. Changes under graph_lock. */
struct vgpu_graphs {
	uint64_t charged, promised, needed;
	uint32_t flights; /* launches under way */
	uint32_t epoch;
};

struct vgpu_card {
	struct limit_card limit;
	int region_card;       /* negative: not in the region; nothing may be allocated on it */
	_Atomic int8_t spills; /* spill.c; 0: not asked yet */
};

/* What every allocation touches stands first and together. */
struct vgpu {
	_Atomic uint32_t phase; /* see state.c; 0 after a fork */
	uint32_t pid;           /* where the kernel does not wipe pages on fork */
	bool check_pid;
	bool from_env;
	bool told; /* why nothing may be allocated: said once, however often it is tried again */
	_Atomic enum vgpu_mode mode;
	struct ledger ledger;
	_Atomic uint64_t expect_until_ns; /* overhead.h: 0, or code may come until then */
	_Atomic uint32_t greens;          /* green contexts with a CUcontext */
	struct region_map map;
	_Atomic int8_t card_of[VGPU_DEVICES]; /* by CUDA device: the card's number + 1, or VGPU_CARD_... */
	struct vgpu_card cards[HM_MAX_CARDS];
	struct track track;
	_Atomic uint32_t card_count;
	_Atomic uint32_t card_lock;
	_Atomic uint32_t pool_lock;
	_Atomic uint64_t pool_step; /* by which pools grow; 0: not seen yet */
	_Atomic bool pools_idle;    /* some pool may give memory back at the next synchronisation */
	_Atomic uint64_t primary[VGPU_DEVICES];
	_Atomic uint64_t graph_devices; /* a bit for each device on which graphs have memory nodes */
	_Atomic uint32_t graph_lock;
	uint32_t graph_trims;                    /* under way */
	struct vgpu_graphs graphs[HM_MAX_CARDS]; /* by CUDA device */
	_Atomic uint32_t overhead_lock;
	uint32_t nvml; /* for measuring; see overhead.c */
	_Atomic uint64_t measure_after_ns;
	_Atomic bool uses_managed;
	struct vgpu_overhead overhead[HM_MAX_CARDS];
	_Atomic bool is_parked; /* checkpoint.c */
	uint64_t parked[HM_MAX_CARDS];
	struct env_limits env;
	unsigned priority;
	enum limit_policy policy;
	bool oversubscribe;
	struct throttle *_Atomic throttle; /* throttle.c */
};

/* The state where limits hold or nothing may be allocated; NULL where there are none. errno is kept. */
struct vgpu *vgpu_get(void);

/* The inode of the first pid namespace is fixed (Linux: PROC_PID_INIT_INO). */
#define VGPU_HOST_PID_NAMESPACE UINT32_C(0xEFFFFFFC)

static inline uint32_t vgpu_pid_namespace(const struct vgpu *v)
{
	return (uint32_t)v->ledger.meta;
}

/* Never to change: cards of the environment come as they are met. */
static inline bool vgpu_has_one_card(const struct vgpu *v)
{
	return v->card_count == 1 && !v->from_env;
}

/* The card of a CUDA device; NULL: not ours to use (not in the limit file), or its UUID cannot be had. */
struct vgpu_card *vgpu_card_of(struct vgpu *v, CUdevice device);
/* By UUID; in env mode a new one is added with the limit of `ordinal`. */
struct vgpu_card *vgpu_card_by_uuid(struct vgpu *v, const char *uuid, unsigned ordinal);

/* Charges a card. False: over the limit, or the region is lost. */
bool vgpu_try_charge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes);
/* The same, after a refusal: dead processes' charge is returned first; what is refused now is counted. */
bool vgpu_charge_after_reaping(struct vgpu *v, struct vgpu_card *card, uint64_t bytes);
/* Charges what is taken already, limit or not. */
void vgpu_charge_taken(struct vgpu *v, struct vgpu_card *card, uint64_t bytes);
void vgpu_uncharge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes);
/* May an allocation within the limit exceed the card itself? (oversubscribe=1, and a limit on this card) */
static inline bool vgpu_is_oversubscribed(const struct vgpu *v, const struct vgpu_card *card)
{
	return v->oversubscribe && card->limit.memory_bytes < REGION_MAX_BYTES;
}
/* What the container uses of a card now; dead processes are seen to first. */
uint64_t vgpu_card_used(struct vgpu *v, struct vgpu_card *card);

/* Records what went wrong: counted and kept in the region, and on stderr where HAMI_VGPU_LOG is set (at most 20 lines
 * a process). */
void vgpu_trouble(struct vgpu *v, const char *fmt, ...) HM_PRINTF(2, 3);
void vgpu_count_unknown_entry(void);

#endif
