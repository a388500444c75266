/* Event sets: each reads the node's ring of events from where it was when it was made. */
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/macros.h"
#include "sim/lib/engine.h"
#include "sim/nvml/handle.h"

enum { MAX_SETS = 64 };

struct nvml_event_set {
	bool taken;
	uint32_t cards, ecc_cards; /* a bit each that was registered for XID, and for double-bit ECC errors */
	uint64_t seen;             /* events of the ring before this are done with */
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct nvml_event_set sets[MAX_SETS];

static bool is_set(const struct nvml_event_set *set)
{
	return set >= sets && set < sets + MAX_SETS && set->taken;
}

int nvmlEventSetCreate(struct nvml_event_set **set)
{
	const struct sim_node *n = NULL;
	int r = node_enter(__func__, &n);

	if (r != NVML_SUCCESS)
		return r;
	if (set == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = NVML_ERROR_MEMORY;
	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < MAX_SETS && r != NVML_SUCCESS; i++) {
		if (sets[i].taken)
			continue;
		sets[i] = (struct nvml_event_set) { .taken = true, .seen = atomic_load(&n->event_head) };
		*set = &sets[i];
		r = NVML_SUCCESS;
	}
	pthread_mutex_unlock(&mutex);
	return r;
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
	const struct sim_node *n = NULL;
	int r = node_enter(__func__, &n);

	if (r != NVML_SUCCESS)
		return r;
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	set->taken = false;
	return NVML_SUCCESS;
}

static unsigned long long supported(const struct sim_card *c)
{
	if (atomic_load(&c->no_events) != 0)
		return 0;
	return NVML_EVENT_XID_CRITICAL | (c->info.ecc != 0 ? NVML_EVENT_DOUBLE_BIT_ECC : 0);
}

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, unsigned long long *types)
{
	CARD(device, types);
	*types = supported(c);
	return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(struct nvml_device *device, unsigned long long types, struct nvml_event_set *set)
{
	CARD(device, set);
	if (!is_set(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	if ((types & ~supported(c)) != 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if ((types & NVML_EVENT_XID_CRITICAL) != 0)
		set->cards |= 1U << number;
	if ((types & NVML_EVENT_DOUBLE_BIT_ECC) != 0)
		set->ecc_cards |= 1U << number;
	return NVML_SUCCESS;
}

/* The next event for the set. */
static bool take_event(const struct sim_node *n, struct nvml_event_set *set, struct nvml_event_data *data)
{
	uint64_t head = atomic_load(&n->event_head);

	if (head - set->seen > SIM_EVENTS)
		set->seen = head - SIM_EVENTS; /* the older ones were overwritten */
	while (set->seen < head) {
		const struct sim_event *event = &n->events[set->seen % SIM_EVENTS];
		bool whole = atomic_load(&event->sequence) == set->seen + 1;

		set->seen++;
		if (!whole || event->card >= SIM_MAX_CARDS ||
		    ((event->xid != 0 ? set->cards : set->ecc_cards) >> event->card & 1) == 0)
			continue;
		*data = (struct nvml_event_data) { .device = handle_of(event->card),
						   .type = event->xid != 0 ? NVML_EVENT_XID_CRITICAL
									   : NVML_EVENT_DOUBLE_BIT_ECC,
						   .data = event->xid,
						   .gpu_instance = event->gpu_instance,
						   .compute_instance = event->compute_instance };
		return true;
	}
	return false;
}

static bool has_lost_card(const struct sim_node *n, const struct nvml_event_set *set)
{
	for (unsigned i = 0; i < n->card_count; i++)
		if ((set->cards >> i & 1) != 0 && atomic_load(&n->cards[i].lost) != 0)
			return true;
	return false;
}

static void sleep_on(const _Atomic uint32_t *word, uint32_t seen, uint64_t deadline, uint64_t now)
{
	/* Also looks now and then whether the node is still there. */
	uint64_t left = HM_MIN(deadline - now, (uint64_t)200000000);
	struct timespec t = { (time_t)(left / 1000000000), (long)(left % 1000000000) };

	syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

static int wait_event(const char *call, struct nvml_event_set *set, struct nvml_event_data *data, unsigned timeout_ms)
{
	uint64_t deadline = sim_monotonic_ns() + (uint64_t)timeout_ms * 1000000;

	if (data == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (;;) {
		const struct sim_node *n = NULL;
		int r = node_enter(call, &n);
		uint32_t seen;
		uint64_t now;

		if (r != NVML_SUCCESS)
			return r;
		if (!is_set(set))
			return NVML_ERROR_INVALID_ARGUMENT;
		seen = atomic_load(&n->event_wake);
		if (take_event(n, set, data))
			return NVML_SUCCESS;
		if (has_lost_card(n, set))
			return NVML_ERROR_GPU_IS_LOST;
		now = sim_monotonic_ns();
		if (now >= deadline)
			return NVML_ERROR_TIMEOUT;
		sleep_on(&n->event_wake, seen, deadline, now);
	}
}

int nvmlEventSetWait(struct nvml_event_set *set, struct nvml_event_data *data, unsigned timeout_ms)
{
	return wait_event(__func__, set, data, timeout_ms);
}

int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, unsigned timeout_ms)
{
	return wait_event(__func__, set, data, timeout_ms);
}
