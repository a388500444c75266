/* What the dynamic linker has loaded, read from memory: the only way to a library's symbols that no other library can
 * stand in. No heap, no errno. */
#ifndef HM_VGPU_ELF_H
#define HM_VGPU_ELF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_table {
	const void *rows;
	size_t bytes;
};

struct elf_object {
	uintptr_t base, low, high; /* load address, mapped range */
	const char *path, *soname; /* soname "" where there is none */
	const void *symbols, *gnu_hash, *hash;
	const char *strings;
	struct elf_table relocations, plt_relocations;
	uintptr_t relro_low, relro_high; /* whole pages, read-only once the object is loaded; none: both 0 */
	bool has_text_relocations;
	bool has_search_path; /* RPATH or RUNPATH: for the libraries that it opens by a bare name */
};

bool elf_find_soname(const char *soname, struct elf_object *out);
bool elf_find_address(uintptr_t address, struct elf_object *out);
/* The first object in link order, behind the one that contains `address`, that defines `name`. `skip`: an address in an
 * object that does not count. */
bool elf_find_next(uintptr_t address, uintptr_t skip, const char *name, struct elf_object *out);
/* The address of a function that the object defines, or NULL. */
void *elf_symbol(const struct elf_object *o, const char *name);

/* A moment in the life of the process: which objects came later? */
struct elf_moment {
	uint64_t loaded, unloaded; /* objects, ever */
	uintptr_t newest;
};
/* Before all objects. */
#define ELF_NEVER ((struct elf_moment) { .unloaded = UINT64_MAX })
void elf_now(struct elf_moment *out);
/* Visits the objects that were loaded since, and perhaps older ones where any have been unloaded since. One thread at a
 * time, and no object goes away meanwhile: `visit` may not open, close or look up, nor wait for anyone who does. */
void elf_each_since(const struct elf_moment *since, void (*visit)(const struct elf_object *o, void *arg), void *arg);

/* Visits the places in the object that hold a function's address, once it is bound: the global offset table, and data
 * that begins with a function's address. */
void elf_each_slot(const struct elf_object *o, void (*visit)(uintptr_t *slot, const char *name, void *arg), void *arg);

static inline bool elf_contains(const struct elf_object *o, uintptr_t address)
{
	return address >= o->low && address < o->high;
}

#endif
