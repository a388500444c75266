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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_objects_and_their_functions),
		cmocka_unit_test(finds_by_address_and_in_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
