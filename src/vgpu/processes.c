/* Process lists of NVML: this container's processes, by their own pids.
 *
 * The driver answers with pids of the host, which say nothing inside a pid namespace. So what lists memory is not
 * filtered but made anew from the region: its members, and what each is charged for. The driver is asked all the same,
 * for room for nothing, so that its errors stay its own. Utilisation, accounting and encoders are the driver's to know:
 * there its list is filtered, which takes a process that sees the pids of the host; elsewhere it is empty. */
#include "vgpu/view.h"

#include "region/slots.h"
#include "vgpu/hooks.h"

typedef void put_process(void *out, unsigned at, unsigned pid, unsigned long long used);

/* The pid of a slot, where it means the same to us as to its process; 0: nobody's, or of another namespace. */
static uint32_t member_pid(const struct vgpu *v, unsigned slot)
{
	struct region_slot_id id = slot_id(&v->map.r->heads[slot]);

	return id.pid_namespace == vgpu_pid_namespace(v) ? id.pid : 0;
}

/* Fills what there is room for; returns how many there are. */
static unsigned list_members(struct vgpu *v, struct vgpu_card *card, unsigned room, void *out, put_process *put)
{
	unsigned found = 0;

	if (card == NULL || card->region_card < 0)
		return 0;
	vgpu_card_used(v, card); /* the dead are seen to first, and a region that was cut off is let go */
	for (unsigned slot = 0; slot < REGION_SLOTS && v->mode == VGPU_ON; slot++) {
		uint32_t pid = member_pid(v, slot);
		uint64_t used = pid != 0 ? ledger_slot_used(v->map.r, slot, (unsigned)card->region_card) : 0;

		if (used == 0 || used > REGION_MAX_BYTES)
			continue;
		if (found < room)
			put(out, found, pid, used);
		found++;
	}
	return found;
}

static void put_v1(void *out, unsigned at, unsigned pid, unsigned long long used)
{
	((struct nvml_process_info_v1 *)out)[at] = (struct nvml_process_info_v1) { pid, used };
}

static void put_v2(void *out, unsigned at, unsigned pid, unsigned long long used)
{
	((struct nvml_process_info *)out)[at] =
		(struct nvml_process_info) { pid, used, NVML_NO_INSTANCE, NVML_NO_INSTANCE };
}

static void put_detail(void *out, unsigned at, unsigned pid, unsigned long long used)
{
	((struct nvml_process_detail *)out)[at] =
		(struct nvml_process_detail) { pid, used, NVML_NO_INSTANCE, NVML_NO_INSTANCE, 0 };
}

/* rc: the driver's answer to a caller without room. put NULL: of this kind we have none. */
static int answer_list(struct vgpu *v, struct nvml_device *device, int rc, unsigned *count, void *out, put_process *put)
{
	unsigned room = *count;

	if (rc != NVML_SUCCESS && rc != NVML_ERROR_INSUFFICIENT_SIZE)
		return rc;
	if (room > 0 && out == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = put != NULL ? list_members(v, view_nvml_card(v, device), room, out, put) : 0;
	return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

#define LIST(function, type, put)                                                                                      \
	VGPU_EXPORT int function(struct nvml_device *device, unsigned *count, struct type *out)                        \
	{                                                                                                              \
		struct vgpu *v = count != NULL ? vgpu_get() : NULL;                                                    \
		unsigned none = 0;                                                                                     \
                                                                                                                       \
		if (v == NULL)                                                                                         \
			return REAL(function)(device, count, out);                                                     \
		return answer_list(v, device, REAL(function)(device, &none, NULL), count, out, put);                   \
	}

LIST(nvmlDeviceGetComputeRunningProcesses, nvml_process_info_v1, put_v1)
LIST(nvmlDeviceGetComputeRunningProcesses_v2, nvml_process_info, put_v2)
LIST(nvmlDeviceGetComputeRunningProcesses_v3, nvml_process_info, put_v2)
LIST(nvmlDeviceGetGraphicsRunningProcesses, nvml_process_info_v1, NULL)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v2, nvml_process_info, NULL)
LIST(nvmlDeviceGetGraphicsRunningProcesses_v3, nvml_process_info, NULL)
LIST(nvmlDeviceGetMPSComputeRunningProcesses, nvml_process_info_v1, NULL)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvml_process_info, NULL)
LIST(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvml_process_info, NULL)

VGPU_EXPORT int nvmlDeviceGetRunningProcessDetailList(struct nvml_device *device, struct nvml_process_detail_list *list)
{
	struct vgpu *v = list != NULL ? vgpu_get() : NULL;
	struct nvml_process_detail_list none;
	int rc;

	if (v == NULL)
		return REAL(nvmlDeviceGetRunningProcessDetailList)(device, list);
	none = (struct nvml_process_detail_list) { .version = list->version, .mode = list->mode };
	rc = REAL(nvmlDeviceGetRunningProcessDetailList)(device, &none);
	return answer_list(v, device, rc, &list->count, list->processes,
			   list->mode == NVML_PROCESS_MODE_COMPUTE || list->mode == NVML_PROCESS_MODE_ALL ? put_detail
													  : NULL);
}

static bool is_member(const struct vgpu *v, unsigned pid)
{
	if (pid == 0 || v->mode != VGPU_ON || vgpu_pid_namespace(v) != VGPU_HOST_PID_NAMESPACE)
		return false;
	for (unsigned slot = 0; slot < REGION_SLOTS; slot++) {
		if (member_pid(v, slot) == pid)
			return true;
	}
	return false;
}

VGPU_EXPORT int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
						unsigned *count, unsigned long long last_seen_us)
{
	int rc = REAL(nvmlDeviceGetProcessUtilization)(device, samples, count, last_seen_us);
	struct vgpu *v = rc == NVML_SUCCESS ? vgpu_get() : NULL;
	unsigned kept = 0;

	if (v == NULL || samples == NULL)
		return rc;
	for (unsigned i = 0; i < *count; i++) {
		if (is_member(v, samples[i].pid))
			samples[kept++] = samples[i];
	}
	*count = kept;
	return kept > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

VGPU_EXPORT int nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device,
						      struct nvml_processes_utilization_info *info)
{
	int rc = REAL(nvmlDeviceGetProcessesUtilizationInfo)(device, info);
	struct vgpu *v = rc == NVML_SUCCESS ? vgpu_get() : NULL;
	unsigned kept = 0;

	if (v == NULL || info->processes == NULL)
		return rc;
	for (unsigned i = 0; i < info->count; i++) {
		if (is_member(v, info->processes[i].pid))
			info->processes[kept++] = info->processes[i];
	}
	info->count = kept;
	return kept > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* Sessions of encoders, by the processes that have them. */
#define SESSIONS(function, type)                                                                                       \
	VGPU_EXPORT int function(struct nvml_device *device, unsigned *count, struct type *out)                        \
	{                                                                                                              \
		int rc = REAL(function)(device, count, out);                                                           \
		struct vgpu *v = rc == NVML_SUCCESS && out != NULL ? vgpu_get() : NULL;                                \
		unsigned kept = 0;                                                                                     \
                                                                                                                       \
		if (v == NULL)                                                                                         \
			return rc;                                                                                     \
		for (unsigned i = 0; i < *count; i++) {                                                                \
			if (is_member(v, out[i].pid))                                                                  \
				out[kept++] = out[i];                                                                  \
		}                                                                                                      \
		*count = kept;                                                                                         \
		return rc;                                                                                             \
	}

SESSIONS(nvmlDeviceGetEncoderSessions, nvml_encoder_session)
SESSIONS(nvmlDeviceGetFBCSessions, nvml_fbc_session)

VGPU_EXPORT int nvmlDeviceGetAccountingPids(struct nvml_device *device, unsigned *count, unsigned *pids)
{
	int rc = REAL(nvmlDeviceGetAccountingPids)(device, count, pids);
	struct vgpu *v = rc == NVML_SUCCESS ? vgpu_get() : NULL;
	unsigned kept = 0;

	if (v == NULL || pids == NULL)
		return rc;
	for (unsigned i = 0; i < *count; i++) {
		if (is_member(v, pids[i]))
			pids[kept++] = pids[i];
	}
	*count = kept;
	return rc;
}

VGPU_EXPORT int nvmlDeviceGetAccountingStats(struct nvml_device *device, unsigned pid,
					     struct nvml_accounting_stats *stats)
{
	struct nvml_accounting_stats its;
	struct vgpu *v = stats != NULL ? vgpu_get() : NULL;
	int rc = REAL(nvmlDeviceGetAccountingStats)(device, pid, stats != NULL ? &its : NULL);

	if (rc != NVML_SUCCESS)
		return rc;
	if (v != NULL && !is_member(v, pid))
		return NVML_ERROR_NOT_FOUND;
	*stats = its;
	return rc;
}

VGPU_EXPORT int nvmlDeviceGetAccountingStats_v2(struct nvml_device *device, struct nvml_accounting_stats_v2 *stats)
{
	struct vgpu *v = stats != NULL ? vgpu_get() : NULL;
	struct nvml_accounting_stats_v2 its;
	int rc;

	if (v == NULL)
		return REAL(nvmlDeviceGetAccountingStats_v2)(device, stats);
	its = *stats;
	rc = REAL(nvmlDeviceGetAccountingStats_v2)(device, &its);
	if (rc != NVML_SUCCESS)
		return rc;
	if (!is_member(v, stats->pid))
		return NVML_ERROR_NOT_FOUND;
	*stats = its;
	return rc;
}
