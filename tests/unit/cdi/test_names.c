#include "cdi/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/macros.h"

struct name_case {
	const char *text;
	bool ok;
};

static void check(bool (*f)(const char *), const struct name_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (f(cases[i].text) != cases[i].ok)
			fail_msg("\"%s\" was %s", cases[i].text, cases[i].ok ? "refused" : "taken");
	}
}

/* The table of the CDI specification, "Vendor, class and device names". */
static void all(void **state)
{
	static const struct name_case kinds[] = {
		{ "hami.io/vgpu", true }, { "nvidia.com/gpu", true },
		{ "a/b", true },          { "v-1_2.x/c-1_2", true },
		{ "vgpu", false },        { "/vgpu", false },
		{ "hami.io/", false },    { "1a/b", false },
		{ "a/1b", false },        { "a-/b", false },
		{ "a/b/c", false },       { "a b/c", false },
		{ "a/b=c", false },       { "", false },
	};
	static const struct name_case devices[] = {
		{ "v.7", true },  { "0", true },    { "all", true },  { "GPU-1a2b::0", true },
		{ "a", true },    { "", false },    { ".v", false },  { "v.", false },
		{ "a=b", false }, { "a/b", false }, { "a b", false }, { "\xc3\xa4", false },
	};
	static const struct name_case envs[] = { { "A", true }, { "a b", true }, { "", false }, { "A=", false } };
	static const struct name_case permissions[] = {
		{ "", true }, { "rw", true }, { "rwm", true }, { "rx", false }
	};
	static const struct name_case hooks[] = {
		{ "createContainer", true }, { "poststop", true }, { "", false }, { "createcontainer", false }
	};

	(void)state;
	check(cdi_kind_ok, kinds, HM_COUNT(kinds));
	check(cdi_device_name_ok, devices, HM_COUNT(devices));
	check(cdi_env_name_ok, envs, HM_COUNT(envs));
	check(cdi_permissions_ok, permissions, HM_COUNT(permissions));
	check(cdi_hook_name_ok, hooks, HM_COUNT(hooks));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(all) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
