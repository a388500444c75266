#include "vgpu/driver.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>

#include "core/macros.h"
#include "vgpu/elf.h"

/* Until 2.34 glibc kept them in libdl. */
static const char *const libc_names[] = { "libc.so.6", "libdl.so.2" };
static const char *const driver_names[DRIVER_LIBRARIES] = { "libcuda.so.1", "libnvidia-ml.so.1" };

enum { UNKNOWN, FILLING, READY };

struct driver {
	struct elf_object object;
	_Atomic uint32_t phase;
};

static struct driver drivers[DRIVER_LIBRARIES];

static void *libc_symbol(const char *name)
{
	struct elf_object o;

	for (unsigned i = 0; i < sizeof libc_names / sizeof libc_names[0]; i++) {
		void *p = elf_find_soname(libc_names[i], &o) ? elf_symbol(&o, name) : NULL;

		if (p != NULL)
			return p;
	}
	/* musl is libc and linker in one, by names of its own, if any: it is where our references lead. */
	return elf_find_address((uintptr_t)&dl_iterate_phdr, &o) ? elf_symbol(&o, name) : NULL;
}

/* Our pointers into the library must outlive the program's last dlclose. */
static void pin(const struct elf_object *o)
{
	if (o->path[0] != '\0')
		libc_dlopen()(o->path, RTLD_LAZY | RTLD_NOLOAD);
}

/* NULL: not loaded. `room` is for what another thread is filling in; in a forked child that thread is gone, so nobody
 * waits for it. */
static const struct elf_object *find_driver(enum driver_library lib, struct elf_object *room)
{
	struct driver *d = &drivers[lib];
	uint32_t phase = UNKNOWN;

	if (atomic_load_explicit(&d->phase, memory_order_acquire) == READY)
		return &d->object;
	if (!elf_find_soname(driver_names[lib], room))
		return NULL;
	pin(room);
	if (atomic_compare_exchange_strong(&d->phase, &phase, FILLING)) {
		d->object = *room;
		atomic_store_explicit(&d->phase, READY, memory_order_release);
	}
	return room;
}

void *driver_symbol(enum driver_library lib, const char *name)
{
	struct elf_object room;
	const struct elf_object *o = find_driver(lib, &room);

	return o != NULL ? elf_symbol(o, name) : NULL;
}

bool driver_load(enum driver_library lib)
{
	struct elf_object room;

	return find_driver(lib, &room) != NULL ||
	       (libc_dlopen()(driver_names[lib], RTLD_LAZY) != NULL && find_driver(lib, &room) != NULL);
}

bool driver_contains_now(enum driver_library lib, uintptr_t address)
{
	struct elf_object o;

	return elf_find_address(address, &o) && __builtin_strcmp(o.soname, driver_names[lib]) == 0;
}

/* A second copy of the driver counts as the driver. */
bool driver_contains(enum driver_library lib, uintptr_t address)
{
	struct elf_object room;
	const struct elf_object *o = find_driver(lib, &room);

	return o != NULL && (elf_contains(o, address) || driver_contains_now(lib, address));
}

enum driver_library driver_of_name(const char *name)
{
	return name[0] == 'n' ? DRIVER_NVML : DRIVER_CUDA;
}

static void *no_dlsym(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

static void *no_dlvsym(void *handle, const char *name, const char *version)
{
	(void)version;
	return no_dlsym(handle, name);
}

static void *no_dlopen(const char *name, int flags)
{
	(void)flags;
	return no_dlsym(NULL, name);
}

static char *no_dlerror(void)
{
	return NULL;
}

/* One of the four; found once. */
#define LIBC_FUNCTION(name)                                                                                            \
	name##_function *libc_##name(void)                                                                             \
	{                                                                                                              \
		static name##_function *_Atomic found;                                                                 \
		name##_function *p = found;                                                                            \
                                                                                                                       \
		if (HM_LIKELY(p != NULL))                                                                              \
			return p;                                                                                      \
		p = (name##_function *)libc_symbol(#name); /* NOLINT */                                                \
		found = p != NULL ? p : no_##name;                                                                     \
		return found;                                                                                          \
	}

LIBC_FUNCTION(dlsym)
LIBC_FUNCTION(dlvsym)
LIBC_FUNCTION(dlopen)
LIBC_FUNCTION(dlerror)
