#include "gpu/busy.h"

#include <stdlib.h>

#include "base/array.h"
#include "gpu/driver.h"

enum { FIRST_ROOM = 64, SANE_PROCESSES = 65536 };

void gpu_busy_fini(struct gpu_busy_list *l)
{
	free(l->items);
	free(l->room);
	*l = (struct gpu_busy_list) { .items = NULL };
}

/* Drivers have been seen to answer with shares above 100, and with samples older than asked for. */
static bool take(struct gpu_busy_list *l, uint64_t since_us, unsigned pid, uint64_t at_us, unsigned percent)
{
	if (pid == 0 || percent > 100 || at_us <= since_us)
		return true;
	if (!HM_PUSH(l->items, l->count, l->cap, (struct gpu_busy) { pid, percent }))
		return false;
	l->until_us = HM_MAX(l->until_us, at_us);
	return true;
}

/* One call with room for `count`; *count becomes what there is. */
typedef int read_call(struct gpu_driver *d, struct nvml_device *handle, uint64_t since_us, struct gpu_busy_list *l,
		      unsigned *count);

static int read_newer(struct gpu_driver *d, struct nvml_device *handle, uint64_t since_us, struct gpu_busy_list *l,
		      unsigned *count)
{
	struct nvml_processes_utilization_info info = { .version = NVML_PROCESSES_UTILIZATION_INFO_V1,
							.last_seen_us = since_us };
	const struct nvml_process_utilization_info *found;
	int result;

	if (!array_reserve(&l->room, &l->room_cap, *count, sizeof *found))
		return NVML_ERROR_MEMORY;
	info.processes = l->room;
	info.count = *count;
	result = NVML(d, nvmlDeviceGetProcessesUtilizationInfo, handle, &info);
	found = l->room;
	for (unsigned i = 0; result == NVML_SUCCESS && i < HM_MIN(info.count, *count); i++) {
		if (!take(l, since_us, found[i].pid, found[i].timestamp_us, found[i].sm))
			return NVML_ERROR_MEMORY;
	}
	*count = info.count;
	return result;
}

static int read_older(struct gpu_driver *d, struct nvml_device *handle, uint64_t since_us, struct gpu_busy_list *l,
		      unsigned *count)
{
	unsigned room = *count;
	const struct nvml_process_utilization *found;
	int result;

	/* The element of the newer call is the larger one: the room may be either's. */
	if (!array_reserve(&l->room, &l->room_cap, room, sizeof(struct nvml_process_utilization_info)))
		return NVML_ERROR_MEMORY;
	result = NVML(d, nvmlDeviceGetProcessUtilization, handle, l->room, count, since_us);
	found = l->room;
	for (unsigned i = 0; result == NVML_SUCCESS && i < HM_MIN(*count, room); i++) {
		if (!take(l, since_us, found[i].pid, found[i].timestamp_us, found[i].sm))
			return NVML_ERROR_MEMORY;
	}
	return result;
}

/* Asks with more room until the list fits: processes may come between two calls. */
static int read_all(read_call *call, struct gpu_driver *d, struct nvml_device *handle, uint64_t since_us,
		    struct gpu_busy_list *l)
{
	unsigned room = HM_MAX((unsigned)FIRST_ROOM, (unsigned)l->room_cap);

	for (unsigned tries = 0; tries < 8 && room <= SANE_PROCESSES; tries++) {
		unsigned count = room;
		int result = call(d, handle, since_us, l, &count);

		if (result != NVML_ERROR_INSUFFICIENT_SIZE)
			return result == NVML_ERROR_NOT_FOUND ? NVML_SUCCESS : result;
		room = HM_MAX(count, room) + FIRST_ROOM;
	}
	return NVML_ERROR_INSUFFICIENT_SIZE;
}

static bool is_missing(int result)
{
	return result == NVML_ERROR_FUNCTION_NOT_FOUND || result == NVML_ERROR_NOT_SUPPORTED;
}

int gpu_busy_read(struct gpu_driver *d, const char *uuid, uint64_t since_us, struct gpu_busy_list *l, struct hm_err *e)
{
	struct nvml_device *handle = NULL;
	int r = driver_card(d, uuid, &handle, e), result;

	l->count = 0;
	l->until_us = 0;
	if (r < 0)
		return r;
	result = read_all(read_older, d, handle, since_us, l);
	if (is_missing(result))
		result = read_all(read_newer, d, handle, since_us, l);
	if (result == NVML_SUCCESS)
		return 0;
	l->count = 0;
	driver_error(d, result, "nvmlDeviceGetProcessUtilization", e);
	return hm_err_wrap(e, "GPU %s", uuid);
}
