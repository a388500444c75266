#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "fuzz/calls/fake_internal.h"
#include "vgpu/driver.h"

struct fake fake;

enum { OBJECT_SPAN_BITS = 32 }; /* no object is larger */
#define OBJECT_BASE (UINT64_C(1) << 45)

void fake_attach(struct fake_world *world, unsigned index)
{
	memset(&fake, 0, sizeof fake);
	fake.world = world;
	fake.self = &world->processes[index];
	fake.self->pid = (uint32_t)getpid();
	for (int card = 0; card < FAKE_CARDS; card++)
		fake.graphs[card] = (struct fake_object) { .kind = FAKE_POOL, .card = card };
}

void fake_bury(struct fake_world *world, unsigned index)
{
	struct fake_process *p = &world->processes[index];

	for (int card = 0; card < FAKE_CARDS; card++) {
		world->taken[card] -= p->taken[card];
		world->strict[card] -= p->strict[card];
	}
	memset(p, 0, sizeof *p);
}

/* As a kernel does: what the process had is free before anyone can see that it is dead. */
void fake_die(void)
{
	fake_bury(fake.world, (unsigned)(fake.self - fake.world->processes));
	kill(getpid(), SIGKILL);
	for (;;)
		pause();
}

static void touch(void)
{
	if (fake.die_at != 0 && --fake.die_at == 0)
		fake_die();
}

void fake_fail_next(CUresult rc)
{
	fake.fail = rc;
	fake.failed = false;
}

void fake_alias_next(CUdeviceptr ptr)
{
	fake.alias = ptr;
}

void fake_keep_next(void)
{
	fake.keep = true;
}

bool fake_keeps(void)
{
	bool keeps = fake.keep;

	fake.keep = false;
	return keeps;
}

bool fake_failed(void)
{
	bool failed = fake.failed;

	fake.fail = CUDA_SUCCESS;
	fake.failed = false;
	return failed;
}

void fake_die_at(unsigned n)
{
	fake.die_at = n;
}

struct fake_object *fake_new(enum fake_kind kind, int card)
{
	for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
		if (fake.objects[i].kind == FAKE_NONE) {
			fake.objects[i] = (struct fake_object) { .kind = kind, .card = card };
			return &fake.objects[i];
		}
	}
	__builtin_trap(); /* the model has fewer */
}

uint64_t fake_handle(const struct fake_object *o)
{
	return o->at != 0 ? o->at : OBJECT_BASE + ((uint64_t)(o - fake.objects) << OBJECT_SPAN_BITS);
}

static struct fake_object *find_by_address(enum fake_kind kind, uint64_t at)
{
	for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
		if (fake.objects[i].kind == kind && fake_handle(&fake.objects[i]) == at)
			return &fake.objects[i];
	}
	return NULL;
}

struct fake_object *fake_find(enum fake_kind kind, uint64_t handle)
{
	uint64_t number = (handle - OBJECT_BASE) >> OBJECT_SPAN_BITS;

	if (kind == FAKE_SMALL || kind == FAKE_IMPORT)
		return find_by_address(kind, handle);
	if (handle < OBJECT_BASE || number >= FAKE_OBJECTS || (handle & ((UINT64_C(1) << OBJECT_SPAN_BITS) - 1)) != 0)
		return NULL;
	return fake.objects[number].kind == kind ? &fake.objects[number] : NULL;
}

CUresult fake_take(int card, uint64_t bytes, bool strict)
{
	struct fake_world *w = fake.world;

	touch();
	if (fake.fail != CUDA_SUCCESS) {
		CUresult rc = fake.fail;

		fake.fail = CUDA_SUCCESS;
		fake.failed = true;
		return rc;
	}
	fake.self->taken[card] += bytes;
	w->taken[card] += bytes;
	if (strict) {
		fake.self->strict[card] += bytes;
		if (atomic_fetch_add(&w->strict[card], bytes) + bytes > w->limit[card])
			w->overruns++;
	}
	touch();
	return CUDA_SUCCESS;
}

void fake_give(int card, uint64_t bytes, bool strict)
{
	touch();
	fake.self->taken[card] -= bytes;
	fake.world->taken[card] -= bytes;
	if (strict) {
		fake.self->strict[card] -= bytes;
		fake.world->strict[card] -= bytes;
	}
	touch();
}

static void drop_small(const struct fake_object *o)
{
	uint64_t base = o->at % FAKE_CARD_SPAN;

	for (uint64_t page = base / FAKE_PAGE; page <= (base + o->bytes - 1) / FAKE_PAGE; page++) {
		if (--fake.page_refs[o->card][page] == 0)
			fake_give(o->card, FAKE_PAGE, false);
	}
}

void fake_drop(struct fake_object *o)
{
	if (o->kind == FAKE_SMALL)
		drop_small(o);
	else if (o->bytes != 0)
		fake_give(o->card, o->bytes, o->strict);
	o->kind = FAKE_NONE;
}

void fake_drop_context(uint64_t context)
{
	for (unsigned i = 0; i < FAKE_OBJECTS; i++) {
		if (fake.objects[i].kind != FAKE_NONE && fake.objects[i].context == context)
			fake_drop(&fake.objects[i]);
	}
}

int fake_current_card(void)
{
	const struct fake_object *context = fake_find(FAKE_CONTEXT, fake.current);

	return context != NULL ? context->card : -1;
}

bool entry_bind(enum vgpu_entry entry)
{
	static const struct fake_entry *const tables[] = { fake_memory_entries, fake_context_entries, fake_pool_entries,
							   fake_multicast_entries, fake_graph_entries };

	for (unsigned i = 0; i < sizeof tables / sizeof tables[0]; i++) {
		for (const struct fake_entry *e = tables[i]; e->function != NULL; e++) {
			if (e->entry == entry) {
				__atomic_store_n((void **)&vgpu_real + entry, e->function, __ATOMIC_RELAXED);
				return true;
			}
		}
	}
	return false;
}

const void *entry_real(enum vgpu_entry entry)
{
	return entry_bind(entry) ? __atomic_load_n((void **)&vgpu_real + entry, __ATOMIC_RELAXED) : NULL;
}

int entry_find(const char *name)
{
	(void)name;
	return -1;
}

/* libvgpu's vgpu/driver.c and lookup.c are left out of this program. */
bool driver_load(enum driver_library lib)
{
	return lib == DRIVER_CUDA || fake.world->nvml;
}

void *driver_symbol(enum driver_library lib, const char *name)
{
	(void)lib;
	(void)name;
	return NULL;
}
