#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "harness/unit.h"

static struct {
	bool flag;
	uint64_t number;
	const char *text, *choice;
	double scaling;
	struct option_list list;
} values;

static const struct option_spec specs[] = {
	{ .name = "fail-on-init-error",
	  .env = "HM_TEST_FLAG",
	  .kind = OPTION_BOOL,
	  .value = &values.flag,
	  .help = "end where the driver does not answer" },
	{ .name = "cores",
	  .env = "HM_TEST_CORES",
	  .kind = OPTION_U64,
	  .value = &values.number,
	  .min = 1,
	  .max = 1000,
	  .help = "slots of each card" },
	{ .name = "config",
	  .env = "HM_TEST_FILE",
	  .kind = OPTION_TEXT,
	  .value = &values.text,
	  .argument = "PATH",
	  .help = "the file",
	  .alias = "file",
	  .env2 = "HM_TEST_FILE2" },
	{ .name = "scaling", .kind = OPTION_F64, .value = &values.scaling, .max = 10, .help = "times" },
	{ .name = "list",
	  .env = "HM_TEST_LIST",
	  .kind = OPTION_LIST,
	  .value = &values.list,
	  .choices = "a|b|c",
	  .help = "several" },
	{ .name = "binding",
	  .env = "HM_TEST_BINDING",
	  .kind = OPTION_CHOICE,
	  .value = &values.choice,
	  .choices = "late|classic",
	  .help = "how" },
};

enum { ARGS = 6 };

static int parse(const char *const *args, int *first, struct hm_err *e)
{
	char *argv[ARGS + 2] = { (char *)(uintptr_t) "prog" };
	int argc = 1;

	for (; *args != NULL && argc <= ARGS; args++)
		argv[argc++] = (char *)(uintptr_t)*args;
	return options_parse(specs, HM_COUNT(specs), argc, argv, first, e);
}

static int defaults(void **state)
{
	(void)state;
	values.flag = true;
	values.number = 4;
	values.text = "/etc/default";
	values.choice = "late";
	values.scaling = 1;
	values.list = (struct option_list) { "a" };
	unsetenv("HM_TEST_FILE");
	unsetenv("HM_TEST_FILE2");
	unsetenv("HM_TEST_LIST");
	unsetenv("HM_TEST_FLAG");
	unsetenv("HM_TEST_CORES");
	unsetenv("HM_TEST_BINDING");
	return 0;
}

static void flags_set_values(void **state)
{
	const char *const args[] = {
		"--cores=8", "--config", "x.yaml", "--binding=classic", "--fail-on-init-error=false", NULL
	};
	struct hm_err e;
	int first = 0;

	(void)state;
	assert_int_equal(parse(args, &first, &e), OPTIONS_RUN);
	assert_int_equal(values.number, 8);
	assert_string_equal(values.text, "x.yaml");
	assert_string_equal(values.choice, "classic");
	assert_false(values.flag);
	assert_int_equal(first, 6);
}

static void nothing_given_keeps_the_defaults(void **state)
{
	const char *const args[] = { NULL };
	struct hm_err e;

	(void)state;
	assert_int_equal(parse(args, NULL, &e), OPTIONS_RUN);
	assert_true(values.flag);
	assert_int_equal(values.number, 4);
	assert_string_equal(values.text, "/etc/default");
	assert_string_equal(values.choice, "late");
}

static void a_flag_wins_over_the_environment(void **state)
{
	const char *const args[] = { "--cores", "9", NULL };
	struct hm_err e;

	(void)state;
	setenv("HM_TEST_CORES", "7", 1);
	setenv("HM_TEST_BINDING", "classic", 1);
	setenv("HM_TEST_FLAG", "", 1); /* empty: as if it were not there */
	assert_int_equal(parse(args, NULL, &e), OPTIONS_RUN);
	assert_int_equal(values.number, 9);
	assert_string_equal(values.choice, "classic");
	assert_true(values.flag);
}

static void booleans(void **state)
{
	static const struct {
		const char *arg;
		bool want;
	} cases[] = { { "--fail-on-init-error", true },        { "--fail-on-init-error=true", true },
		      { "--fail-on-init-error=TRUE", true },   { "--fail-on-init-error=1", true },
		      { "--fail-on-init-error=false", false }, { "--fail-on-init-error=0", false } };
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		const char *const args[] = { cases[i].arg, NULL };

		values.flag = !cases[i].want;
		assert_int_equal(parse(args, NULL, &e), OPTIONS_RUN);
		assert_int_equal(values.flag, cases[i].want);
	}
}

static void a_wrong_flag_is_named_with_what_is_accepted(void **state)
{
	static const struct {
		const char *args[3];
		const char *want;
	} cases[] = {
		{ { "--cores=0" }, "--cores: \"0\" is not a number between 1 and 1000" },
		{ { "--cores=1001" }, "--cores: \"1001\" is not a number between 1 and 1000" },
		{ { "--cores", "ten" }, "--cores: \"ten\" is not a number between 1 and 1000" },
		{ { "--cores=" }, "--cores: \"\" is not a number between 1 and 1000" },
		{ { "--binding=early" }, "--binding: \"early\" is none of late|classic" },
		{ { "--binding=lat" }, "--binding: \"lat\" is none of late|classic" },
		{ { "--binding=" }, "--binding: \"\" is none of late|classic" },
		{ { "--binding=late|classic" }, "--binding: \"late|classic\" is none of late|classic" },
		{ { "--fail-on-init-error=maybe" }, "--fail-on-init-error: \"maybe\" is neither true nor false" },
		{ { "--config" }, "--config needs a value; see --help" },
		{ { "--nope" }, "unknown option \"--nope\"; see --help" },
		{ { "--nope=3" }, "unknown option \"--nope=3\"; see --help" },
		{ { "-x" }, "unknown option \"-x\"; see --help" },
		{ { "--cores=5", "--nope" }, "unknown option \"--nope\"; see --help" },
	};
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		defaults(NULL);
		assert_int_equal(parse(cases[i].args, NULL, &e), -HM_EINVAL);
		assert_string_equal(e.msg, cases[i].want);
	}
}

static void a_wrong_variable_is_named(void **state)
{
	const char *const args[] = { NULL };
	struct hm_err e;

	(void)state;
	setenv("HM_TEST_CORES", "10 ", 1);
	assert_int_equal(parse(args, NULL, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "environment HM_TEST_CORES: \"10 \" is not a number between 1 and 1000");
}

static void operands_are_left(void **state)
{
	const char *const args[] = { "--cores=5", "gpu", "--binding=x", NULL };
	const char *const dashes[] = { "--", "--cores=5", NULL };
	struct hm_err e;
	int first = 0;

	(void)state;
	assert_int_equal(parse(args, &first, &e), OPTIONS_RUN);
	assert_int_equal(first, 2);
	assert_string_equal(values.choice, "late");
	assert_int_equal(parse(dashes, &first, &e), OPTIONS_RUN);
	assert_int_equal(first, 2);
}

static void help_and_version(void **state)
{
	static const struct {
		const char *arg;
		int want;
	} cases[] = { { "--help", OPTIONS_HELP }, { "-h", OPTIONS_HELP }, { "--version", OPTIONS_VERSION } };
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		const char *const args[] = { cases[i].arg, NULL };

		assert_int_equal(parse(args, NULL, &e), cases[i].want);
	}
}

static void help_lists_every_option_with_its_default(void **state)
{
	int keep = dup(STDOUT_FILENO);
	FILE *f = tmpfile();
	char text[2048];
	size_t n;

	(void)state;
	assert_non_null(f);
	fflush(stdout);
	dup2(fileno(f), STDOUT_FILENO);
	options_print_help("usage: prog [OPTION]...", specs, HM_COUNT(specs));
	fflush(stdout);
	dup2(keep, STDOUT_FILENO);
	close(keep);
	rewind(f);
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	fclose(f);
	assert_non_null(strstr(text, "usage: prog [OPTION]...\n\nOptions:\n"));
	assert_non_null(strstr(text,
			       "  --fail-on-init-error[=true|false]\n        end where the driver does not answer "
			       "(default true) [HM_TEST_FLAG]\n"));
	assert_non_null(strstr(text, "  --cores N\n        slots of each card (default 4) [HM_TEST_CORES]\n"));
	assert_non_null(strstr(text,
			       "  --config PATH\n        the file; also --file (default /etc/default) [HM_TEST_FILE, "
			       "HM_TEST_FILE2]\n  --scaling N\n        times (default 1)\n"));
	assert_non_null(strstr(text, "  --binding late|classic\n        how (default late) [HM_TEST_BINDING]\n"));
	assert_non_null(strstr(text, "  --help\n"));
}

static void with_one_dash_and_by_another_name(void **state)
{
	const char *const args[] = { "-cores=6", "-fail-on-init-error", "--file", "y" };
	struct hm_err e;

	(void)state;
	assert_int_equal(parse((const char *const[]) { args[0], args[1], args[2], args[3], NULL }, NULL, &e),
			 OPTIONS_RUN);
	assert_int_equal(values.number, 6);
	assert_true(values.flag);
	assert_string_equal(values.text, "y");
	assert_int_equal(parse((const char *const[]) { "--file", NULL }, NULL, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "--file needs a value; see --help");
	/* No abbreviations: what is short for one flag today is ambiguous tomorrow. */
	assert_int_equal(parse((const char *const[]) { "--core=6", NULL }, NULL, &e), -HM_EINVAL);
}

static void the_second_variable_counts_where_the_first_is_empty(void **state)
{
	const char *const none[] = { NULL };
	struct hm_err e;

	(void)state;
	setenv("HM_TEST_FILE2", "second", 1);
	assert_int_equal(parse(none, NULL, &e), OPTIONS_RUN);
	assert_string_equal(values.text, "second");
	setenv("HM_TEST_FILE", "first", 1);
	assert_int_equal(parse(none, NULL, &e), OPTIONS_RUN);
	assert_string_equal(values.text, "first");
}

static void decimals(void **state)
{
	static const struct {
		const char *text;
		double want; /* below 0: refused */
	} rows[] = { { "1", 1 },    { "0.29", 0.29 }, { "1e1", 10 }, { "10.1", -1 }, { "-1", -1 }, { "nan", -1 },
		     { "inf", -1 }, { "0x1", -1 },    { " 1", -1 },  { "1 ", -1 },   { "", -1 },   { "1,5", -1 } };
	struct hm_err e;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		char arg[64];

		snprintf(arg, sizeof arg, "--scaling=%s", rows[i].text);
		values.scaling = -1;
		assert_int_equal(parse((const char *const[]) { arg, NULL }, NULL, &e),
				 rows[i].want < 0 ? -HM_EINVAL : OPTIONS_RUN);
		assert_true(values.scaling == rows[i].want);
	}
}

static void lists(void **state)
{
	struct hm_err e;

	(void)state;
	setenv("HM_TEST_LIST", "b,c", 1);
	assert_int_equal(parse((const char *const[]) { NULL }, NULL, &e), OPTIONS_RUN);
	assert_string_equal(values.list.text, "b,c");
	assert_true(option_list_has(&values.list, "c") && !option_list_has(&values.list, "a"));
	assert_false(option_list_has(&values.list, "b,c") || option_list_has(&values.list, ""));
	assert_int_equal(parse((const char *const[]) { "--list=a", "--list", "c", NULL }, NULL, &e), OPTIONS_RUN);
	assert_string_equal(values.list.text, "a,c");
	assert_int_equal(parse((const char *const[]) { "--list=a,d", NULL }, NULL, &e), -HM_EINVAL);
	assert_string_equal(e.msg, "--list: \"d\" is none of a|b|c");
	assert_int_equal(parse((const char *const[]) { "--list=a,,b", NULL }, NULL, &e), -HM_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(flags_set_values, defaults),
		cmocka_unit_test_setup(nothing_given_keeps_the_defaults, defaults),
		cmocka_unit_test_setup(a_flag_wins_over_the_environment, defaults),
		cmocka_unit_test_setup(booleans, defaults),
		cmocka_unit_test_setup(a_wrong_flag_is_named_with_what_is_accepted, defaults),
		cmocka_unit_test_setup(a_wrong_variable_is_named, defaults),
		cmocka_unit_test_setup(operands_are_left, defaults),
		cmocka_unit_test_setup(help_and_version, defaults),
		cmocka_unit_test_setup(help_lists_every_option_with_its_default, defaults),
		cmocka_unit_test_setup(with_one_dash_and_by_another_name, defaults),
		cmocka_unit_test_setup(the_second_variable_counts_where_the_first_is_empty, defaults),
		cmocka_unit_test_setup(decimals, defaults),
		cmocka_unit_test_setup(lists, defaults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
