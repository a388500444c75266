/* Devices, contexts, modules, and NVML's list of processes. */
#include <string.h>

#include "fuzz/calls/fake_internal.h"

static CUresult fake_cuDeviceGetUuid_v2(CUuuid *out, CUdevice device)
{
	memset(out, 0, sizeof *out);
	out->bytes[15] = (char)device;
	return CUDA_SUCCESS;
}

static CUresult fake_cuDeviceGetCount(int *out)
{
	*out = FAKE_CARDS;
	return CUDA_SUCCESS;
}

static CUresult fake_cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out)
{
	(void)stream;
	*out = CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetDevice(CUdevice *out)
{
	*out = fake_current_card();
	return *out < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

static CUresult fake_cuCtxGetCurrent(CUcontext *out)
{
	*out = (CUcontext)fake.current; // NOLINT
	return CUDA_SUCCESS;
}

void fake_set_current(CUcontext context)
{
	fake.current = (uintptr_t)context;
}

static CUresult make_context(CUcontext *out, CUdevice device)
{
	struct fake_object *o = fake_new(FAKE_CONTEXT, device);
	CUresult rc;

	rc = fake_take(device, FAKE_CONTEXT_BYTES, false);
	if (rc != CUDA_SUCCESS) {
		o->kind = FAKE_NONE;
		return rc;
	}
	o->bytes = FAKE_CONTEXT_BYTES;
	fake.self->contexts[device]++;
	*out = (CUcontext)fake_handle(o); // NOLINT
	return CUDA_SUCCESS;
}

static CUresult fake_cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice device)
{
	CUresult rc = make_context(out, device);

	(void)flags;
	if (rc == CUDA_SUCCESS)
		fake.current = (uintptr_t)*out;
	return rc;
}

static CUresult fake_cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice device)
{
	(void)params;
	return fake_cuCtxCreate_v2(out, flags, device);
}

static CUresult fake_cuCtxDestroy_v2(CUcontext context)
{
	struct fake_object *o = fake_find(FAKE_CONTEXT, (uintptr_t)context);

	if (o == NULL)
		return CUDA_ERROR_INVALID_CONTEXT;
	fake_drop_context((uintptr_t)context);
	fake_drop(o);
	if (fake.current == (uintptr_t)context)
		fake.current = 0;
	if (--fake.self->contexts[o->card] == 0 && fake.graphs[o->card].reserved != 0) {
		fake_give(o->card, fake.graphs[o->card].reserved, false);
		fake.graphs[o->card].reserved = 0;
	}
	return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active)
{
	*flags = 0;
	*active = fake.primary[device] != 0;
	return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device)
{
	CUcontext made;

	if (fake.primary[device] == 0) {
		CUresult rc = make_context(&made, device);

		if (rc != CUDA_SUCCESS)
			return rc;
		fake.primary[device] = (uintptr_t)made;
	}
	fake.primary_refs[device]++;
	*out = (CUcontext)fake.primary[device]; // NOLINT
	return CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	CUcontext ends = (CUcontext)fake.primary[device]; // NOLINT

	fake.primary[device] = 0;
	fake.primary_refs[device] = 0;
	return ends != NULL ? fake_cuCtxDestroy_v2(ends) : CUDA_SUCCESS;
}

static CUresult fake_cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	if (fake.primary_refs[device] == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	return --fake.primary_refs[device] == 0 ? fake_cuDevicePrimaryCtxReset_v2(device) : CUDA_SUCCESS;
}

/* `image` is how many bytes the code takes. */
static CUresult fake_cuModuleLoadData(CUmodule *out, const void *image)
{
	int card = fake_current_card();
	struct fake_object *o;
	CUresult rc;

	if (card < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	o = fake_new(FAKE_MODULE, card);
	rc = fake_take(card, (uintptr_t)image, false);
	if (rc != CUDA_SUCCESS) {
		o->kind = FAKE_NONE;
		return rc;
	}
	o->bytes = (uintptr_t)image;
	o->context = fake.current;
	*out = (CUmodule)fake_handle(o); // NOLINT
	return CUDA_SUCCESS;
}

static CUresult fake_cuModuleUnload(CUmodule module)
{
	struct fake_object *o = fake_find(FAKE_MODULE, (uintptr_t)module);

	if (o == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	fake_drop(o);
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemGetInfo_v2(size_t *free, size_t *total)
{
	if (fake_current_card() < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	*total = UINT64_C(1) << 40;
	*free = *total - fake.world->taken[fake_current_card()];
	return CUDA_SUCCESS;
}

static int fake_nvmlInit_v2(void)
{
	return NVML_SUCCESS;
}

/* "GPU-00000000-0000-0000-0000-000000000000", the last digit the card's number. */
static int fake_nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **out)
{
	*out = (struct nvml_device *)(uintptr_t)(uuid[strlen(uuid) - 1] - '0' + 1); // NOLINT
	return NVML_SUCCESS;
}

static int fake_nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count,
							struct nvml_process_info *out)
{
	uintptr_t card = (uintptr_t)device - 1;
	unsigned n = 0;

	for (unsigned i = 0; i < FAKE_PROCESSES; i++) {
		const struct fake_process *p = &fake.world->processes[i];

		if (p->pid != 0 && p->contexts[card] != 0 && n < *count)
			out[n++] = (struct nvml_process_info) { p->pid, p->taken[card], NVML_NO_INSTANCE,
								NVML_NO_INSTANCE };
	}
	*count = n;
	return NVML_SUCCESS;
}

const struct fake_entry fake_context_entries[] = {
	FAKE_ENTRY(cuDeviceGetUuid_v2),
	FAKE_ENTRY(cuDeviceGetCount),
	FAKE_ENTRY(cuStreamIsCapturing),
	FAKE_ENTRY(cuCtxGetDevice),
	FAKE_ENTRY(cuCtxGetCurrent),
	FAKE_ENTRY(cuCtxCreate_v2),
	FAKE_ENTRY(cuCtxCreate_v4),
	FAKE_ENTRY(cuCtxDestroy_v2),
	FAKE_ENTRY(cuDevicePrimaryCtxGetState),
	FAKE_ENTRY(cuDevicePrimaryCtxRetain),
	FAKE_ENTRY(cuDevicePrimaryCtxReset_v2),
	FAKE_ENTRY(cuDevicePrimaryCtxRelease_v2),
	FAKE_ENTRY(cuModuleLoadData),
	FAKE_ENTRY(cuModuleUnload),
	FAKE_ENTRY(cuMemGetInfo_v2),
	FAKE_ENTRY(nvmlInit_v2),
	FAKE_ENTRY(nvmlDeviceGetHandleByUUID),
	FAKE_ENTRY(nvmlDeviceGetComputeRunningProcesses_v3),
	{ 0, NULL },
};
