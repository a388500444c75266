#include "vgpu/elf.h"

#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/macros.h"

static void finds_objects_and_their_functions(void **state)
{
	static const char *const names[] = { "fwrite", "mmap", "getpid", "qsort", "dlsym" };
	struct elf_object libc;
	void *handle = dlopen("libc.so.6", RTLD_NOW);

	(void)state;
	assert_true(elf_find_soname("libc.so.6", &libc));
	assert_string_equal(libc.soname, "libc.so.6");
	for (size_t i = 0; i < HM_COUNT(names); i++) {
		void *p = elf_symbol(&libc, names[i]);

		assert_non_null(p);
		assert_ptr_equal(p, dlsym(handle, names[i]));
		assert_true(elf_contains(&libc, (uintptr_t)p));
	}
	assert_null(elf_symbol(&libc, "no_such_function"));
	assert_null(elf_symbol(&libc, ""));
	assert_null(elf_symbol(&libc, "environ")); /* not a function */
	dlclose(handle);
}

static void finds_by_address_and_in_order(void **state)
{
	struct elf_object o;
	uintptr_t here = (uintptr_t)&finds_by_address_and_in_order, libc;

	(void)state;
	assert_true(elf_find_address(here, &o));
	assert_true(elf_contains(&o, here));
	assert_false(elf_find_address(8, &o));
	assert_true(elf_find_next(here, 0, "getpid", &o));
	assert_string_equal(o.soname, "libc.so.6");
	libc = o.low;
	assert_false(elf_find_next(here, libc, "getpid", &o));
	assert_false(elf_find_next(libc, 0, "getpid", &o));
	assert_false(elf_find_soname("libcuda.so.1", &o));
}

struct seen {
	unsigned objects, slots;
	const char *soname;
	uintptr_t value;
};

static void see_object(const struct elf_object *o, void *arg)
{
	struct seen *s = arg;

	s->objects++;
	if (strstr(o->path, "libanl.so.1") != NULL)
		s->soname = "libanl.so.1";
}

static void sees_what_came_since(void **state)
{
	struct seen none = { 0 }, some = { 0 }, all = { 0 };
	struct elf_moment before, after;
	void *handle;

	(void)state;
	elf_now(&before);
	elf_each_since(&before, see_object, &none);
	handle = dlopen("libanl.so.1", RTLD_NOW);
	assert_non_null(handle);
	elf_each_since(&before, see_object, &some);
	elf_each_since(&ELF_NEVER, see_object, &all);
	elf_now(&after);
	dlclose(handle);
	assert_int_equal(none.objects, 0);
	assert_int_equal(some.objects, after.loaded - before.loaded);
	assert_string_equal(some.soname, "libanl.so.1");
	assert_true(all.objects >= 3 + some.objects);
}

static void *volatile in_data = (void *)qsort_r;

/* The other slot of that name, of the procedure linkage table, may not be bound yet. */
static void see_slot(uintptr_t *slot, const char *name, void *arg)
{
	struct seen *s = arg;

	s->slots++;
	if (strcmp(name, "qsort_r") == 0 && (void *)slot == (void *)&in_data)
		s->value = *slot;
}

static void sees_the_slots_of_an_object(void **state)
{
	struct elf_object o;
	struct seen s = { 0 };

	(void)state;
	assert_true(elf_find_address((uintptr_t)&in_data, &o));
	elf_each_slot(&o, see_slot, &s);
	assert_true(s.slots > 5);
	assert_int_equal(s.value, (uintptr_t)in_data);
	assert_int_equal(s.value, (uintptr_t)dlsym(RTLD_DEFAULT, "qsort_r"));
	assert_true(o.relro_low % 4096 == 0 && o.relro_low < o.relro_high);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_objects_and_their_functions),
		cmocka_unit_test(finds_by_address_and_in_order),
		cmocka_unit_test(sees_what_came_since),
		cmocka_unit_test(sees_the_slots_of_an_object),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
