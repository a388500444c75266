/* Virtual memory management: a handle's memory lives while it has a reference or a mapping, and is charged as long. */
#include "vgpu/booking.h"
#include "vgpu/handle.h"
#include "vgpu/hooks.h"

static bool on_device(const CUmemAllocationProp *prop)
{
	return prop != NULL && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

VGPU_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
				 unsigned long long flags)
{
	struct booking b = { .v = on_device(prop) && bytes != 0 ? vgpu_get() : NULL };
	CUresult rc;

	if (b.v == NULL)
		return REAL(cuMemCreate)(out, bytes, prop, flags);
	rc = booking_open_on(&b, prop->location.id, bytes); /* the driver takes only whole granules */
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = REAL(cuMemCreate)(out, bytes, prop, flags);
	if (rc != CUDA_SUCCESS) {
		booking_cancel(&b);
		return rc;
	}
	b.record->kind = TRACK_HANDLE;
	b.record->key = *out;
	b.record->bytes = bytes;
	b.record->refs = 1;
	track_put(&b.v->track, b.record);
	return rc;
}

/* A handle without a charge: another's memory, a multicast object, or another value for `same`, which it keeps. */
static bool add_handle(struct vgpu *v, CUmemGenericAllocationHandle handle, struct record *same)
{
	struct record *r = track_new(&v->track);

	if (r == NULL)
		return false;
	r->kind = TRACK_HANDLE;
	r->key = handle;
	r->owner = (uintptr_t)same;
	r->card = same != NULL ? same->card : 0;
	r->refs = 1;
	r->shared = same == NULL;
	track_put(&v->track, r);
	return true;
}

static void change(struct vgpu *v, struct record *r, int refs, int mappings)
{
	if (!track_count(&v->track, r, refs, mappings))
		return;
	vgpu_uncharge(v, &v->cards[r->card], r->bytes);
	if (r->owner != 0)
		handle_drop(v, (struct record *)(uintptr_t)r->owner); // NOLINT
	if (r->small && r->shared)
		return; /* a multicast object lives on in another process, and its binds name it: not used again */
	if (r->small)
		handle_keepers_ended(v, TRACK_BIND, r);
	track_free(&v->track, r);
}

struct record *handle_keep(struct vgpu *v, CUmemGenericAllocationHandle handle)
{
	struct record *r = track_hold(&v->track, TRACK_HANDLE, handle);

	if (r == NULL)
		return NULL;
	r->mappings++;
	track_release(&v->track, TRACK_HANDLE, handle);
	return r;
}

void handle_drop(struct vgpu *v, struct record *r)
{
	if (r != NULL)
		change(v, r, 0, -1);
}

void handle_keeper_ended(struct vgpu *v, struct record *keeper)
{
	if (keeper == NULL)
		return;
	handle_drop(v, (struct record *)(uintptr_t)keeper->owner); // NOLINT
	track_free(&v->track, keeper);
}

struct ending {
	struct vgpu *v;
	enum track_kind kind;
	uint64_t of;
};

static void end_keeper(const struct record *seen, void *arg)
{
	struct ending *e = arg;
	struct record *r;

	if (seen->kind != e->kind || seen->bytes != e->of)
		return;
	r = track_take(&e->v->track, e->kind, seen->key);
	if (r != NULL && r->bytes == e->of)
		handle_keeper_ended(e->v, r);
	else if (r != NULL)
		track_put(&e->v->track, r);
}

void handle_keepers_ended(struct vgpu *v, enum track_kind kind, const struct record *of)
{
	struct ending e = { v, kind, (uintptr_t)of };

	track_each(&v->track, end_keeper, &e);
}

struct search {
	uint64_t ptr, base; /* 0: not found */
};

static void look_at(const struct record *r, void *arg)
{
	struct search *s = arg;

	if (r->kind == TRACK_MAPPING && s->ptr >= r->key && s->ptr - r->key < r->bytes)
		s->base = r->key;
}

struct record *handle_keep_mapped(struct vgpu *v, CUdeviceptr ptr)
{
	struct search s = { .ptr = ptr };
	struct record *r, *kept;

	track_each(&v->track, look_at, &s);
	r = s.base != 0 ? track_hold(&v->track, TRACK_MAPPING, s.base) : NULL;
	if (r == NULL)
		return NULL;
	kept = (struct record *)(uintptr_t)r->owner; // NOLINT
	track_release(&v->track, TRACK_MAPPING, s.base);
	if (kept != NULL)
		track_count(&v->track, kept, 0, 1);
	return kept;
}

VGPU_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct vgpu *v = vgpu_get();
	struct record *r = v != NULL ? handle_keep(v, handle) : NULL;
	CUresult rc = REAL(cuMemRelease)(handle);

	if (r != NULL)
		change(v, r, rc == CUDA_SUCCESS ? -1 : 0, -1);
	return rc;
}

static bool add_reference(struct vgpu *v, CUmemGenericAllocationHandle handle)
{
	struct record *r = handle_keep(v, handle);

	if (r != NULL)
		change(v, r, 1, -1);
	return r != NULL;
}

/* The driver promises the value that was mapped. Where it gives another one, that one keeps the memory, too. */
VGPU_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *ptr)
{
	CUresult rc = REAL(cuMemRetainAllocationHandle)(out, ptr);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct record *kept;

	if (v == NULL || add_reference(v, *out))
		return rc;
	kept = handle_keep_mapped(v, (uintptr_t)ptr);
	if (kept == NULL || add_handle(v, *out, kept))
		return rc;
	REAL(cuMemRelease)(*out);
	handle_drop(v, kept);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Another handle of memory that its owner pays for; or one more reference of our own. It gets a record without a
 * charge, since it may be a multicast object. */
VGPU_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
						    CUmemAllocationHandleType type)
{
	CUresult rc = REAL(cuMemImportFromShareableHandle)(out, os_handle, type);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	if (v == NULL || add_reference(v, *out) || add_handle(v, *out, NULL))
		return rc;
	REAL(cuMemRelease)(*out);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

VGPU_EXPORT CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
						  CUmemAllocationHandleType type, unsigned long long flags)
{
	CUresult rc = REAL(cuMemExportToShareableHandle)(out, handle, type, flags);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;
	struct record *r = v != NULL ? handle_keep(v, handle) : NULL;

	if (r != NULL) {
		r->shared = 1;
		handle_drop(v, r);
	}
	return rc;
}

VGPU_EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
			      unsigned long long flags)
{
	struct vgpu *v = vgpu_get();
	struct record *r = v != NULL ? track_new(&v->track) : NULL, *kept;
	CUresult rc;

	if (v == NULL)
		return REAL(cuMemMap)(ptr, bytes, offset, handle, flags);
	if (r == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	kept = handle_keep(v, handle);
	rc = REAL(cuMemMap)(ptr, bytes, offset, handle, flags);
	if (rc != CUDA_SUCCESS) {
		track_free(&v->track, r);
		handle_drop(v, kept);
		return rc;
	}
	r->kind = TRACK_MAPPING;
	r->key = ptr;
	r->bytes = bytes;
	r->owner = (uintptr_t)kept;
	track_put(&v->track, r);
	return rc;
}

/* A range holds whole mappings, one behind the other. */
static void unmap_records(struct vgpu *v, CUdeviceptr ptr, size_t bytes)
{
	uint64_t at = ptr;

	while (at - ptr < bytes) {
		struct record *r = track_take(&v->track, TRACK_MAPPING, at);

		if (r == NULL || r->bytes == 0)
			return;
		at += r->bytes;
		handle_keeper_ended(v, r);
	}
}

VGPU_EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	CUresult rc = REAL(cuMemUnmap)(ptr, bytes);
	struct vgpu *v = rc == CUDA_SUCCESS ? vgpu_get() : NULL;

	/* The range stays reserved until cuMemAddressFree: no other thread's mapping can be there by now, except by a
	 * race of the program with itself. */
	if (v != NULL)
		unmap_records(v, ptr, bytes);
	return rc;
}
