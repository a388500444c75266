#include "sched/options/ignored.h"

#include <string.h>

#include "harness/unit.h"

#define ARGS(...) ((const char *const[]) { "hami-scheduler", __VA_ARGS__, NULL })

static const struct {
	const char *const *args;
	const char *kept, *ignored;
} cases[] = {
	/* What HAMi's chart passes. */
	{ ARGS("--debug", "-v=4", "--enable-ascend=true"), "-v=4", "--debug, --enable-ascend" },
	{ ARGS("--logtostderr", "--vmodule", "a=4", "--http_bind=:1"), "--http_bind=:1", "--logtostderr, --vmodule" },
	{ ARGS("--cambricon-mlu-name", "x", "--metax-vcore=y", "simulate"), "simulate",
	  "--cambricon-mlu-name, --metax-vcore" },
	/* A flag that takes a value, with none behind it. */
	{ ARGS("--kunlun-name", "--v=1"), "--v=1", "--kunlun-name" },
	{ ARGS("--log_file"), "", "--log_file" },
	/* One dash, as Go's flag package has it; a boolean never takes the next word. */
	{ ARGS("-alsologtostderr", "version"), "version", "--alsologtostderr" },
	/* Not ours to pass over: misspelt ones, three dashes, words. */
	{ ARGS("--debugg", "---debug", "debug", "--dcu", "-"), "--debugg ---debug debug --dcu -", "" },
};

static void test_drop(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		char *argv[8], *out[9];
		hm_auto_str kept = { 0 }, ignored = { 0 };
		int argc = 0, n;

		for (; cases[i].args[argc] != NULL; argc++)
			argv[argc] = (char *)(uintptr_t)cases[i].args[argc];
		n = ignored_flags_drop(argc, argv, out, &ignored);
		assert_string_equal(out[0], "hami-scheduler");
		assert_null(out[n]);
		for (int k = 1; k < n; k++)
			str_addf(&kept, "%s%s", k > 1 ? " " : "", out[k]);
		assert_string_equal(str_text(&kept), cases[i].kept);
		assert_string_equal(str_text(&ignored), cases[i].ignored);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_drop) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
