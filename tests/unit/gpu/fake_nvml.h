/* A small NVML of its own for the tests of src/gpu: what it answers is in one struct that the test changes. */
#ifndef HM_TESTS_GPU_FAKE_NVML_H
#define HM_TESTS_GPU_FAKE_NVML_H

#include <stdbool.h>
#include <stdint.h>

enum {
	FAKE_EVENTS = 8,
	FAKE_CARDS = 20,
	FAKE_LINKS = 18,
	FAKE_PROCESSES = 300,
	FAKE_FAULTS = 4,
	FAKE_PROFILES = 8,
	FAKE_MIGS = 7
};

struct fake_link {
	int to; /* card, -1: a switch, -2: unknown end, -3: the link is off */
};

struct fake_process {
	unsigned pid;
	unsigned long long used;
};

struct fake_use {
	unsigned pid, sm;
	unsigned long long at_us;
};

struct fake_profile {
	unsigned id, slices, instances, size, starts; /* slices 0: none; it may start at 0, size, 2 * size ... */
	unsigned long long memory_mib;
	const char *name;
};

struct fake_mig {
	bool gi, ci, busy;
	unsigned id, number, start, size, slices;
};

struct fake_card {
	char uuid[80], name[96], bus_id[32];
	unsigned minor, domain, bus, device;
	uint64_t total, reserved, used;
	unsigned long numa_mask;
	unsigned mig, mig_pending;
	int activation; /* what setting the MIG mode comes to */
	struct fake_profile profiles[FAKE_PROFILES];
	struct fake_mig migs[FAKE_MIGS];
	struct fake_link links[FAKE_LINKS];
	struct fake_process compute[FAKE_PROCESSES], graphics[4];
	unsigned compute_count, graphics_count;
	unsigned busy, memory_busy;
	struct fake_use uses[FAKE_PROCESSES];
	unsigned use_count;
	bool keeps_old; /* samples older than asked for are given too, as some drivers do */
	unsigned use_calls;
	unsigned long long event_types; /* that it supports */
	struct {
		unsigned long long type, data;
		unsigned gpu_instance, compute_instance;
	} events[FAKE_EVENTS]; /* to come */
	unsigned event_count, event_next;
	int action; /* the recovery action; negative: not told */
	unsigned rows_pending, rows_failed;
	bool retires_pages; /* in place of remapping rows */
	unsigned long long ecc_uncorrected;
};

struct fake {
	unsigned count;
	struct fake_card cards[FAKE_CARDS];
	unsigned ancestor; /* of any pair */
	struct {
		const char *call;
		int card; /* -1: any */
		int result;
	} faults[FAKE_FAULTS];
	int inits;      /* nvmlInit less nvmlShutdown */
	int event_sets; /* made less freed */
	int event_waits;
};

/* Between the fake's files: an injected result for a call on a card; the UUID of a MIG device's handle, -1: it is none.
 */
struct nvml_device;
int fake_answer(const char *call, const void *card);
int fake_mig_uuid(struct nvml_device *device, char *uuid, unsigned length);

#endif
