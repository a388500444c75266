/* What a program sees of a card's memory: its slice. CUDA and NVML agree. */
#include "vgpu/view.h"

#include "vgpu/hooks.h"
#include "vgpu/overhead.h"
#include "vgpu/pool.h"

struct view {
	uint64_t total, used, free;
};

/* With oversubscription the slice is what a program can have, whatever the card has. */
static uint64_t slice_total(const struct vgpu *v, const struct vgpu_card *card, uint64_t total)
{
	return vgpu_is_oversubscribed(v, card) ? card->limit.memory_bytes : HM_MIN(total, card->limit.memory_bytes);
}

/* Of a card that has so much for programs, and so much of it free. card NULL: none may be allocated on it. */
static struct view slice(struct vgpu *v, struct vgpu_card *card, uint64_t total, uint64_t physical_free)
{
	struct view s = { .total = total };

	if (card == NULL)
		return s;
	pools_refresh(v);
	overhead_catch_up(v);
	s.total = slice_total(v, card, total);
	s.used = HM_MIN(vgpu_card_used(v, card), s.total);
	s.free = s.total - s.used;
	if (!vgpu_is_oversubscribed(v, card))
		s.free = HM_MIN(s.free, physical_free);
	return s;
}

/* Either place may be NULL, if the driver lets it. */
VGPU_EXPORT CUresult cuMemGetInfo_v2(size_t *out_free, size_t *out_total)
{
	size_t free = 0, total = SIZE_MAX;
	CUresult rc = REAL(cuMemGetInfo_v2)(out_free != NULL ? &free : NULL, out_total != NULL ? &total : NULL);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct view s = { .total = total, .free = free };
	CUdevice device;

	if (v != NULL && REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS)
		s = slice(v, vgpu_card_of(v, device), total, free);
	if (rc == CUDA_SUCCESS && out_free != NULL)
		*out_free = s.free;
	if (rc == CUDA_SUCCESS && out_total != NULL)
		*out_total = s.total;
	return rc;
}

VGPU_EXPORT CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice device)
{
	CUresult rc = REAL(cuDeviceTotalMem_v2)(out, device);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct vgpu_card *card = v != NULL ? vgpu_card_of(v, device) : NULL;

	if (card != NULL)
		*out = slice_total(v, card, *out);
	return rc;
}

static unsigned saturate(size_t bytes)
{
	return bytes > UINT32_MAX ? UINT32_MAX : (unsigned)bytes;
}

VGPU_EXPORT CUresult cuMemGetInfo(unsigned *out_free, unsigned *out_total)
{
	size_t free = 0, total = 0;
	CUresult rc;

	if (vgpu_get() == NULL)
		return REAL(cuMemGetInfo)(out_free, out_total);
	rc = cuMemGetInfo_v2(&free, &total);
	if (rc == CUDA_SUCCESS && out_free != NULL)
		*out_free = saturate(free);
	if (rc == CUDA_SUCCESS && out_total != NULL)
		*out_total = saturate(total);
	return rc;
}

VGPU_EXPORT CUresult cuDeviceTotalMem(unsigned *out, CUdevice device)
{
	size_t total = 0;
	CUresult rc;

	if (vgpu_get() == NULL || out == NULL)
		return REAL(cuDeviceTotalMem)(out, device);
	rc = cuDeviceTotalMem_v2(&total, device);
	if (rc == CUDA_SUCCESS)
		*out = saturate(total);
	return rc;
}

struct vgpu_card *view_nvml_card(struct vgpu *v, struct nvml_device *device)
{
	char uuid[NVML_UUID_BYTES];
	unsigned index = 0;

	if (REAL(nvmlDeviceGetUUID)(device, uuid, sizeof uuid) != NVML_SUCCESS)
		return NULL;
	REAL(nvmlDeviceGetIndex)(device, &index);
	return vgpu_card_by_uuid(v, uuid, index);
}

/* `reserved` is the driver's own part of the card, which CUDA leaves out of its total and NVML does not. */
static struct view nvml_slice(struct vgpu *v, struct nvml_device *device, uint64_t total, uint64_t reserved,
			      uint64_t physical_free)
{
	return slice(v, view_nvml_card(v, device), reserved < total ? total - reserved : total, physical_free);
}

/* 0: this driver does not say. */
static uint64_t reserved_of(struct nvml_device *device)
{
	struct nvml_memory_v2 m = { .version = NVML_MEMORY_V2 };

	return REAL(nvmlDeviceGetMemoryInfo_v2)(device, &m) == NVML_SUCCESS ? m.reserved : 0;
}

VGPU_EXPORT int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	int rc = REAL(nvmlDeviceGetMemoryInfo)(device, memory);
	struct vgpu *v = rc == NVML_SUCCESS ? vgpu_get() : NULL;
	struct view s;

	if (v == NULL)
		return rc;
	s = nvml_slice(v, device, memory->total, reserved_of(device), memory->free);
	memory->total = s.total;
	memory->used = s.used;
	memory->free = s.free;
	return rc;
}

VGPU_EXPORT int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
	int rc = REAL(nvmlDeviceGetMemoryInfo_v2)(device, memory);
	struct vgpu *v = rc == NVML_SUCCESS ? vgpu_get() : NULL;
	struct view s;

	if (v == NULL)
		return rc;
	s = nvml_slice(v, device, memory->total, memory->reserved, memory->free);
	memory->total = s.total;
	memory->used = s.used;
	memory->free = s.free;
	memory->reserved = 0; /* outside the slice */
	return rc;
}
