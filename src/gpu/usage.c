#include "gpu/scan.h"

#include <stdlib.h>

#include "base/array.h"
#include "gpu/driver.h"

enum { SANE_PROCESSES = 65536 };

/* A process list, whatever version of the call filled it. */
struct found {
	struct nvml_process_info *items; /* owned */
	size_t cap;
	unsigned count;
};

typedef int list_call(struct nvml_device *, unsigned *, struct nvml_process_info *);

/* Asks with more room until the list fits: processes may come between two calls. */
static int read_list(list_call *call, struct nvml_device *handle, struct found *out)
{
	unsigned room = 32;

	for (unsigned tries = 0; tries < 8; tries++) {
		int result;

		if (!array_reserve(&out->items, &out->cap, room, sizeof *out->items))
			return NVML_ERROR_MEMORY;
		out->count = room;
		result = call(handle, &out->count, out->items);
		if (result != NVML_ERROR_INSUFFICIENT_SIZE) {
			out->count = result == NVML_SUCCESS ? HM_MIN(out->count, room) : 0;
			return result;
		}
		if (out->count > SANE_PROCESSES)
			break;
		room = HM_MAX(out->count, room) + 32;
	}
	out->count = 0;
	return NVML_ERROR_INSUFFICIENT_SIZE;
}

/* The first version of the call, of drivers before 2020, has a shorter entry. */
static int read_list_v1(struct gpu_driver *d, struct nvml_device *handle, struct found *out)
{
	struct nvml_process_info_v1 old[256];
	unsigned count = HM_COUNT(old);
	int result = NVML(d, nvmlDeviceGetComputeRunningProcesses, handle, &count, old);

	if (result != NVML_SUCCESS)
		return result;
	count = HM_MIN(count, (unsigned)HM_COUNT(old));
	if (!array_reserve(&out->items, &out->cap, (size_t)count + 1, sizeof *out->items))
		return NVML_ERROR_MEMORY;
	for (unsigned i = 0; i < count; i++)
		out->items[i] =
			(struct nvml_process_info) { old[i].pid, old[i].used, NVML_NO_INSTANCE, NVML_NO_INSTANCE };
	out->count = count;
	return result;
}

static int read_compute(struct gpu_driver *d, struct nvml_device *handle, struct found *out)
{
	if (d->nvmlDeviceGetComputeRunningProcesses_v3 != NULL)
		return read_list(d->nvmlDeviceGetComputeRunningProcesses_v3, handle, out);
	if (d->nvmlDeviceGetComputeRunningProcesses_v2 != NULL)
		return read_list(d->nvmlDeviceGetComputeRunningProcesses_v2, handle, out);
	return read_list_v1(d, handle, out);
}

static int read_graphics(struct gpu_driver *d, struct nvml_device *handle, struct found *out)
{
	if (d->nvmlDeviceGetGraphicsRunningProcesses_v3 != NULL)
		return read_list(d->nvmlDeviceGetGraphicsRunningProcesses_v3, handle, out);
	if (d->nvmlDeviceGetGraphicsRunningProcesses_v2 != NULL)
		return read_list(d->nvmlDeviceGetGraphicsRunningProcesses_v2, handle, out);
	return NVML_ERROR_FUNCTION_NOT_FOUND;
}

static bool listed(const struct found *f, unsigned pid)
{
	for (unsigned i = 0; i < f->count; i++) {
		if (f->items[i].pid == pid)
			return true;
	}
	return false;
}

/* Appends those of `from` that `but` does not list; *count goes on beyond cap. */
static void append(const struct found *from, const struct found *but, struct gpu_process *out, size_t cap,
		   size_t *count)
{
	for (unsigned i = 0; i < from->count; i++) {
		if (but != NULL && listed(but, from->items[i].pid))
			continue;
		if (*count < cap)
			out[*count] = (struct gpu_process) { from->items[i].pid, from->items[i].used };
		(*count)++;
	}
}

int gpu_processes(struct gpu_driver *d, const char *uuid, struct gpu_process *out, size_t cap, size_t *count,
		  struct hm_err *e)
{
	struct nvml_device *handle = NULL;
	struct found compute = { 0 }, graphics = { 0 };
	int r = driver_card(d, uuid, &handle, e), result;

	*count = 0;
	if (r < 0)
		return r;
	result = read_compute(d, handle, &compute);
	if (result == NVML_SUCCESS) {
		int more = read_graphics(d, handle, &graphics);

		/* A card that does not list them has none to list. */
		result = more == NVML_ERROR_MEMORY ? more : NVML_SUCCESS;
	}
	if (result == NVML_SUCCESS) {
		/* A process that computes and draws stands in both lists with the same memory. */
		append(&compute, NULL, out, cap, count);
		append(&graphics, &compute, out, cap, count);
	} else {
		driver_error(d, result, "nvmlDeviceGetComputeRunningProcesses", e);
		r = hm_err_wrap(e, "GPU %s", uuid);
	}
	free(compute.items);
	free(graphics.items);
	return r;
}

int gpu_memory(struct gpu_driver *d, const char *uuid, uint64_t *total, uint64_t *used, struct hm_err *e)
{
	struct nvml_device *handle = NULL;
	struct nvml_memory_v2 v2 = { .version = NVML_MEMORY_V2 };
	struct nvml_memory v1 = { 0 };
	int r = driver_card(d, uuid, &handle, e), result;

	if (r < 0)
		return r;
	if (NVML(d, nvmlDeviceGetMemoryInfo_v2, handle, &v2) == NVML_SUCCESS) {
		*total = v2.total;
		*used = v2.used;
		return 0;
	}
	result = d->nvmlDeviceGetMemoryInfo(handle, &v1);
	if (result != NVML_SUCCESS) {
		driver_error(d, result, "nvmlDeviceGetMemoryInfo", e);
		return hm_err_wrap(e, "GPU %s", uuid);
	}
	*total = v1.total;
	*used = v1.used;
	return 0;
}

int gpu_utilization(struct gpu_driver *d, const char *uuid, unsigned *busy_percent, unsigned *memory_percent,
		    struct hm_err *e)
{
	struct nvml_device *handle = NULL;
	struct nvml_utilization u = { 0 };
	int r = driver_card(d, uuid, &handle, e), result;

	if (r < 0)
		return r;
	result = NVML(d, nvmlDeviceGetUtilizationRates, handle, &u);
	if (result != NVML_SUCCESS) {
		driver_error(d, result, "nvmlDeviceGetUtilizationRates", e);
		return hm_err_wrap(e, "GPU %s", uuid);
	}
	*busy_percent = u.gpu;
	*memory_percent = u.memory;
	return 0;
}
