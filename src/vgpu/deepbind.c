/* dlopen with RTLD_DEEPBIND: what the library needs then comes before what was preloaded, so its references to the
 * driver and to dlsym go around us. They are pointed at us once libc has loaded it:
 *  1. Note what is loaded. Let libc open the library, with the flag, so that all else is bound as its author wants.
 *  2. In the objects that came by it, see which of our names they refer to. Of references that are not bound yet ask
 * what the library's scope says.
 *  3. Where that is the driver's function (or libc's dlsym, dlvsym, dlopen), write the address of ours into the slot.
 * The library's constructors have run by then. Without the flag nothing of this is done: libc is called as if by our
 * caller, since its search for a bare name, $ORIGIN and the namespace are those of the object that the call came from.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "core/err.h"
#include "vgpu/driver.h"
#include "vgpu/elf.h"
#include "vgpu/lookup.h"
#include "vgpu/state.h"

/* Returned in two registers to the stub. */
struct opened {
	uintptr_t value; /* the handle; or the flags with which libc is to open it, as if called by our caller */
	uintptr_t done;
};
struct opened vgpu_dlopen(const char *name, int flags, uintptr_t caller);
extern dlopen_function *vgpu_real_dlopen;

dlopen_function *vgpu_real_dlopen;

/* As the stubs of lookup.c. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, @function\n"
	"dlopen:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	".cfi_adjust_cfa_offset 8\n"
	"	movq 8(%rsp), %rdx\n"
	"	call vgpu_dlopen\n"
	"	popq %rdi\n"
	".cfi_adjust_cfa_offset -8\n"
	"	testq %rdx, %rdx\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	movl %eax, %esi\n"
	"	jmp *vgpu_real_dlopen(%rip)\n"
	".cfi_endproc\n"
	".size dlopen, .-dlopen\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlopen\n"
	".type dlopen, %function\n"
	"dlopen:\n"
	".cfi_startproc\n"
	"	stp x29, x30, [sp, -32]!\n"
	".cfi_def_cfa_offset 32\n"
	".cfi_offset 29, -32\n"
	".cfi_offset 30, -24\n"
	"	mov x29, sp\n"
	"	str x0, [sp, 16]\n"
	"	mov x2, x30\n"
	"	bl vgpu_dlopen\n"
	"	mov x9, x0\n"
	"	ldr x0, [sp, 16]\n"
	"	ldp x29, x30, [sp], 32\n"
	".cfi_restore 30\n"
	".cfi_restore 29\n"
	".cfi_def_cfa_offset 0\n"
	"	cbz x1, 1f\n"
	"	mov x0, x9\n"
	"	ret\n"
	"1:	mov w1, w9\n"
	"	adrp x16, vgpu_real_dlopen\n"
	"	ldr x16, [x16, :lo12:vgpu_real_dlopen]\n"
	"	br x16\n"
	".cfi_endproc\n"
	".size dlopen, .-dlopen\n");
#endif

/* Of one of our names, in what came by a call. */
struct reference {
	bool unbound;  /* there is a slot that the linker will fill at the first call */
	void *instead; /* what such a slot gets; NULL: it is left alone */
};

struct rebinding {
	struct reference names[LOOKUP_NAMES];
	const void *only; /* the dynamic section of the one object that is meant; NULL: all */
	const struct elf_object *object;
	bool writable; /* the object's relro pages, for now */
	int failed;    /* errno */
};

/* Until it is bound, a slot leads to the object's own code. */
static bool is_unbound(const struct elf_object *o, uintptr_t slot)
{
	return elf_contains(o, slot);
}

static bool is_meant(const struct rebinding *r, const struct elf_object *o)
{
	if (r->only != NULL && !elf_contains(o, (uintptr_t)r->only))
		return false;
	return !driver_contains_now(DRIVER_CUDA, o->low) && !driver_contains_now(DRIVER_NVML, o->low);
}

static void note_slot(uintptr_t *slot, const char *name, void *arg)
{
	struct rebinding *r = arg;
	int index = lookup_index(name);

	if (index >= 0 && is_unbound(r->object, *slot))
		r->names[index].unbound = true;
}

static bool unlock(struct rebinding *r, const uintptr_t *slot)
{
	const struct elf_object *o = r->object;
	uintptr_t at = (uintptr_t)slot;

	if (r->writable || at < o->relro_low || at >= o->relro_high)
		return true;
	r->writable =
		mprotect((void *)o->relro_low, o->relro_high - o->relro_low, PROT_READ | PROT_WRITE) == 0; // NOLINT
	if (!r->writable)
		r->failed = errno;
	return r->writable;
}

static void bind_slot(uintptr_t *slot, const char *name, void *arg)
{
	struct rebinding *r = arg;
	int index = lookup_index(name);
	void *instead;

	if (index < 0)
		return;
	instead = is_unbound(r->object, *slot) ? r->names[index].instead
					       : lookup_substitute(index, (const void *)*slot); // NOLINT
	if (instead != NULL && unlock(r, slot))
		__atomic_store_n(slot, (uintptr_t)instead, __ATOMIC_RELAXED);
}

static void note_object(const struct elf_object *o, void *arg)
{
	struct rebinding *r = arg;

	r->object = o;
	if (is_meant(r, o))
		elf_each_slot(o, note_slot, r);
}

static void bind_object(const struct elf_object *o, void *arg)
{
	struct rebinding *r = arg;

	if (!is_meant(r, o))
		return;
	r->object = o;
	r->writable = false;
	elf_each_slot(o, bind_slot, r);
	if (r->writable)
		mprotect((void *)o->relro_low, o->relro_high - o->relro_low, PROT_READ); // NOLINT
}

/* A name that the library's own scope lacks is the global scope's, where we come first. The open has succeeded, so
 * there is no error of the caller's that dlerror could lose. */
static void resolve(struct rebinding *r, void *handle)
{
	for (int i = 0; i < LOOKUP_NAMES; i++) {
		const void *found = r->names[i].unbound ? libc_dlsym()(handle, lookup_name(i)) : NULL;

		if (r->names[i].unbound && found == NULL)
			libc_dlerror()();
		r->names[i].instead = lookup_substitute(i, found);
	}
}

static void rebind(const struct elf_moment *since, const void *only, void *handle)
{
	struct rebinding r = { .only = only };
	int saved = errno;

	elf_each_since(since, note_object, &r);
	resolve(&r, handle);
	elf_each_since(since, bind_object, &r);
	if (r.failed != 0 && vgpu_get() != NULL)
		vgpu_trouble(vgpu_get(), "a library opened with RTLD_DEEPBIND goes around the limits: mprotect: %s",
			     hm_errno_text(r.failed));
	errno = saved;
}

/* Two threads may open the same library: the one for which it was loaded may not have come to its slots yet, so the
 * other one sees to them as well. Waiting for each other could be a dead-lock with the linker's own lock. */
static void *open_deeply(const char *name, int flags)
{
	static _Atomic unsigned under_way;
	const struct elf_moment never = ELF_NEVER;
	struct elf_moment before;
	struct link_map *handle;

	under_way++;
	elf_now(&before);
	handle = vgpu_real_dlopen(name, flags);
	if (handle != NULL) {
		rebind(&before, NULL, handle);
		if (under_way > 1)
			rebind(&never, handle->l_ld, handle);
	}
	under_way--;
	return handle;
}

/* libc searches for a bare name where the calling object says, and knows that from where it returns to. */
static bool is_for_caller_alone(const char *name, uintptr_t caller)
{
	struct elf_object o;

	if (strchr(name, '$') != NULL)
		return true;
	return strchr(name, '/') == NULL && elf_find_address(caller, &o) && o.has_search_path;
}

struct opened vgpu_dlopen(const char *name, int flags, uintptr_t caller)
{
	struct opened as_caller = { (unsigned)flags & ~(unsigned)RTLD_DEEPBIND, 0 };
	void *handle;

	vgpu_real_dlopen = libc_dlopen();
	if (mutate_off("dlopen"))
		return (struct opened) { (unsigned)flags, 0 };
	if (HM_LIKELY((flags & RTLD_DEEPBIND) == 0 || name == NULL || is_for_caller_alone(name, caller)))
		return as_caller;
	handle = open_deeply(name, flags);
	/* NULL: perhaps the caller's own caller has a search path. Let libc see, and say why not. */
	return handle != NULL ? (struct opened) { (uintptr_t)handle, 1 } : as_caller;
}
