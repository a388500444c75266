/* How a program finds the driver's functions: dlsym, dlvsym, cuGetProcAddress. Each is answered with ours where the
 * driver would have answered with its own of the same name, and only there. */
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "core/macros.h"
#include "vgpu/driver.h"
#include "vgpu/elf.h"
#include "vgpu/hooks.h"
#include "vgpu/lookup.h"

/* Returned in two registers to the assembly stubs. */
struct answer {
	void *address;
	uintptr_t known; /* 0: libc is to answer, as if called by our caller */
};
struct answer vgpu_dlsym(void *handle, const char *name, uintptr_t caller);
struct answer vgpu_dlvsym(void *handle, const char *name, const char *version, uintptr_t caller);
extern dlsym_function *vgpu_real_dlsym;
extern dlvsym_function *vgpu_real_dlvsym;

dlsym_function *vgpu_real_dlsym;
dlvsym_function *vgpu_real_dlvsym;

/* dlsym and dlvsym end in a jump to libc's: libc takes the caller from the return address, and RTLD_NEXT and
 * RTLD_DEFAULT must mean what they mean to our caller. No compiler promises a tail call at every level, so it is
 * written out. */
#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	".cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	".cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	".cfi_adjust_cfa_offset 8\n"
	"	movq 24(%rsp), %rdx\n"
	"	call vgpu_dlsym\n"
	"	addq $8, %rsp\n"
	".cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	".cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	".cfi_adjust_cfa_offset -8\n"
	"	testq %rdx, %rdx\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	jmp *vgpu_real_dlsym(%rip)\n"
	".cfi_endproc\n"
	".size dlsym, .-dlsym\n"
	".globl dlvsym\n"
	".type dlvsym, @function\n"
	"dlvsym:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	".cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	".cfi_adjust_cfa_offset 8\n"
	"	pushq %rdx\n"
	".cfi_adjust_cfa_offset 8\n"
	"	movq 24(%rsp), %rcx\n"
	"	call vgpu_dlvsym\n"
	"	movq %rdx, %rcx\n"
	"	popq %rdx\n"
	".cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	".cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	".cfi_adjust_cfa_offset -8\n"
	"	testq %rcx, %rcx\n"
	"	jz 1f\n"
	"	ret\n"
	"1:	jmp *vgpu_real_dlvsym(%rip)\n"
	".cfi_endproc\n"
	".size dlvsym, .-dlvsym\n");
#elif defined(__aarch64__)
/* x30 holds the return address; x16 is free between functions. */
#define STUB(name)                                                                                                     \
	".globl " #name "\n"                                                                                           \
	".type " #name ", %function\n" #name ":\n"                                                                     \
	".cfi_startproc\n"                                                                                             \
	"	stp x29, x30, [sp, -48]!\n"                                                                                  \
	".cfi_def_cfa_offset 48\n"                                                                                     \
	".cfi_offset 29, -48\n"                                                                                        \
	".cfi_offset 30, -40\n"                                                                                        \
	"	mov x29, sp\n"                                                                                               \
	"	stp x0, x1, [sp, 16]\n"                                                                                      \
	"	str x2, [sp, 32]\n"
#define STUB_END(name)                                                                                                 \
	"	mov x9, x0\n"                                                                                                \
	"	mov x10, x1\n"                                                                                               \
	"	ldp x0, x1, [sp, 16]\n"                                                                                      \
	"	ldr x2, [sp, 32]\n"                                                                                          \
	"	ldp x29, x30, [sp], 48\n"                                                                                    \
	".cfi_restore 30\n"                                                                                            \
	".cfi_restore 29\n"                                                                                            \
	".cfi_def_cfa_offset 0\n"                                                                                      \
	"	cbz x10, 1f\n"                                                                                               \
	"	mov x0, x9\n"                                                                                                \
	"	ret\n"                                                                                                       \
	"1:	adrp x16, vgpu_real_" #name "\n"                                                                       \
	"	ldr x16, [x16, :lo12:vgpu_real_" #name "]\n"                                                           \
	"	br x16\n"                                                                                                    \
	".cfi_endproc\n"                                                                                               \
	".size " #name ", .-" #name "\n"
__asm__(".text\n" STUB(dlsym) "	mov x2, x30\n	bl vgpu_dlsym\n" STUB_END(dlsym)
		STUB(dlvsym) "	mov x3, x30\n	bl vgpu_dlvsym\n" STUB_END(dlvsym));
#else
#error "write the two stubs for this processor"
#endif

static bool is_ours(const void *address)
{
	for (unsigned i = 0; i < ENTRY_COUNT; i++) {
		if (entry_ours[i] == address)
			return address != NULL;
	}
	return false;
}

static bool may_be_entry(const char *name)
{
	return (name[0] == 'c' && name[1] == 'u') || (name[0] == 'n' && name[1] == 'v');
}

static const char *const own_names[LOOKUP_OWN_NAMES] = { "dlsym", "dlvsym", "dlopen" };

static int own_find(const char *name)
{
	for (int i = 0; i < LOOKUP_OWN_NAMES && name[0] == 'd' && name[1] == 'l'; i++) {
		if (strcmp(name, own_names[i]) == 0)
			return i;
	}
	return -1;
}

int entry_find(const char *name)
{
	unsigned low = 0, high = ENTRY_COUNT;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		int order = strcmp(name, name_pool + entry_names[middle]);

		if (order == 0)
			return (int)middle;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return -1;
}

bool entry_bind(enum vgpu_entry entry)
{
	const char *name = name_pool + entry_names[entry];
	void *address = driver_symbol(driver_of_name(name), name);

	if (address == NULL)
		return false;
	__atomic_store_n((void **)&vgpu_real + entry, address, __ATOMIC_RELAXED);
	return true;
}

const void *entry_real(enum vgpu_entry entry)
{
	static _Atomic bool bound[ENTRY_COUNT];

	if (!bound[entry]) {
		if (!entry_bind(entry))
			return NULL;
		bound[entry] = true;
	}
	return __atomic_load_n((void **)&vgpu_real + entry, __ATOMIC_RELAXED);
}

/* What the caller's RTLD_NEXT leads to: the first definition behind the caller's object, ours left out. A library that
 * was opened later than the driver has it behind itself too, in its own scope: nobody else defines the name then. */
static bool next_is_driver(const char *name, uintptr_t caller)
{
	enum driver_library lib = driver_of_name(name);
	struct elf_object o;

	return elf_find_next(caller, (uintptr_t)&vgpu_dlsym, name, &o)
		       ? driver_contains(lib, (uintptr_t)elf_symbol(&o, name))
		       : driver_symbol(lib, name) != NULL;
}

static const struct answer ask_libc;

/* Ours, where libc's own was found. */
static void *own_substitute(int own, const void *found)
{
	const struct {
		void *real, *ours;
	} rows[LOOKUP_OWN_NAMES] = { { (void *)libc_dlsym(), (void *)dlsym },
				     { (void *)libc_dlvsym(), (void *)dlvsym },
				     { (void *)libc_dlopen(), (void *)dlopen } };

	return found != NULL && found == rows[own].real ? rows[own].ours : NULL;
}

int lookup_index(const char *name)
{
	int own = own_find(name), entry = own < 0 && may_be_entry(name) ? entry_find(name) : -1;

	if (own >= 0)
		return own;
	return entry >= 0 && entry_ours[entry] != NULL ? LOOKUP_OWN_NAMES + entry : -1;
}

const char *lookup_name(int index)
{
	return index < LOOKUP_OWN_NAMES ? own_names[index] : name_pool + entry_names[index - LOOKUP_OWN_NAMES];
}

void *lookup_substitute(int index, const void *found)
{
	if (index < LOOKUP_OWN_NAMES)
		return own_substitute(index, found);
	if (found == NULL || !driver_contains_now(driver_of_name(lookup_name(index)), (uintptr_t)found))
		return NULL;
	return entry_ours[index - LOOKUP_OWN_NAMES];
}

/* Of an entry that we hook; `found` is libc's answer to us. */
static struct answer answer_entry(void *found, void *handle, int entry, uintptr_t caller)
{
	const char *name = name_pool + entry_names[entry];
	bool from_rest = is_ours(found);

	/* We stand in front of the program's libraries: what would be found without us? */
	if (from_rest)
		found = libc_dlsym()(RTLD_NEXT, name);
	if (driver_contains(driver_of_name(name), (uintptr_t)found) ||
	    (handle == RTLD_NEXT && next_is_driver(name, caller)))
		return (struct answer) { entry_ours[entry], 1 };
	/* Another library's function of that name, or nothing. */
	return from_rest ? (struct answer) { found, 1 } : ask_libc;
}

/* Of a name by its index; `found` is libc's answer to us. */
static struct answer answer(void *found, void *handle, int index, uintptr_t caller)
{
	void *ours;

	if (index >= LOOKUP_OWN_NAMES)
		return answer_entry(found, handle, index - LOOKUP_OWN_NAMES, caller);
	ours = own_substitute(index, found);
	return ours != NULL ? (struct answer) { ours, 1 } : ask_libc;
}

struct answer vgpu_dlsym(void *handle, const char *name, uintptr_t caller)
{
	int index = name != NULL && !mutate_off("dlsym") ? lookup_index(name) : -1;

	vgpu_real_dlsym = libc_dlsym();
	return HM_LIKELY(index < 0) ? ask_libc : answer(vgpu_real_dlsym(handle, name), handle, index, caller);
}

struct answer vgpu_dlvsym(void *handle, const char *name, const char *version, uintptr_t caller)
{
	int index = name != NULL && version != NULL && !mutate_off("dlvsym") ? lookup_index(name) : -1;

	vgpu_real_dlvsym = libc_dlvsym();
	return HM_LIKELY(index < 0) ? ask_libc : answer(vgpu_real_dlvsym(handle, name, version), handle, index, caller);
}
