/* The file that HAMi's vGPUmonitor reads of each container: HAMi-core's shared region, layout 1.2 (LP64,
 * little-endian). Only the words that the monitor reads or writes have a name here. docs/agent.md, "HAMi's monitor" */
#ifndef HM_CONTRACT_HAMI_CACHE_H
#define HM_CONTRACT_HAMI_CACHE_H

#include <stddef.h>
#include <stdint.h>

enum {
	HAMI_CACHE_MAGIC = 19920718,
	HAMI_CACHE_MAJOR = 1,
	HAMI_CACHE_MINOR = 2,
	HAMI_CACHE_DEVICES = 16,
	HAMI_CACHE_UUID_BYTES = 96,
	HAMI_CACHE_SLOTS = 1024,
	HAMI_CACHE_RUNNING = 1, /* struct hami_cache_slot.status; 0: free */
	HAMI_CACHE_BYTES = 2008953,
};

/* HAMi-core's words about launches. */
enum {
	HAMI_CACHE_LAUNCHED = 2, /* recent_kernel: set by who launches, counted down by the monitor each 5 s */
	HAMI_CACHE_HELD = -1,    /* recent_kernel: set by the monitor each 5 s, nobody may launch */
	HAMI_CACHE_HEARD =
		-2, /* recent_kernel: our own word for a hold that was read; to the monitor as good as held */
};

struct hami_cache_memory {
	uint64_t context, module, data, offset, total;
	uint64_t unused[3];
};

struct hami_cache_utilization {
	uint64_t decoder, encoder, sm; /* percent */
	uint64_t unused[3];
};

struct hami_cache_slot {
	int32_t pid, host_pid;
	struct hami_cache_memory used[HAMI_CACHE_DEVICES];
	uint64_t monitor_used[HAMI_CACHE_DEVICES];
	struct hami_cache_utilization utilization[HAMI_CACHE_DEVICES];
	int32_t status;
	uint8_t unused[28];
};

struct hami_cache {
	int32_t magic, major, minor, sm_init;
	uint8_t lock[40]; /* owner and semaphore of HAMi-core, which does not use this file */
	uint64_t device_count;
	char uuids[HAMI_CACHE_DEVICES][HAMI_CACHE_UUID_BYTES];
	uint64_t limit_bytes[HAMI_CACHE_DEVICES];
	uint64_t sm_limit[HAMI_CACHE_DEVICES]; /* percent */
	struct hami_cache_slot slots[HAMI_CACHE_SLOTS];
	int32_t slot_count; /* slots [0, slot_count) are looked at */
	int32_t utilization_switch, recent_kernel;
	int32_t priority;
	int64_t last_kernel_time; /* Unix seconds */
	uint8_t unused[32];
};

_Static_assert(sizeof(struct hami_cache_slot) == 1960, "layout 1.2");
_Static_assert(offsetof(struct hami_cache_slot, monitor_used) == 1032, "layout 1.2");
_Static_assert(offsetof(struct hami_cache_slot, utilization) == 1160, "layout 1.2");
_Static_assert(offsetof(struct hami_cache_slot, status) == 1928, "layout 1.2");
_Static_assert(sizeof(struct hami_cache) == HAMI_CACHE_BYTES - 1, "layout 1.2");
_Static_assert(offsetof(struct hami_cache, device_count) == 56, "layout 1.2");
_Static_assert(offsetof(struct hami_cache, limit_bytes) == 1600, "layout 1.2");
_Static_assert(offsetof(struct hami_cache, sm_limit) == 1728, "layout 1.2");
_Static_assert(offsetof(struct hami_cache, slots) == 1856, "layout 1.2");
_Static_assert(offsetof(struct hami_cache, slot_count) == 2008896, "layout 1.2");
_Static_assert(offsetof(struct hami_cache, recent_kernel) == 2008904, "layout 1.2");
_Static_assert(offsetof(struct hami_cache, last_kernel_time) == 2008912, "layout 1.2");

#endif
