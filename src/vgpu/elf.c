#include "vgpu/elf.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { SLOT_PLT = R_X86_64_JUMP_SLOT, SLOT_GOT = R_X86_64_GLOB_DAT, SLOT_DATA = R_X86_64_64 };
#elif defined(__aarch64__)
enum { SLOT_PLT = R_AARCH64_JUMP_SLOT, SLOT_GOT = R_AARCH64_GLOB_DAT, SLOT_DATA = R_AARCH64_ABS64 };
#endif

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
		case DT_RELA: o->relocations.rows = dynamic_pointer(o->base, d->d_un.d_ptr); break;
		case DT_RELASZ: o->relocations.bytes = d->d_un.d_val; break;
		case DT_JMPREL: o->plt_relocations.rows = dynamic_pointer(o->base, d->d_un.d_ptr); break;
		case DT_PLTRELSZ: o->plt_relocations.bytes = d->d_un.d_val; break;
		case DT_TEXTREL: o->has_text_relocations = true; break;
		case DT_FLAGS: o->has_text_relocations |= (d->d_un.d_val & DF_TEXTREL) != 0; break;
		case DT_RPATH:
		case DT_RUNPATH: o->has_search_path = true; break;
		default: break;
		}
	}
	o->soname = soname != 0 && o->strings != NULL ? o->strings + soname : "";
}

/* As glibc protects it: a page that it does not fill to the end is left writable. */
static void read_relro(struct elf_object *o, uintptr_t from, uintptr_t to)
{
	uintptr_t page = (uintptr_t)getpagesize();

	o->relro_low = from / page * page;
	o->relro_high = to / page * page;
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
		if (p->p_type == PT_GNU_RELRO)
			read_relro(o, from, to);
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

struct moment_search {
	struct elf_moment now;
	const struct elf_moment *since; /* NULL: only looks */
	bool passed;                    /* the newest of then */
	void (*visit)(const struct elf_object *o, void *arg);
	void *arg;
};

/* The linker appends what it loads. */
static int by_moment(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct moment_search *s = arg;
	struct elf_object o;

	(void)size;
	read_object(info, &o);
	s->now = (struct elf_moment) { info->dlpi_adds, info->dlpi_subs, o.low };
	if (s->since == NULL)
		return 0;
	if (s->now.loaded == s->since->loaded)
		return 1;
	if (s->passed || s->now.unloaded != s->since->unloaded)
		s->visit(&o, s->arg);
	s->passed = s->passed || o.low == s->since->newest;
	return 0;
}

void elf_now(struct elf_moment *out)
{
	struct moment_search s = { .since = NULL };

	dl_iterate_phdr(by_moment, &s);
	*out = s.now;
}

void elf_each_since(const struct elf_moment *since, void (*visit)(const struct elf_object *o, void *arg), void *arg)
{
	struct moment_search s = { .since = since, .visit = visit, .arg = arg };

	dl_iterate_phdr(by_moment, &s);
}

static void each_slot_of(const struct elf_object *o, const struct elf_table *t,
			 void (*visit)(uintptr_t *slot, const char *name, void *arg), void *arg)
{
	const ElfW(Rela) *rows = t->rows;

	for (size_t i = 0; i < t->bytes / sizeof *rows; i++) {
		unsigned type = (unsigned)ELF64_R_TYPE(rows[i].r_info);
		size_t symbol = ELF64_R_SYM(rows[i].r_info);

		if (type != SLOT_PLT && type != SLOT_GOT &&
		    (type != SLOT_DATA || rows[i].r_addend != 0 || o->has_text_relocations))
			continue;
		visit((uintptr_t *)(o->base + rows[i].r_offset), // NOLINT
		      o->strings + ((const ElfW(Sym) *)o->symbols)[symbol].st_name, arg);
	}
}

void elf_each_slot(const struct elf_object *o, void (*visit)(uintptr_t *slot, const char *name, void *arg), void *arg)
{
	if (o->symbols == NULL || o->strings == NULL)
		return;
	if (o->relocations.rows != NULL)
		each_slot_of(o, &o->relocations, visit, arg);
	if (o->plt_relocations.rows != NULL)
		each_slot_of(o, &o->plt_relocations, visit, arg);
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
