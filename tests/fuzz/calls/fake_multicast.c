/* Multicast objects: handles without memory, which keep what is bound to them. */
#include "fuzz/calls/fake_internal.h"

/* A bind: `other` its object, `used` the offset there, `reserved` the memory's handle. */
static struct fake_object *find_bind(uint64_t object, int card, uint64_t offset)
{
	for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
		struct fake_object *o = &fake.objects[i];

		if (o->kind == FAKE_BIND && o->other == object && o->card == card && o->used == offset)
			return o;
	}
	return NULL;
}

static void drop_bind(struct fake_object *bind)
{
	struct fake_object *memory = fake_find(FAKE_HANDLE, bind->reserved);

	bind->kind = FAKE_NONE;
	memory->mappings--;
	fake_drop_unused(memory);
}

void fake_drop_unused(struct fake_object *handle)
{
	uint64_t value = fake_handle(handle);

	if (handle->refs != 0 || handle->mappings != 0)
		return;
	fake_drop(handle);
	for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
		if (fake.objects[i].kind == FAKE_BIND && fake.objects[i].other == value)
			drop_bind(&fake.objects[i]);
	}
}

static CUresult fake_cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	struct fake_object *o = fake_new(FAKE_HANDLE, 0);

	(void)prop;
	o->refs = 1;
	*out = fake_handle(o);
	return CUDA_SUCCESS;
}

static CUresult fake_cuMulticastBindMem(CUmemGenericAllocationHandle object, size_t offset,
					CUmemGenericAllocationHandle memory, size_t memory_offset, size_t bytes,
					unsigned long long flags)
{
	struct fake_object *its = fake_find(FAKE_HANDLE, memory), *bind;

	(void)memory_offset;
	(void)bytes;
	(void)flags;
	if (its == NULL || fake_find(FAKE_HANDLE, object) == NULL || find_bind(object, its->card, offset) != NULL)
		return CUDA_ERROR_INVALID_VALUE;
	bind = fake_new(FAKE_BIND, its->card);
	bind->other = object;
	bind->used = offset;
	bind->reserved = memory;
	its->mappings++;
	return CUDA_SUCCESS;
}

static CUresult fake_cuMulticastUnbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
				       size_t bytes)
{
	struct fake_object *bind = find_bind(object, device, offset);

	(void)bytes;
	if (bind == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_keeps())
		return CUDA_ERROR_LAUNCH_FAILED;
	drop_bind(bind);
	return CUDA_SUCCESS;
}

const struct fake_entry fake_multicast_entries[] = {
	FAKE_ENTRY(cuMulticastCreate),
	FAKE_ENTRY(cuMulticastBindMem),
	FAKE_ENTRY(cuMulticastUnbind),
	{ 0, NULL },
};
