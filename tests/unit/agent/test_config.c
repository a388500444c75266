#include "agent/options/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/options/options.h"
#include "base/log.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/json.h"

static struct option_spec table[AGENT_OPTION_COUNT];
static struct agent_options options;
static unsigned warnings;

static void count_warning(const char *line, size_t n, void *arg)
{
	(void)line, (void)n, (void)arg;
	warnings++;
}

static int setup(void **state)
{
	agent_options_init(&options, table);
	options.texts = texts_new();
	options.told = texts_new();
	warnings = 0;
	log_set_sink(count_warning, NULL);
	return temp_setup(state);
}

static int teardown(void **state)
{
	agent_options_fini(&options);
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

static int parse(const char *text, struct hm_err *e)
{
	const struct config_target to = { table, AGENT_OPTION_COUNT, options.texts, options.told, false };

	return config_parse(text, strlen(text), &to, e);
}

static void keys_are_the_flags_in_either_spelling(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(parse("# a comment\ncores-per-device: 8\nmemoryMbPerCore: 2048\nslicing: dynamic\n"
			       "enable-topology: false\nfail-on-init-error: \"true\"\nstateDir: \"/x y\"\n"
			       "healthz-bind-address: :8080\n",
			       &e),
			 0);
	assert_int_equal(options.cores_per_device, 8);
	assert_int_equal(options.memory_mb_per_core, 2048);
	assert_string_equal(options.slicing, "dynamic");
	assert_false(options.enable_topology);
	assert_true(options.fail_on_init_error);
	assert_string_equal(options.state_dir, "/x y");
	assert_string_equal(options.healthz_bind_address, ":8080");
	assert_int_equal(warnings, 0);
}

static void nothing_sets_nothing(void **state)
{
	static const char *const texts[] = { "", "# only a comment\n", "---\n", "{}\n", "cores-per-device:\n" };
	struct hm_err e = { 0 };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(texts); i++) {
		if (parse(texts[i], &e) < 0)
			fail_msg("\"%s\": %s", texts[i], e.msg);
		assert_int_equal(options.cores_per_device, 4);
	}
}

static void an_unknown_key_is_warned_of_and_left_out(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	for (int i = 0; i < 2; i++) /* once, however often the file is read */
		assert_int_equal(parse("future: {deep: [1, 2, {x: y}]}\ncores-per-device: 2\n", &e), 0);
	assert_int_equal(warnings, 1);
	assert_int_equal(options.cores_per_device, 2);
}

static void bad_values_name_line_key_and_reason(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "v: 1\n\ndeviceSplitCount: ten\n",
		  "line 3: deviceSplitCount: \"ten\" is not a number between 1 and 1000" },
		{ "cores-per-device: 1001\n", "line 1: cores-per-device: \"1001\" is not a number between 1 and 1000" },
		{ "cores-per-device: -1\n", "line 1: cores-per-device: \"-1\" is not a number between 1 and 1000" },
		{ "cores-per-device: 2.5\n", "line 1: cores-per-device: \"2.5\" is not a number between 1 and 1000" },
		{ "cores-per-device: [4]\n", "line 1: cores-per-device: is not a single value" },
		{ "slicing: static\nbinding: maybe\n", "line 2: binding: \"maybe\" is none of auto|late|classic" },
		{ "enableTopology: maybe\n", "line 1: enableTopology: \"maybe\" is neither true nor false" },
		{ "state-dir: 5\n", "line 1: state-dir: a number where text is wanted; put it in quotes" },
		{ "cores-per-device: 4\ncoresPerDevice: 5\n",
		  "line 2: coresPerDevice: --cores-per-device stands here for the second time" },
		{ "- a\n- b\n", "line 1: expected \"key: value\" lines" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct hm_err e = { 0 };

		assert_true(parse(rows[i].text, &e) < 0);
		assert_string_equal(e.msg, rows[i].want);
	}
}

static void a_file_is_named(void **state)
{
	struct hm_err e = { 0 };
	char want[512];

	(void)state;
	const struct config_target to = { table, AGENT_OPTION_COUNT, options.texts, options.told, false };

	temp_write("c.yaml", "v: 11\n");
	assert_true(config_read(temp_path("c.yaml"), &to, &e) < 0);
	snprintf(want, sizeof want, "read config %s: line 1: v: \"11\" is not a number between 0 and 10",
		 temp_path("c.yaml"));
	assert_string_equal(e.msg, want);
	assert_int_equal(config_read(temp_path("none"), &to, &e), -HM_ENOTFOUND);
}

static int parse_scenario(void *arg)
{
	hm_auto(texts) *texts = texts_new();
	hm_auto(texts) *told = texts_new();
	const struct config_target to = { table, AGENT_OPTION_COUNT, texts, told, false };
	struct hm_err e = { 0 };

	return texts == NULL || told == NULL ? -HM_ENOMEM : config_parse(arg, strlen(arg), &to, &e);
}

static void memory_that_is_short_is_an_error(void **state)
{
	static char text[] = "cores-per-device: 8\nslicing: dynamic\nstateDir: \"/x y\"\n";
	struct cJSON_Hooks hooks = { malloc, free };

	(void)state;
	cJSON_InitHooks(&hooks); /* its allocations fail too */
	sweep_check("config", parse_scenario, text);
	cJSON_InitHooks(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(keys_are_the_flags_in_either_spelling),
		TEST(nothing_sets_nothing),
		TEST(an_unknown_key_is_warned_of_and_left_out),
		TEST(bad_values_name_line_key_and_reason),
		TEST(a_file_is_named),
		TEST(memory_that_is_short_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
