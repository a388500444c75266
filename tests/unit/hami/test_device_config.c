#include "hami/device_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"

static unsigned warnings;
static char last_warning[512];

static void count_warning(const char *line, size_t n, void *arg)
{
	(void)arg;
	warnings++;
	snprintf(last_warning, sizeof last_warning, "%.*s", (int)n, line);
}

static int setup(void **state)
{
	warnings = 0;
	last_warning[0] = '\0';
	log_set_sink(count_warning, NULL);
	return temp_setup(state);
}

static int teardown(void **state)
{
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

static struct device_config *parse(const char *text, struct hm_err *e)
{
	hm_auto(texts) *told = texts_new();
	struct device_config *c = NULL;

	if (device_config_parse(text, strlen(text), "f", told, &c, e) < 0)
		assert_null(c);
	return c;
}

/* The section as HAMi's chart 2.10 writes it, and another vendor's. */
static const char chart[] = "nvidia:\n"
			    "  resourceCountName: nvidia.com/gpu\n"
			    "  resourceMemoryName: nvidia.com/gpumem\n"
			    "  resourceMemoryPercentageName: nvidia.com/gpumem-percentage\n"
			    "  resourceCoreName: nvidia.com/gpucores\n"
			    "  resourcePriorityName: nvidia.com/priority\n"
			    "  overwriteEnv: false\n"
			    "  defaultMemory: 0\n"
			    "  defaultCores: 0\n"
			    "  defaultGPUNum: 1\n"
			    "  memoryFactor: 1\n"
			    "  deviceSplitCount: 7\n"
			    "  deviceMemoryScaling: 1.8\n"
			    "  deviceCoreScaling: 2\n"
			    "  preConfiguredDeviceMemory: 0\n"
			    "  gpuCorePolicy: default\n"
			    "  libCudaLogLevel: 3\n"
			    "  runtimeClassName: \"\"\n"
			    "  migProfileAllowlist:\n"
			    "  - models: [ \"A30\" ]\n"
			    "    profiles: [ \"1g.6gb\", \"2g.12gb\", \"4g.24gb\" ]\n"
			    "  - models: [ \"A100-SXM4-40GB\", \"A100-40GB-PCIe\" ]\n"
			    "    profiles:\n"
			    "    - 1g.5gb\n"
			    "    - 1g.10gb+me\n"
			    "cambricon:\n"
			    "  resourceCountName: cambricon.com/vmlu\n";

static void the_charts_file(void **state)
{
	hm_auto(device_config) *c = parse(chart, NULL);

	(void)state;
	assert_non_null(c);
	assert_string_equal(c->resource_count, "nvidia.com/gpu");
	assert_string_equal(c->resource_priority, "nvidia.com/priority");
	assert_int_equal(c->split_count, 7);
	assert_true(c->memory_scaling == 1.8 && c->core_scaling == 2);
	assert_string_equal(c->libcuda_log_level, "3");
	assert_false(c->numa_topology || c->disable_core_limit);
	assert_int_equal(c->mig.count, 2);
	assert_string_equal(c->mig.items[0].models[0], "A30");
	assert_int_equal(c->mig.items[0].profile_count, 3);
	assert_int_equal(c->mig.items[1].model_count, 2);
	assert_string_equal(c->mig.items[1].profiles[1], "1g.10gb+me");
	assert_int_equal(warnings, 0);
}

/* Reference 11.9: without these keys HAMi's plugin ends. */
static void absent_keys_have_the_charts_defaults(void **state)
{
	static const char *const texts[] = { "nvidia: {}\n", "nvidia:\n  deviceSplitCount:\n",
					     "nvidia: {resourceCountName: \"\"}\n" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(texts); i++) {
		hm_auto(device_config) *c = parse(texts[i], NULL);

		assert_non_null(c);
		assert_string_equal(c->resource_count, "nvidia.com/gpu");
		assert_string_equal(c->resource_memory, "nvidia.com/gpumem");
		assert_int_equal(c->split_count, 10);
		assert_true(c->memory_scaling == 1 && c->core_scaling == 1);
		assert_string_equal(c->libcuda_log_level, "1");
		assert_int_equal(c->default_gpu_count, 1);
		assert_int_equal(c->mig.count, 0);
	}
	assert_int_equal(warnings, 0);
}

static void nvidias_half(void **state)
{
	hm_auto(device_config) *c = parse("version: v1\n"
					  "flags: {migStrategy: single}\n"
					  "resources: {gpus: []}\n"
					  "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}\n"
					  "imex: {channelIDs: [0]}\n"
					  "nvidia: {}\n",
					  NULL);

	(void)state;
	assert_non_null(c);
	assert_string_equal(cJSON_GetObjectItem(c->flags, "migStrategy")->valuestring, "single");
	assert_non_null(c->imex);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(last_warning, "key=sharing"));
}

static void what_is_unknown_is_said_once(void **state)
{
	hm_auto(texts) *told = texts_new();
	static const char text[] = "nvidia:\n  deviceSplitcount: 3\n";

	(void)state;
	for (int i = 0; i < 2; i++) {
		hm_auto(device_config) *c = NULL;

		assert_int_equal(device_config_parse(text, sizeof text - 1, "f", told, &c, NULL), 0);
		assert_int_equal(c->split_count, 10); /* the case of a key counts */
	}
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(last_warning, "deviceSplitcount"));
	{
		hm_auto(device_config) *c = parse("nvida: {deviceSplitCount: 3}\n", NULL);

		assert_non_null(c);
		assert_non_null(strstr(last_warning, "there is no such section"));
	}
}

static void bad_values_name_line_and_reason(void **state)
{
	static const struct {
		const char *text, *want;
	} rows[] = {
		{ "nvidia:\n  deviceSplitCount: 0\n",
		  "line 2: nvidia.deviceSplitCount: 0 is not a number between 1 and 1000" },
		{ "nvidia:\n  deviceSplitCount: -1\n",
		  "line 2: nvidia.deviceSplitCount: -1 is not a number between 1 and 1000" },
		{ "nvidia:\n  deviceSplitCount: \"10\"\n",
		  "line 2: nvidia.deviceSplitCount: \"10\" is not a number between 1 and 1000" },
		{ "nvidia:\n\n  deviceMemoryScaling: much\n",
		  "line 3: nvidia.deviceMemoryScaling: \"much\" is not a number between 0 and 100" },
		{ "nvidia:\n  deviceCoreScaling: -0.5\n",
		  "line 2: nvidia.deviceCoreScaling: a number with a fraction is not a number between 0 and 100" },
		{ "nvidia:\n  enableNumaTopology: 1\n", "line 2: nvidia.enableNumaTopology: 1 is not true or false" },
		{ "nvidia:\n  resourceCountName: gpu\n",
		  "line 2: nvidia.resourceCountName: \"gpu\" is not of the form domain/name" },
		{ "nvidia:\n  libCudaLogLevel: \"1 2\"\n",
		  "line 2: nvidia.libCudaLogLevel: \"1 2\" is not a plain word" },
		{ "nvidia:\n  gpuCorePolicy: often\n",
		  "line 2: nvidia.gpuCorePolicy: \"often\" is none of default, force, disable" },
		{ "nvidia:\n  migProfileAllowlist:\n  - models: [A30]\n",
		  "line 3: nvidia.migProfileAllowlist[0].profiles: is missing" },
		{ "nvidia:\n  migProfileAllowlist:\n  - models: []\n    profiles: [1g.6gb]\n",
		  "line 3: nvidia.migProfileAllowlist[0].models: is empty" },
		{ "nvidia:\n  migProfileAllowlist:\n  - models: [A30]\n    profiles: [1g.6gb, 2g]\n",
		  "line 4: nvidia.migProfileAllowlist[0].profiles[1]: \"2g\" is no MIG profile, such as 1g.5gb" },
		{ "nvidia:\n  migProfileAllowlist:\n  - models: [A30]\n    profiles: [g.6gb]\n",
		  "line 4: nvidia.migProfileAllowlist[0].profiles[0]: \"g.6gb\" is no MIG profile, such as 1g.5gb" },
		{ "nvidia: []\n", "line 1: nvidia: a list is not an object" },
		{ "version: v2\nnvidia: {}\n", "line 1: version: \"v2\" is not v1" },
		{ "- nvidia\n", "line 1: expected \"key: value\" lines" },
		{ "", "empty" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct hm_err e = { 0 };

		assert_null(parse(rows[i].text, &e));
		assert_string_equal(e.msg, rows[i].want);
	}
}

/* A list of a list is a good value of no key. */
static void every_key_is_looked_at(void **state)
{
	static const char *const keys[] = {
		"resourceCountName",   "resourceMemoryName",   "resourceMemoryPercentageName",
		"resourceCoreName",    "resourcePriorityName", "overwriteEnv",
		"defaultMemory",       "defaultCores",         "defaultGPUNum",
		"memoryFactor",        "disableCoreLimit",     "gpuCorePolicy",
		"runtimeClassName",    "migProfileAllowlist",  "deviceSplitCount",
		"deviceMemoryScaling", "deviceCoreScaling",    "preConfiguredDeviceMemory",
		"libCudaLogLevel",     "enableNumaTopology",
	};
	char text[128], want[128];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(keys); i++) {
		struct hm_err e = { 0 };

		snprintf(text, sizeof text, "version: v1\nnvidia:\n  %s: [[]]\n", keys[i]);
		snprintf(want, sizeof want, "line 3: nvidia.%s", keys[i]);
		assert_null(parse(text, &e));
		if (strncmp(e.msg, want, strlen(want)) != 0)
			fail_msg("%s: \"%s\"", keys[i], e.msg);
	}
}

static void the_file_is_named(void **state)
{
	struct device_config *c;
	struct hm_err e;
	char want[400];

	(void)state;
	temp_write("d.yaml", "nvidia:\n  memoryFactor: x\n");
	assert_int_equal(device_config_read(temp_path("d.yaml"), NULL, &c, &e), -HM_EINVAL);
	snprintf(want, sizeof want,
		 "read %s: line 2: nvidia.memoryFactor: \"x\" is not a number between 0 and 2147483647",
		 temp_path("d.yaml"));
	assert_string_equal(e.msg, want);
	assert_int_equal(device_config_read(temp_path("none"), NULL, &c, &e), -HM_ENOTFOUND);
}

static int parse_once(void *arg)
{
	struct device_config *c = NULL;
	struct hm_err e;
	int r = device_config_parse(arg, strlen(arg), "f", NULL, &c, &e);

	device_config_free(c);
	return r;
}

static void memory_that_is_short_is_an_error(void **state)
{
	struct cJSON_Hooks hooks = { malloc, free };
	char text[sizeof chart];

	(void)state;
	memcpy(text, chart, sizeof chart);
	cJSON_InitHooks(&hooks); /* its allocations fail too */
	sweep_check("device_config", parse_once, text);
	cJSON_InitHooks(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(the_charts_file),
		TEST(absent_keys_have_the_charts_defaults),
		TEST(nvidias_half),
		TEST(what_is_unknown_is_said_once),
		TEST(bad_values_name_line_and_reason),
		TEST(every_key_is_looked_at),
		TEST(the_file_is_named),
		TEST(memory_that_is_short_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
