/* Pointers, arrays, handles and mappings, imports. */
#include "fuzz/calls/fake_internal.h"

static uint64_t pages_of(uint64_t bytes)
{
	return (bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
}

/* Behind the last small one, in whatever page that is; around again at the end. */
static uint64_t place_small(int card, uint64_t bytes)
{
	uint64_t at = (fake.fill[card] + 511) / 512 * 512;

	if (at + bytes > FAKE_PAGES * FAKE_PAGE)
		at = 0;
	for (unsigned tries = 0; tries < FAKE_OBJECTS; tries++) {
		bool free = true;

		for (unsigned i = 0; free && i < FAKE_OBJECTS; i++) {
			const struct fake_object *o = &fake.objects[i];
			uint64_t its = o->at % FAKE_CARD_SPAN;

			if (o->kind == FAKE_SMALL && o->card == card && at < its + o->bytes && its < at + bytes) {
				at = (its + o->bytes + 511) / 512 * 512;
				free = false;
			}
		}
		if (free && at + bytes <= FAKE_PAGES * FAKE_PAGE)
			break;
		if (at + bytes > FAKE_PAGES * FAKE_PAGE)
			at = 0;
	}
	fake.fill[card] = at + bytes;
	return at;
}

/* May lie across two pages, of which one is charged before the call: not counted as what may never pass the limit. */
static CUresult alloc_small(CUdeviceptr *out, int card, uint64_t bytes)
{
	uint64_t at = place_small(card, bytes), fresh = 0;
	struct fake_object *o = fake_new(FAKE_SMALL, card);
	CUresult rc;

	for (uint64_t page = at / FAKE_PAGE; page <= (at + bytes - 1) / FAKE_PAGE; page++)
		fresh += fake.page_refs[card][page] == 0;
	rc = fake_take(card, fresh * FAKE_PAGE, false);
	if (rc != CUDA_SUCCESS) {
		o->kind = FAKE_NONE;
		return rc;
	}
	for (uint64_t page = at / FAKE_PAGE; page <= (at + bytes - 1) / FAKE_PAGE; page++)
		fake.page_refs[card][page]++;
	o->context = fake.current;
	o->bytes = bytes;
	o->at = *out = ((uint64_t)card + 1) * FAKE_CARD_SPAN + at;
	return CUDA_SUCCESS;
}

static CUresult alloc(CUdeviceptr *out, uint64_t bytes)
{
	int card = fake_current_card();
	struct fake_object *o;
	CUresult rc;

	if (card < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (bytes == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes < FAKE_PAGE)
		return alloc_small(out, card, bytes);
	o = fake_new(FAKE_POINTER, card);
	*out = fake_handle(o);
	rc = fake_take(card, pages_of(bytes), true);
	if (rc != CUDA_SUCCESS) {
		o->kind = FAKE_NONE;
		return rc;
	}
	o->context = fake.current;
	o->bytes = pages_of(bytes);
	o->strict = true;
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemAlloc_v2(CUdeviceptr *out, size_t bytes)
{
	return alloc(out, bytes);
}

static CUresult fake_cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
	(void)flags;
	return alloc(out, bytes);
}

static CUresult fake_cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
	(void)element;
	*pitch = (width + 511) / 512 * 512;
	return alloc(out, *pitch * height);
}

static CUresult fake_cuMemFree_v2(CUdeviceptr ptr)
{
	static const enum fake_kind kinds[] = { FAKE_IMPORT, FAKE_POINTER, FAKE_SMALL, FAKE_POOLED };
	struct fake_object *o = NULL;

	if (ptr == 0)
		return CUDA_SUCCESS;
	if (fake_keeps())
		return CUDA_ERROR_LAUNCH_FAILED;
	for (unsigned i = 0; o == NULL && i < sizeof kinds / sizeof kinds[0]; i++) {
		o = fake_find(kinds[i], ptr);
		if (o != NULL && o->kind == FAKE_IMPORT && o->other != 0)
			o = NULL; /* opened by cuIpcOpenMemHandle */
	}
	if (o == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (o->kind == FAKE_POOLED)
		fake_put_back(o);
	else
		fake_drop(o);
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemFreeAsync(CUdeviceptr ptr, CUstream stream)
{
	(void)stream;
	return fake_cuMemFree_v2(ptr);
}

/* Memory of another process: costs nothing here. `ipc`: only its own call closes it. */
static CUresult import(CUdeviceptr *out, bool ipc)
{
	struct fake_object *o;

	o = fake_new(FAKE_IMPORT, 0);
	o->at = fake.alias;
	fake.alias = 0;
	*out = fake_handle(o);
	o->context = fake.current;
	o->other = ipc;
	return CUDA_SUCCESS;
}

static CUresult fake_cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags)
{
	(void)handle;
	(void)flags;
	return import(out, true);
}

static CUresult fake_cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
	(void)pool;
	(void)data;
	return import(out, false);
}

static CUresult fake_cuIpcCloseMemHandle(CUdeviceptr ptr)
{
	struct fake_object *o = fake_find(FAKE_IMPORT, ptr);

	if (o == NULL || o->other == 0)
		return CUDA_ERROR_INVALID_VALUE;
	o->kind = FAKE_NONE;
	return CUDA_SUCCESS;
}

static CUresult fake_cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory,
						     const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
	(void)memory;
	(void)desc;
	return import(out, false);
}

static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < levels; i++) {
		uint64_t row = ((d->Width >> i > 0 ? d->Width >> i : 1) * 4 * d->NumChannels + 63) / 64 * 64;
		uint64_t rows = d->Height >> i > 1 ? ((d->Height >> i) + 7) / 8 * 8 : 1;

		sum += row * rows * (d->Depth >> i > 0 ? d->Depth >> i : 1);
	}
	return (sum + 65535) / 65536 * 65536;
}

static CUresult create_array(uint64_t *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	bool deferred = (d->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0;
	int card = fake_current_card();
	struct fake_object *o;
	CUresult rc = CUDA_SUCCESS;

	if (card < 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (deferred && !fake.world->deferred_arrays)
		return CUDA_ERROR_NOT_SUPPORTED;
	o = fake_new(FAKE_ARRAY, card);
	*out = fake_handle(o);
	o->context = fake.current;
	o->used = array_bytes(d, levels);
	if (!deferred)
		rc = fake_take(card, o->used, true);
	if (rc != CUDA_SUCCESS)
		o->kind = FAKE_NONE;
	else
		o->bytes = deferred ? 0 : o->used;
	o->strict = true;
	return rc;
}

static CUresult fake_cuArray3DCreate_v2(CUarray *out, const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	return create_array((uint64_t *)out, d, 1);
}

static CUresult fake_cuArrayCreate_v2(CUarray *out, const CUDA_ARRAY_DESCRIPTOR *d)
{
	const CUDA_ARRAY3D_DESCRIPTOR flat = { d->Width, d->Height, 0, d->Format, d->NumChannels, 0 };

	return create_array((uint64_t *)out, &flat, 1);
}

static CUresult fake_cuMipmappedArrayCreate(CUmipmappedArray *out, const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	return create_array((uint64_t *)out, d, levels);
}

static CUresult fake_cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUarray array, CUdevice device)
{
	const struct fake_object *o = fake_find(FAKE_ARRAY, (uintptr_t)array);

	(void)device;
	if (o == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	*out = (CUDA_ARRAY_MEMORY_REQUIREMENTS) { .size = o->used, .alignment = 65536 };
	return CUDA_SUCCESS;
}

static CUresult fake_cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *out, CUmipmappedArray array,
							   CUdevice device)
{
	return fake_cuArrayGetMemoryRequirements(out, (CUarray)array, device);
}

static CUresult fake_cuArrayDestroy(CUarray array)
{
	struct fake_object *o = fake_find(FAKE_ARRAY, (uintptr_t)array);

	if (o == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	if (fake_keeps())
		return CUDA_ERROR_LAUNCH_FAILED;
	fake_drop(o);
	return CUDA_SUCCESS;
}

static CUresult fake_cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	return fake_cuArrayDestroy((CUarray)array);
}

static CUresult fake_cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
				 unsigned long long flags)
{
	bool on_card = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	struct fake_object *o;
	CUresult rc;

	(void)flags;
	if (bytes == 0 || bytes % FAKE_PAGE != 0)
		return CUDA_ERROR_INVALID_VALUE;
	o = fake_new(FAKE_HANDLE, prop->location.id);
	*out = fake_handle(o);
	rc = on_card ? fake_take(o->card, bytes, true) : CUDA_SUCCESS;
	if (rc != CUDA_SUCCESS)
		o->kind = FAKE_NONE;
	o->bytes = on_card ? bytes : 0;
	o->refs = 1;
	o->strict = true;
	return rc;
}

static CUresult fake_cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct fake_object *o = fake_find(FAKE_HANDLE, handle);

	if (o == NULL || o->refs == 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_keeps())
		return CUDA_ERROR_LAUNCH_FAILED;
	o->refs--;
	fake_drop_unused(o);
	return CUDA_SUCCESS;
}

void fake_map_reserve(CUdeviceptr *out)
{
	*out = fake_handle(fake_new(FAKE_MAPPING, 0));
}

void fake_map_free(CUdeviceptr ptr)
{
	fake_find(FAKE_MAPPING, ptr)->kind = FAKE_NONE;
}

static CUresult fake_cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
			      unsigned long long flags)
{
	struct fake_object *o = fake_find(FAKE_HANDLE, handle), *m;

	(void)offset;
	(void)flags;
	m = fake_find(FAKE_MAPPING, ptr); /* reserved, and nothing mapped yet */
	if (o == NULL || m == NULL || m->other != 0)
		return CUDA_ERROR_INVALID_VALUE;
	m->other = handle;
	m->used = bytes;
	o->mappings++;
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemUnmap(CUdeviceptr ptr, size_t bytes)
{
	struct fake_object *m = fake_find(FAKE_MAPPING, ptr), *o;

	if (m == NULL || m->other == 0 || m->used != bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_keeps())
		return CUDA_ERROR_LAUNCH_FAILED;
	o = fake_find(FAKE_HANDLE, m->other);
	m->other = 0;
	o->mappings--;
	fake_drop_unused(o);
	return CUDA_SUCCESS;
}

static CUresult fake_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *ptr)
{
	const struct fake_object *m = fake_find(FAKE_MAPPING, (uintptr_t)ptr);

	if (m == NULL || m->other == 0)
		return CUDA_ERROR_INVALID_VALUE;
	fake_find(FAKE_HANDLE, m->other)->refs++;
	*out = m->other;
	return CUDA_SUCCESS;
}

/* os_handle: a handle of this process, or NULL for another's. */
static CUresult fake_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
						    CUmemAllocationHandleType type)
{
	struct fake_object *o = fake_find(FAKE_HANDLE, (uintptr_t)os_handle);

	(void)type;
	if (o != NULL) {
		o->refs++;
		*out = (uintptr_t)os_handle;
		return CUDA_SUCCESS;
	}
	o = fake_new(FAKE_HANDLE, 0);
	*out = fake_handle(o);
	o->refs = 1;
	return CUDA_SUCCESS;
}

const struct fake_entry fake_memory_entries[] = {
	FAKE_ENTRY(cuMemAlloc_v2),
	FAKE_ENTRY(cuMemAllocManaged),
	FAKE_ENTRY(cuMemAllocPitch_v2),
	FAKE_ENTRY(cuMemFree_v2),
	FAKE_ENTRY(cuMemFreeAsync),
	FAKE_ENTRY(cuIpcOpenMemHandle_v2),
	{ ENTRY_cuIpcOpenMemHandle, (void *)fake_cuIpcOpenMemHandle_v2 }, // NOLINT
	FAKE_ENTRY(cuIpcCloseMemHandle),
	FAKE_ENTRY(cuMemPoolImportPointer),
	FAKE_ENTRY(cuExternalMemoryGetMappedBuffer),
	FAKE_ENTRY(cuArray3DCreate_v2),
	FAKE_ENTRY(cuArrayCreate_v2),
	FAKE_ENTRY(cuMipmappedArrayCreate),
	FAKE_ENTRY(cuArrayGetMemoryRequirements),
	FAKE_ENTRY(cuMipmappedArrayGetMemoryRequirements),
	FAKE_ENTRY(cuArrayDestroy),
	FAKE_ENTRY(cuMipmappedArrayDestroy),
	FAKE_ENTRY(cuMemCreate),
	FAKE_ENTRY(cuMemRelease),
	FAKE_ENTRY(cuMemMap),
	FAKE_ENTRY(cuMemUnmap),
	FAKE_ENTRY(cuMemRetainAllocationHandle),
	FAKE_ENTRY(cuMemImportFromShareableHandle),
	{ 0, NULL },
};
