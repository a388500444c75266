#include "vgpu/elf.h"

#include <elf.h>
#include <link.h>
#include <string.h>

/* glibc adds the load address to the dynamic section's pointers in place, other loaders do not. */
static const void *dynamic_pointer(uintptr_t base, ElfW(Addr) value)
{
	return (const void *)(value < base ? base + value : value); // NOLINT
}

static void read_dynamic(struct elf_object *o, const ElfW(Dyn) * d)
{
	ElfW(Xword) soname = 0;

	for (; d->d_tag != DT_NULL; d++) {
		switch (d->d_tag) {
		case DT_SYMTAB: o->symbols = dynamic_pointer(o->base, d->d_un.d_ptr); break;
		case DT_STRTAB: o->strings = dynamic_pointer(o->base, d->d_un.d_ptr); break;
		case DT_GNU_HASH: o->gnu_hash = dynamic_pointer(o->base, d->d_un.d_ptr); break;
		case DT_HASH: o->hash = dynamic_pointer(o->base, d->d_un.d_ptr); break;
		case DT_SONAME: soname = d->d_un.d_val; break;
		default: break;
		}
	}
	o->soname = soname != 0 && o->strings != NULL ? o->strings + soname : "";
}

static void read_object(const struct dl_phdr_info *info, struct elf_object *o)
{
	const ElfW(Dyn) *dynamic = NULL;

	*o = (struct elf_object) { .base = info->dlpi_addr, .low = UINTPTR_MAX, .path = info->dlpi_name, .soname = "" };
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = o->base + p->p_vaddr, to = from + p->p_memsz;

		if (p->p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)from; // NOLINT
		if (p->p_type != PT_LOAD)
			continue;
		o->low = from < o->low ? from : o->low;
		o->high = to > o->high ? to : o->high;
	}
	if (dynamic != NULL)
		read_dynamic(o, dynamic);
}

struct search {
	struct elf_object *out;
	const char *soname, *name;
	uintptr_t address, skip;
	bool passed; /* the object that contains `address` */
};

static int by_soname(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	read_object(info, s->out);
	return strcmp(s->out->soname, s->soname) == 0 && s->out->symbols != NULL;
}

static int by_address(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	read_object(info, s->out);
	return elf_contains(s->out, s->address);
}

static int by_order(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct search *s = arg;

	(void)size;
	read_object(info, s->out);
	if (!s->passed) {
		s->passed = elf_contains(s->out, s->address);
		return 0;
	}
	return !elf_contains(s->out, s->skip) && elf_symbol(s->out, s->name) != NULL;
}

bool elf_find_soname(const char *soname, struct elf_object *out)
{
	struct search s = { .out = out, .soname = soname };

	return dl_iterate_phdr(by_soname, &s) != 0;
}

bool elf_find_address(uintptr_t address, struct elf_object *out)
{
	struct search s = { .out = out, .address = address };

	return dl_iterate_phdr(by_address, &s) != 0;
}

bool elf_find_next(uintptr_t address, uintptr_t skip, const char *name, struct elf_object *out)
{
	struct search s = { .out = out, .address = address, .skip = skip, .name = name };

	return dl_iterate_phdr(by_order, &s) != 0;
}

static void *defined(const struct elf_object *o, uint32_t at, const char *name)
{
	const ElfW(Sym) *symbol = (const ElfW(Sym) *)o->symbols + at;
	unsigned type = ELF64_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && type != STT_NOTYPE))
		return NULL;
	if (strcmp(o->strings + symbol->st_name, name) != 0)
		return NULL;
	return (void *)(o->base + symbol->st_value); // NOLINT
}

/* The hash tables are as the ELF specification and binutils' (GNU) lay them out. */
static void *by_gnu_hash(const struct elf_object *o, const char *name)
{
	const uint32_t *head = o->gnu_hash;
	uint32_t buckets = head[0], first = head[1], bloom_words = head[2], hash = 5381;
	const uint32_t *bucket = head + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
	const uint32_t *chain = bucket + buckets;

	for (const char *c = name; *c != '\0'; c++)
		hash = hash * 33 + (unsigned char)*c;
	for (uint32_t at = buckets != 0 ? bucket[hash % buckets] : 0; at >= first && at != 0; at++) {
		uint32_t seen = chain[at - first];
		void *p = (seen | 1) == (hash | 1) ? defined(o, at, name) : NULL;

		if (p != NULL || (seen & 1) != 0)
			return p;
	}
	return NULL;
}

static void *by_hash(const struct elf_object *o, const char *name)
{
	const uint32_t *head = o->hash;
	uint32_t buckets = head[0], hash = 0;

	for (const char *c = name; *c != '\0'; c++) {
		hash = (hash << 4) + (unsigned char)*c;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	for (uint32_t at = buckets != 0 ? head[2 + hash % buckets] : 0; at != 0; at = head[2 + buckets + at]) {
		void *p = defined(o, at, name);

		if (p != NULL)
			return p;
	}
	return NULL;
}

void *elf_symbol(const struct elf_object *o, const char *name)
{
	if (o->symbols == NULL || o->strings == NULL)
		return NULL;
	if (o->gnu_hash != NULL)
		return by_gnu_hash(o, name);
	return o->hash != NULL ? by_hash(o, name) : NULL;
}
