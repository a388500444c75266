/* What the dynamic linker has loaded, read from memory: the only way to a library's symbols that no other library can
 * stand in. No heap, no errno. */
#ifndef HM_VGPU_ELF_H
#define HM_VGPU_ELF_H

#include <stdbool.h>
#include <stdint.h>

struct elf_object {
	uintptr_t base, low, high; /* load address, mapped range */
	const char *path, *soname; /* soname "" where there is none */
	const void *symbols, *gnu_hash, *hash;
	const char *strings;
};

bool elf_find_soname(const char *soname, struct elf_object *out);
bool elf_find_address(uintptr_t address, struct elf_object *out);
/* The first object in link order, behind the one that contains `address`, that defines `name`. `skip`: an address in an
 * object that does not count. */
bool elf_find_next(uintptr_t address, uintptr_t skip, const char *name, struct elf_object *out);
/* The address of a function that the object defines, or NULL. */
void *elf_symbol(const struct elf_object *o, const char *name);

static inline bool elf_contains(const struct elf_object *o, uintptr_t address)
{
	return address >= o->low && address < o->high;
}

#endif
