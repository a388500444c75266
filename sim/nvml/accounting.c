/* Accounting: of the processes that have memory on the card now; those that have ended are not remembered. */
#include "sim/nvml/handle.h"

static int running(struct nvml_device *device, unsigned *count, struct nvml_process_info *out)
{
	*count = SIM_MAX_PROCESSES;
	return nvmlDeviceGetComputeRunningProcesses_v3(device, count, out);
}

int nvmlDeviceGetAccountingPids(struct nvml_device *device, unsigned *count, unsigned *pids)
{
	struct nvml_process_info all[SIM_MAX_PROCESSES];
	unsigned found, room;
	CARD(device, count);
	int r = running(device, &found, all);

	room = *count;
	if (r == NVML_SUCCESS && room > 0 && pids == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r != NVML_SUCCESS)
		return r;
	for (unsigned i = 0; i < found && i < room; i++)
		pids[i] = all[i].pid;
	*count = found;
	return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* What the process has now. */
static int memory_of(struct nvml_device *device, unsigned pid, unsigned long long *bytes)
{
	struct nvml_process_info all[SIM_MAX_PROCESSES];
	unsigned found;
	int r = running(device, &found, all);

	if (r != NVML_SUCCESS)
		return r;
	for (unsigned i = 0; i < found; i++)
		if (all[i].pid == pid) {
			*bytes = all[i].used;
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetAccountingStats(struct nvml_device *device, unsigned pid, struct nvml_accounting_stats *stats)
{
	unsigned long long bytes = 0;
	CARD(device, stats);
	int r = memory_of(device, pid, &bytes);

	if (r == NVML_SUCCESS)
		*stats = (struct nvml_accounting_stats) { .max_memory_bytes = bytes, .is_running = 1 };
	return r;
}

int nvmlDeviceGetAccountingStats_v2(struct nvml_device *device, struct nvml_accounting_stats_v2 *stats)
{
	unsigned long long bytes = 0;
	CARD(device, stats);
	int r = memory_of(device, stats->pid, &bytes);

	if (r == NVML_SUCCESS)
		*stats = (struct nvml_accounting_stats_v2) { .pid = stats->pid,
							     .is_running = 1,
							     .max_memory_bytes = bytes };
	return r;
}
