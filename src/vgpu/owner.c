#include "vgpu/owner.h"

#include "vgpu/hooks.h"

uint64_t owner_current(struct vgpu *v)
{
	CUcontext ctx = NULL;
	uint64_t device;
	struct record *r;

	REAL(cuCtxGetCurrent)(&ctx);
	if (HM_LIKELY(v->greens == 0))
		return (uintptr_t)ctx;
	r = track_hold(&v->track, TRACK_GREEN, (uintptr_t)ctx);
	if (r == NULL)
		return (uintptr_t)ctx;
	device = r->owner;
	track_release(&v->track, TRACK_GREEN, (uintptr_t)ctx);
	return v->primary[device];
}
