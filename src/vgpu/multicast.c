/* Multicast objects: without memory of their own, they keep what is bound to them, until it is unbound or the object
 * ends. An object that was exported or imported may live on in another process: what this one bound to it stays charged
 * until it is unbound or this process ends. */
#include "vgpu/handle.h"
#include "vgpu/hooks.h"

VGPU_EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	struct vgpu *v = vgpu_get();
	struct record *r = v != NULL ? track_new(&v->track) : NULL;
	CUresult rc;

	if (v != NULL && r == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = REAL(cuMulticastCreate)(out, prop);
	if (r == NULL)
		return rc;
	if (rc != CUDA_SUCCESS) {
		track_free(&v->track, r);
		return rc;
	}
	r->kind = TRACK_HANDLE;
	r->key = *out;
	r->refs = 1;
	r->small = 1;
	track_put(&v->track, r);
	return rc;
}

/* At one offset of an object each card has one piece of memory at most. Mixed, since a record has one key: that two
 * binds share one of 2^64 is no worry. */
static uint64_t bind_key(CUmemGenericAllocationHandle object, uint64_t offset, unsigned card)
{
	uint64_t x = object + offset * UINT64_C(0x9e3779b97f4a7c15) + card * UINT64_C(0xc2b2ae3d27d4eb4f);

	x = (x ^ (x >> 31)) * UINT64_C(0xbf58476d1ce4e5b9);
	return x ^ (x >> 29);
}

struct bind {
	struct vgpu *v; /* NULL: nothing to count */
	struct record *object, *memory, *record;
};

/* False: no memory to keep it in mind. */
static bool open_bind(struct bind *b, CUmemGenericAllocationHandle object)
{
	if (b->memory != NULL && b->memory->bytes == 0 && b->memory->owner == 0) {
		handle_drop(b->v, b->memory); /* another process's: it pays */
		b->memory = NULL;
	}
	b->record = b->memory != NULL ? track_new(&b->v->track) : NULL;
	if (b->record == NULL) {
		handle_drop(b->v, b->memory);
		return b->memory == NULL;
	}
	b->object = handle_keep(b->v, object);
	return true;
}

static CUresult close_bind(struct bind *b, CUresult rc, CUmemGenericAllocationHandle object, uint64_t offset)
{
	if (b->record == NULL)
		return rc;
	if (rc != CUDA_SUCCESS) {
		track_free(&b->v->track, b->record);
		handle_drop(b->v, b->memory);
	} else {
		b->record->kind = TRACK_BIND;
		b->record->key = bind_key(object, offset, b->memory->card);
		b->record->owner = (uintptr_t)b->memory;
		b->record->bytes = (uintptr_t)b->object;
		if (b->object != NULL)
			b->object->small = 1; /* an imported one shows here what it is */
		track_put(&b->v->track, b->record);
	}
	handle_drop(b->v, b->object);
	return rc;
}

VGPU_EXPORT CUresult cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset,
					CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
					unsigned long long flags)
{
	struct bind b = { .v = vgpu_get() };

	if (b.v != NULL)
		b.memory = handle_keep(b.v, memory);
	if (!open_bind(&b, object))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return close_bind(&b, REAL(cuMulticastBindMem)(object, offset, memory, memory_offset, bytes, flags), object,
			  offset);
}

VGPU_EXPORT CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle object, size_t offset, CUdeviceptr ptr,
					 size_t bytes, unsigned long long flags)
{
	struct bind b = { .v = vgpu_get() };

	if (b.v != NULL)
		b.memory = handle_keep_mapped(b.v, ptr);
	if (!open_bind(&b, object))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return close_bind(&b, REAL(cuMulticastBindAddr)(object, offset, ptr, bytes, flags), object, offset);
}

/* Offset and size are those of a bind: for others the driver promises nothing, and they match no record. */
VGPU_EXPORT CUresult cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
				       size_t bytes)
{
	struct vgpu *v = vgpu_get();
	struct vgpu_card *card = v != NULL ? vgpu_card_of(v, device) : NULL;
	struct record *r = NULL;
	CUresult rc;

	if (card != NULL)
		r = track_take(&v->track, TRACK_BIND, bind_key(object, offset, (unsigned)(card - v->cards)));
	rc = REAL(cuMulticastUnbind)(object, device, offset, bytes);
	if (r != NULL && rc == CUDA_SUCCESS)
		handle_keeper_ended(v, r);
	else if (r != NULL)
		track_put(&v->track, r);
	return rc;
}
