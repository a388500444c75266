#include "vgpu/spill.h"

#include "region/shared.h"
#include "vgpu/hooks.h"

enum { SPILLS_YES = 1, SPILLS_NO = -1 };

/* Without page faults of the card managed memory has to fit it as well. */
static bool can_spill(struct vgpu *v, struct vgpu_card *card, CUdevice device)
{
	int concurrent = 0;

	if (card->spills == 0) {
		if (REAL(cuDeviceGetAttribute)(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, device) !=
		    CUDA_SUCCESS)
			return false;
		card->spills = concurrent != 0 ? SPILLS_YES : SPILLS_NO;
		if (concurrent == 0)
			vgpu_trouble(v, "card %s cannot be oversubscribed: no concurrent managed access",
				     card->limit.uuid);
	}
	return card->spills == SPILLS_YES;
}

/* To the card first, and back to it where there is room; what stays with the host is read from there, not fetched at
 * each touch: where others' memory fills the card, fetching one page would drive out another of ours. Advice that is
 * not taken costs time and nothing else. */
static void advise(CUdeviceptr ptr, size_t bytes, CUdevice device)
{
	REAL(cuMemAdvise)(ptr, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, device);
	REAL(cuMemAdvise)(ptr, bytes, CU_MEM_ADVISE_SET_ACCESSED_BY, device);
}

CUresult spill(struct booking *b, CUdeviceptr *out, size_t bytes)
{
	CUdevice device;

	if (b->v == NULL || !vgpu_is_oversubscribed(b->v, b->card) || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS ||
	    !can_spill(b->v, b->card, device))
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->v->uses_managed = true;
	if (REAL(cuMemAllocManaged)(out, bytes, CU_MEM_ATTACH_GLOBAL) != CUDA_SUCCESS)
		return CUDA_ERROR_OUT_OF_MEMORY;
	advise(*out, bytes, device);
	b->spilled = true;
	return CUDA_SUCCESS;
}

void spill_count(struct vgpu *v, const struct vgpu_card *card, uint64_t bytes)
{
	struct region_counter *c;

	if (v->map.r == NULL || card->region_card < 0)
		return;
	c = &v->map.r->counters[card->region_card];
	shared_add(&c->spilled, 1);
	shared_add(&c->spilled_bytes, bytes);
}
