/* Steps: multicast objects. They are handles, too: released and mapped as memory's are. */
#include "fuzz/calls/model.h"

enum { OFFSETS = 4 };

static struct object *memory_of(const struct object *bind)
{
	struct object *o = object_by_handle(OBJECT_HANDLE, bind->used);

	return o != NULL ? o : object_by_handle(OBJECT_IMPORT, bind->used);
}

static void forget_bind(struct object *bind)
{
	struct object *memory = memory_of(bind);

	bind->kind = OBJECT_NONE;
	memory->mappings--;
	drop_unused_handle(memory);
}

void drop_unused_handle(struct object *o)
{
	CUdeviceptr value = o->handle;

	if (o->refs != 0 || o->mappings != 0)
		return;
	o->kind = OBJECT_NONE;
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (me.m.objects[i].kind == OBJECT_BIND && me.m.objects[i].other == value)
			forget_bind(&me.m.objects[i]);
	}
}

static void step_multicast(void)
{
	CUmulticastObjectProp prop = { .numDevices = FAKE_CARDS, .size = OFFSETS * FAKE_PAGE };
	struct object *o = object_new(OBJECT_MULTICAST, 0);

	if (o == NULL)
		return;
	expect(cuMulticastCreate(&o->handle, &prop), CUDA_SUCCESS);
	o->refs = 1;
}

static bool is_bound(const struct object *multicast, int card, uint64_t offset)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		const struct object *o = &me.m.objects[i];

		if (o->kind == OBJECT_BIND && o->other == multicast->handle && o->card == card && o->bytes == offset)
			return true;
	}
	return false;
}

static void step_bind(void)
{
	struct object *multicast = object_any(OBJECT_MULTICAST), *bind;
	struct object *memory = object_any(random_below(4) ? OBJECT_HANDLE : OBJECT_IMPORT);
	uint64_t offset = random_below(OFFSETS) * FAKE_PAGE;
	bool taken;

	if (multicast == NULL || memory == NULL || multicast->refs == 0 || memory->refs == 0)
		return;
	taken = is_bound(multicast, memory->card, offset);
	bind = taken ? NULL : object_new(OBJECT_BIND, memory->card);
	if (!taken && bind == NULL)
		return;
	expect(cuMulticastBindMem(multicast->handle, offset, memory->handle, 0, FAKE_PAGE, 0),
	       taken ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
	if (taken)
		return;
	bind->other = multicast->handle;
	bind->bytes = offset;
	bind->used = memory->handle;
	memory->mappings++;
}

static void step_unbind(void)
{
	struct object *bind = object_any(OBJECT_BIND);

	if (bind == NULL)
		return;
	if (random_below(8) == 0) {
		fake_keep_next();
		expect(cuMulticastUnbind(bind->other, bind->card, bind->bytes, FAKE_PAGE), CUDA_ERROR_LAUNCH_FAILED);
		return;
	}
	expect(cuMulticastUnbind(bind->other, bind->card, bind->bytes, FAKE_PAGE), CUDA_SUCCESS);
	forget_bind(bind);
}

const struct step multicast_steps[] = {
	{ "multicast", 3, step_multicast },
	{ "bind", 8, step_bind },
	{ "unbind", 5, step_unbind },
	{ NULL, 0, NULL },
};
