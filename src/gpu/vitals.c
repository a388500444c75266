#include "gpu/vitals.h"

#include "core/err.h"
#include "core/fmt.h"
#include "gpu/driver.h"

static enum gpu_answer answer_of(int result)
{
	switch (result) {
	case NVML_SUCCESS:
	case NVML_ERROR_NOT_SUPPORTED: return GPU_ANSWERS; /* memory of a card that shares the machine's */
	case NVML_ERROR_NOT_FOUND:
	case NVML_ERROR_GPU_NOT_FOUND:
	case NVML_ERROR_GPU_IS_LOST:
	case NVML_ERROR_RESET_REQUIRED: return GPU_LOST;
	case NVML_ERROR_UNINITIALIZED:
	case NVML_ERROR_DRIVER_NOT_LOADED:
	case NVML_ERROR_LIB_RM_VERSION_MISMATCH: return GPU_DRIVER_GONE;
	default: return GPU_ERRS;
	}
}

static bool failed(struct gpu_driver *d, int result, const char *call, struct gpu_vitals *v)
{
	struct hm_err e;

	v->answer = answer_of(result);
	if (v->answer == GPU_ANSWERS)
		return false;
	driver_error(d, result, call, &e);
	hm_fmt(v->why, sizeof v->why, "%s", e.msg);
	return true;
}

static int read_action(struct gpu_driver *d, struct nvml_device *handle)
{
	struct nvml_field_value field = { .field = NVML_FI_DEV_GET_GPU_RECOVERY_ACTION };

	if (NVML(d, nvmlDeviceGetFieldValues, handle, 1, &field) != NVML_SUCCESS || field.result != NVML_SUCCESS ||
	    field.value_type != NVML_VALUE_TYPE_UNSIGNED_INT || field.value.ui > 255)
		return GPU_ACTION_UNKNOWN;
	return (int)field.value.ui;
}

/* Rows are remapped from Ampere on, pages were retired before. */
static void read_rows(struct gpu_driver *d, struct nvml_device *handle, struct gpu_vitals *v)
{
	unsigned corrected, uncorrected, pending = 0, failure = 0;

	if (NVML(d, nvmlDeviceGetRemappedRows, handle, &corrected, &uncorrected, &pending, &failure) == NVML_SUCCESS) {
		v->rows_pending = pending != 0;
		v->rows_failed = failure != 0;
		return;
	}
	if (NVML(d, nvmlDeviceGetRetiredPagesPendingStatus, handle, &pending) == NVML_SUCCESS)
		v->rows_pending = pending != 0;
}

void gpu_vitals_read(struct gpu_driver *d, const char *uuid, struct gpu_vitals *out)
{
	struct nvml_device *handle = NULL;
	struct nvml_memory memory = { 0 };
	unsigned long long errors = 0;

	*out = (struct gpu_vitals) { .action = GPU_ACTION_UNKNOWN };
	if (failed(d, d->nvmlDeviceGetHandleByUUID(uuid, &handle), "nvmlDeviceGetHandleByUUID", out) ||
	    failed(d, d->nvmlDeviceGetMemoryInfo(handle, &memory), "nvmlDeviceGetMemoryInfo", out))
		return;
	out->action = read_action(d, handle);
	read_rows(d, handle, out);
	out->counts_ecc = NVML(d, nvmlDeviceGetTotalEccErrors, handle, NVML_MEMORY_ERROR_UNCORRECTED, NVML_VOLATILE_ECC,
			       &errors) == NVML_SUCCESS;
	out->uncorrected = errors;
}

const char *gpu_action_text(int action)
{
	switch (action) {
	case NVML_GPU_RECOVERY_ACTION_NONE: return "nothing";
	case NVML_GPU_RECOVERY_ACTION_GPU_RESET: return "GPU reset";
	case NVML_GPU_RECOVERY_ACTION_NODE_REBOOT: return "node reboot";
	case NVML_GPU_RECOVERY_ACTION_DRAIN_P2P: return "end of all programs that use peer to peer";
	case NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET: return "end of all programs, then GPU reset";
	default: return "something that this version does not know";
	}
}
