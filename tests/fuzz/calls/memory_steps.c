/* Steps: pointers, arrays, handles and mappings, imports. */
#include "fuzz/calls/model.h"

static bool begin_object(struct object **o, enum object_kind kind, int *card)
{
	*card = current_card();
	if (*card < 0)
		return false;
	*o = object_new(kind, *card);
	if (*o != NULL)
		(*o)->context = me.m.current;
	return *o != NULL;
}

static void drop(struct object *o)
{
	o->kind = OBJECT_NONE;
}

static uint64_t some_bytes(void)
{
	switch (random_below(4)) {
	case 0: return 1 + random_below(4096);
	case 1: return 1 + random_below((uint32_t)FAKE_PAGE);
	case 2: return FAKE_PAGE - 1 + random_below(3);
	default: return 1 + random_below((uint32_t)(8 * FAKE_PAGE));
	}
}

/* What is charged before the driver is asked; a small one may lie across two pages. */
static uint64_t booked(uint64_t bytes)
{
	return bytes < FAKE_PAGE ? 2 * FAKE_PAGE : round_up(bytes, FAKE_PAGE);
}

static void have_pointer(struct object *o, CUresult rc, const CUdeviceptr *ptr, uint64_t bytes)
{
	if (!granted(rc, o->card, booked(bytes))) {
		drop(o);
		return;
	}
	o->handle = *ptr;
	o->bytes = bytes;
	if (bytes < FAKE_PAGE)
		pages_change(o, 1);
}

static void step_alloc(void)
{
	uint64_t bytes = some_bytes();
	struct object *o;
	CUdeviceptr ptr;
	int card;

	if (begin_object(&o, OBJECT_POINTER, &card))
		have_pointer(o, cuMemAlloc_v2(&ptr, bytes), &ptr, bytes);
}

static void step_alloc_managed(void)
{
	uint64_t bytes = some_bytes();
	struct object *o;
	CUdeviceptr ptr;
	int card;

	if (!me.m.may_manage || !begin_object(&o, OBJECT_POINTER, &card))
		return;
	me.m.managed = true;
	have_pointer(o, cuMemAllocManaged(&ptr, bytes, CU_MEM_ATTACH_GLOBAL), &ptr, bytes);
}

static void step_alloc_pitch(void)
{
	size_t width = 1 + random_below(5000), height = 1 + random_below(1000), pitch = 0;
	struct object *o;
	CUdeviceptr ptr;
	CUresult rc;
	int card;

	if (!begin_object(&o, OBJECT_POINTER, &card))
		return;
	rc = cuMemAllocPitch_v2(&ptr, &pitch, width, height, 4);
	have_pointer(o, rc, &ptr, round_up(width, 512) * height);
}

static void step_alloc_nothing(void)
{
	CUdeviceptr ptr;

	expect(cuMemAlloc_v2(&ptr, 0), current_card() < 0 ? CUDA_ERROR_INVALID_CONTEXT : CUDA_ERROR_INVALID_VALUE);
	fake_failed();
}

static void step_alloc_far_too_much(void)
{
	CUdeviceptr ptr;

	if (current_card() < 0)
		return;
	expect(cuMemAlloc_v2(&ptr, SIZE_MAX - random_below(1 << 22)), CUDA_ERROR_OUT_OF_MEMORY);
	pools_looked_at();
}

static void free_pointer(struct object *o)
{
	expect(random_below(2) ? cuMemFree_v2(o->handle) : cuMemFreeAsync(o->handle, NULL), CUDA_SUCCESS);
	if (o->bytes < FAKE_PAGE)
		pages_change(o, -1);
	drop(o);
}

static void step_free(void)
{
	struct object *o = object_any(OBJECT_POINTER);

	if (o != NULL && o->refs == 0)
		free_pointer(o);
}

static void step_free_nonsense(void)
{
	struct object *o = object_any(OBJECT_POINTER);

	expect(cuMemFree_v2(o != NULL ? o->handle + 1 : 12345), CUDA_ERROR_INVALID_VALUE);
	expect(cuMemFree_v2(0), CUDA_SUCCESS);
}

/* The card has had a fault: nothing is freed. */
static void step_free_in_vain(void)
{
	static const enum object_kind kinds[] = { OBJECT_POINTER, OBJECT_POOLED, OBJECT_ARRAY, OBJECT_ADDRESS,
						  OBJECT_HANDLE };
	struct object *o = object_any(kinds[random_below(sizeof kinds / sizeof kinds[0])]);
	CUresult rc;

	if (o == NULL || (o->kind == OBJECT_HANDLE && o->refs == 0))
		return;
	fake_keep_next();
	switch (o->kind) {
	case OBJECT_ARRAY: rc = cuArrayDestroy((CUarray)o->handle); break; // NOLINT
	case OBJECT_ADDRESS: rc = cuMemUnmap(o->handle, o->bytes); break;
	case OBJECT_HANDLE: rc = cuMemRelease(o->handle); break;
	default: rc = cuMemFree_v2(o->handle);
	}
	expect(rc, CUDA_ERROR_LAUNCH_FAILED);
}

/* Whole tiles, so that the size is what the elements take. */
static void step_array(void)
{
	size_t width = 16 * (1 + random_below(16)), height = 16 * (1 + random_below(64)), depth = random_below(3);
	CUDA_ARRAY3D_DESCRIPTOR d = { width, height, depth, CU_AD_FORMAT_FLOAT, 1U << random_below(3), 0 };
	CUDA_ARRAY_DESCRIPTOR flat = { width, height, d.Format, d.NumChannels };
	uint64_t bytes = width * height * HM_MAX(depth, (size_t)1) * 4 * d.NumChannels;
	struct object *o;
	CUarray array;
	int card;

	if (!begin_object(&o, OBJECT_ARRAY, &card))
		return;
	bytes = round_up(bytes, 65536);
	if (granted(depth == 0 ? cuArrayCreate_v2(&array, &flat) : cuArray3DCreate_v2(&array, &d), card, bytes)) {
		o->handle = (uintptr_t)array;
		o->bytes = bytes;
	} else {
		drop(o);
	}
}

static void step_mipmap(void)
{
	size_t width = 64 * (1 + random_below(8)), height = 64 * (1 + random_below(8));
	CUDA_ARRAY3D_DESCRIPTOR d = { width, height, 0, CU_AD_FORMAT_FLOAT, 4, 0 };
	CUmipmappedArray array;
	struct object *o;
	int card;

	if (!begin_object(&o, OBJECT_MIPMAP, &card))
		return;
	o->bytes = round_up(width * height * 16 + width * height * 4 + width * height, 65536);
	if (granted(cuMipmappedArrayCreate(&array, &d, 3), card, o->bytes))
		o->handle = (uintptr_t)array;
	else
		drop(o);
}

static void destroy_array(struct object *o)
{
	expect(o->kind == OBJECT_ARRAY ? cuArrayDestroy((CUarray)o->handle)                    // NOLINT
				       : cuMipmappedArrayDestroy((CUmipmappedArray)o->handle), // NOLINT
	       CUDA_SUCCESS);
	drop(o);
}

static void step_array_destroy(void)
{
	struct object *o = object_any(random_below(2) ? OBJECT_ARRAY : OBJECT_MIPMAP);

	if (o != NULL)
		destroy_array(o);
}

static void step_create(void)
{
	int card = (int)random_below(FAKE_CARDS);
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, card } };
	bool on_host = random_below(8) == 0;
	struct object *o = object_new(OBJECT_HANDLE, card);
	uint64_t bytes = FAKE_PAGE * (1 + random_below(6));

	if (o == NULL)
		return;
	if (on_host)
		prop.location.type = CU_MEM_LOCATION_TYPE_HOST;
	if (granted(cuMemCreate(&o->handle, bytes, &prop, 0), card, bytes)) {
		o->bytes = on_host ? 0 : bytes;
		o->refs = 1;
	} else {
		drop(o);
	}
}

static struct object *any_handle(void)
{
	static const enum object_kind kinds[] = { OBJECT_HANDLE, OBJECT_HANDLE, OBJECT_HANDLE, OBJECT_IMPORT,
						  OBJECT_MULTICAST };
	struct object *o = object_any(kinds[random_below(sizeof kinds / sizeof kinds[0])]);

	return o != NULL && o->refs > 0 ? o : NULL;
}

static void release_handle(struct object *o)
{
	expect(cuMemRelease(o->handle), CUDA_SUCCESS);
	o->refs--;
	drop_unused_handle(o);
}

static void step_release(void)
{
	struct object *o = any_handle();

	if (o != NULL)
		release_handle(o);
}

static void step_map(void)
{
	struct object *o = any_handle(), *address = o != NULL ? object_new(OBJECT_ADDRESS, o->card) : NULL;

	if (address == NULL)
		return;
	fake_map_reserve(&address->handle);
	address->bytes = HM_MAX(o->bytes, FAKE_PAGE);
	address->other = o->handle;
	expect(cuMemMap(address->handle, address->bytes, 0, o->handle, 0), CUDA_SUCCESS);
	o->mappings++;
}

static struct object *handle_of(const struct object *address)
{
	struct object *o = object_by_handle(OBJECT_HANDLE, address->other);

	if (o == NULL)
		o = object_by_handle(OBJECT_IMPORT, address->other);
	return o != NULL ? o : object_by_handle(OBJECT_MULTICAST, address->other);
}

static void unmap(struct object *address)
{
	struct object *o = handle_of(address);

	expect(cuMemUnmap(address->handle, address->bytes), CUDA_SUCCESS);
	fake_map_free(address->handle);
	drop(address);
	o->mappings--;
	drop_unused_handle(o);
}

static void step_unmap(void)
{
	struct object *address = object_any(OBJECT_ADDRESS);

	if (address == NULL)
		return;
	expect(cuMemUnmap(address->handle, address->bytes + FAKE_PAGE), CUDA_ERROR_INVALID_VALUE);
	unmap(address);
}

static void step_retain(void)
{
	struct object *address = object_any(OBJECT_ADDRESS);
	CUmemGenericAllocationHandle handle;

	if (address == NULL)
		return;
	expect(cuMemRetainAllocationHandle(&handle, (void *)address->handle), CUDA_SUCCESS); // NOLINT
	handle_of(address)->refs++;
}

static void step_import(void)
{
	struct object *own = random_below(2) ? object_any(OBJECT_HANDLE) : NULL;
	struct object *o = own == NULL ? object_new(OBJECT_IMPORT, 0) : own;
	CUmemGenericAllocationHandle handle = 0;

	if (o == NULL)
		return;
	expect(cuMemImportFromShareableHandle(&handle, own != NULL ? (void *)own->handle : NULL, // NOLINT
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
	       CUDA_SUCCESS);
	o->handle = handle;
	o->refs++;
}

static CUresult open_one(enum object_kind kind, CUdeviceptr *out)
{
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC desc = { .size = FAKE_PAGE };
	CUipcMemHandle handle = { { 0 } };
	CUmemPoolPtrExportData data;

	if (kind == OBJECT_IPC)
		return random_below(2) ? cuIpcOpenMemHandle_v2(out, handle, 0) : cuIpcOpenMemHandle(out, handle, 0);
	return random_below(2) ? cuExternalMemoryGetMappedBuffer(out, NULL, &desc)
			       : cuMemPoolImportPointer(out, NULL, &data);
}

/* Where it gets the address of an allocation, it must be closed first: whose a free is nobody could tell. */
static void step_open(void)
{
	struct object *p = random_below(2) ? object_any(OBJECT_POINTER) : NULL, *o;
	int card;

	if (!begin_object(&o, random_below(2) ? OBJECT_IPC : OBJECT_BUFFER, &card))
		return;
	if (p != NULL && p->refs == 0 && p->context == me.m.current) {
		fake_alias_next(p->handle);
		o->other = p->handle;
		p->refs = 1;
	}
	expect(open_one(o->kind, &o->handle), CUDA_SUCCESS);
}

static void close_import(struct object *o)
{
	struct object *p = o->other != 0 ? object_by_handle(OBJECT_POINTER, o->other) : NULL;

	if (o->kind == OBJECT_IPC) {
		expect(p != NULL ? CUDA_ERROR_INVALID_VALUE : cuMemFree_v2(o->handle), CUDA_ERROR_INVALID_VALUE);
		expect(cuIpcCloseMemHandle(o->handle), CUDA_SUCCESS);
	} else {
		expect(cuIpcCloseMemHandle(o->handle), CUDA_ERROR_INVALID_VALUE);
		expect(cuMemFree_v2(o->handle), CUDA_SUCCESS);
	}
	if (p != NULL)
		p->refs = 0;
	drop(o);
}

static void step_close(void)
{
	struct object *o = object_any(random_below(2) ? OBJECT_IPC : OBJECT_BUFFER), *p = object_any(OBJECT_POINTER);

	if (o != NULL)
		close_import(o);
	if (p != NULL && p->refs == 0)
		expect(cuIpcCloseMemHandle(p->handle), CUDA_ERROR_INVALID_VALUE);
}

void release_memory(void)
{
	struct object *o;

	while ((o = object_any(OBJECT_IPC)) != NULL || (o = object_any(OBJECT_BUFFER)) != NULL)
		close_import(o);
	while ((o = object_any(OBJECT_POINTER)) != NULL)
		free_pointer(o);
	while ((o = object_any(OBJECT_ARRAY)) != NULL || (o = object_any(OBJECT_MIPMAP)) != NULL)
		destroy_array(o);
	while ((o = object_any(OBJECT_ADDRESS)) != NULL)
		unmap(o);
	while ((o = object_any(OBJECT_MULTICAST)) != NULL)
		release_handle(o);
	while ((o = object_any(OBJECT_HANDLE)) != NULL || (o = object_any(OBJECT_IMPORT)) != NULL)
		release_handle(o);
}

const struct step memory_steps[] = {
	{ "alloc", 30, step_alloc },
	{ "alloc managed", 4, step_alloc_managed },
	{ "alloc pitch", 5, step_alloc_pitch },
	{ "alloc nothing", 1, step_alloc_nothing },
	{ "alloc far too much", 1, step_alloc_far_too_much },
	{ "free", 30, step_free },
	{ "free nonsense", 1, step_free_nonsense },
	{ "free in vain", 4, step_free_in_vain },
	{ "array", 8, step_array },
	{ "mipmap", 4, step_mipmap },
	{ "array destroy", 12, step_array_destroy },
	{ "create", 10, step_create },
	{ "release", 10, step_release },
	{ "map", 8, step_map },
	{ "unmap", 7, step_unmap },
	{ "retain", 4, step_retain },
	{ "import", 4, step_import },
	{ "open", 4, step_open },
	{ "close", 5, step_close },
	{ NULL, 0, NULL },
};
