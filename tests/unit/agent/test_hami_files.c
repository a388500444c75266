#include "agent/options/hami_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "hami/device_config.h"
#include "harness/temp.h"
#include "harness/unit.h"

static struct option_spec table[AGENT_OPTION_COUNT];
static struct agent_options options;
static unsigned errors;
static char last_line[600];

static void count_errors(const char *line, size_t n, void *arg)
{
	(void)arg;
	errors += strncmp(line, "ERROR", 5) == 0;
	snprintf(last_line, sizeof last_line, "%.*s", (int)n, line);
}

static int setup(void **state)
{
	agent_options_init(&options, table);
	errors = 0;
	log_set_sink(count_errors, NULL);
	return temp_setup(state);
}

static int teardown(void **state)
{
	agent_options_fini(&options);
	log_set_sink(NULL, NULL);
	unsetenv("CONFIG_FILE");
	unsetenv("NODE_NAME");
	unsetenv("NodeName");
	unsetenv("DEVICE_SPLIT_COUNT");
	unsetenv("PASS_DEVICE_SPECS");
	unsetenv("DEVICE_LIST_STRATEGY");
	return temp_teardown(state);
}

/* Up to three flags; "@name" behind '=' is a file of the test. */
static int read_options(struct hm_err *e, const char *a, const char *b, const char *c)
{
	const char *const flags[] = { a, b, c };
	static char texts[4][400];
	char program[] = "p", *argv[5] = { program };
	int argc = 1;

	agent_options_fini(&options);
	agent_options_init(&options, table);
	for (size_t i = 0; i < HM_COUNT(flags) && flags[i] != NULL; i++) {
		const char *at = strchr(flags[i], '@');

		if (at != NULL)
			snprintf(texts[i], sizeof texts[i], "%.*s%s", (int)(at - flags[i]), flags[i],
				 temp_path(at + 1));
		else
			snprintf(texts[i], sizeof texts[i], "%s", flags[i]);
		argv[argc++] = texts[i];
	}
	return agent_options_read(&options, table, argc, argv, e);
}

static void the_files_of_the_chart_decide_on_the_mode(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	temp_write("d", "nvidia:\n  resourceCountName: example.com/gpu\n  deviceSplitCount: 7\n"
			"  deviceMemoryScaling: 1.5\n  enableNumaTopology: true\n  libCudaLogLevel: 3\n");
	setenv("CONFIG_FILE", temp_path("d"), 1);
	assert_int_equal(read_options(&e, "--node-config=@none", NULL, NULL), OPTIONS_RUN);
	assert_string_equal(options.mode, "hami");
	assert_string_equal(options.resource_name, "example.com/gpu");
	assert_int_equal(options.hami.device_split_count, 7);
	assert_true(options.hami.device_memory_scaling == 1.5 && options.hami.device_cores_scaling == 1);
	assert_string_equal(options.hami.libcuda_log_level, "3");
	assert_true(options.enable_topology && options.fail_on_init_error);
	assert_int_equal(read_options(&e, "--mode=slices", NULL, NULL), OPTIONS_RUN);
	assert_string_equal(options.resource_name, "hami.com/vgpu");
	assert_false(options.fail_on_init_error);
	setenv("CONFIG_FILE", "", 1);
	assert_int_equal(read_options(&e, NULL, NULL, NULL), OPTIONS_RUN);
	assert_string_equal(options.mode, "slices");
}

static void mode_hami_without_files_has_the_charts_defaults(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(read_options(&e, "--mode=hami", "--node-config=@none", NULL), OPTIONS_RUN);
	assert_string_equal(options.resource_name, "nvidia.com/gpu");
	assert_int_equal(options.hami.device_split_count, 10);
	assert_string_equal(options.hami.operating_mode, "hami-core");
	assert_false(options.enable_topology);
	assert_null(options.hami.node_config_trouble);
	assert_int_equal(errors, 0);
}

/* Flag over environment over --config over config.json over device-config.yaml. */
static void each_layer_goes_over_the_next(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	temp_write("d", "nvidia:\n  deviceSplitCount: 2\n  deviceMemoryScaling: 2\n  deviceCoreScaling: 2\n"
			"  preConfiguredDeviceMemory: 2\nflags: {plugin: {passDeviceSpecs: true}}\n");
	temp_write("n", "{\"nodeconfig\":[{\"name\":\"n1\",\"devicesplitcount\":3,\"devicememoryscaling\":3,"
			"\"devicecorescaling\":3}]}");
	temp_write("c", "deviceSplitCount: 4\ndevice-memory-scaling: 4\nnode-config: /nowhere\n");
	setenv("NODE_NAME", "n1", 1);
	setenv("DEVICE_SPLIT_COUNT", "5", 1);
	assert_int_equal(read_options(&e, "--config-file=@d", "--node-config=@n", "--config=@c"), OPTIONS_RUN);
	assert_int_equal(options.hami.device_split_count, 5);
	assert_true(options.hami.device_memory_scaling == 4);
	assert_true(options.hami.device_cores_scaling == 3);
	assert_int_equal(options.hami.preconfigured_memory_mib, 2);
	assert_true(options.hami.pass_device_specs);
	assert_string_equal(options.node_name, "n1");
	setenv("NodeName", "n2", 1); /* HAMi's spelling, before the usual one */
	setenv("PASS_DEVICE_SPECS", "false", 1);
	assert_int_equal(read_options(&e, "--config-file=@d", "--node-config=@n", "--device-split-count=6"),
			 OPTIONS_RUN);
	assert_int_equal(options.hami.device_split_count, 6);
	assert_true(options.hami.device_cores_scaling == 2);
	assert_false(options.hami.pass_device_specs);
}

/* HAMi's chart passes the flag as false, whatever the file says. */
static void one_word_is_enough_to_lift_the_core_limit(void **state)
{
	static const struct {
		const char *text, *flag;
		bool want;
	} rows[] = {
		{ "nvidia: {disableCoreLimit: true}\n", "--disable-core-limit=false", true },
		{ "nvidia: {disableCoreLimit: false}\n", "--disable-core-limit=false", false },
		{ "nvidia: {disableCoreLimit: false}\n", "--disable-core-limit", true },
		{ "nvidia: {}\n", NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct hm_err e = { 0 };

		temp_write("d", rows[i].text);
		assert_int_equal(read_options(&e, "--config-file=@d", "--node-config=", rows[i].flag), OPTIONS_RUN);
		assert_int_equal(options.hami.disable_core_limit, rows[i].want);
	}
}

/* HAMi 11.10: mode "" where config.json is not there or not right. */
static void without_config_json_the_mode_is_hami_core(void **state)
{
	static const struct {
		const char *text, *trouble; /* NULL: no file */
	} rows[] = {
		{ NULL, "No such file" },
		{ "{\"nodeconfig\":[{\"name\":\"n1\",\"operatingmode\":\"mps\",\"libcudaloglevel\":1}]}",
		  "line 1: nodeconfig[0].libcudaloglevel: 1 is not a text" },
		{ "{", "line 1" },
	};

	(void)state;
	setenv("NODE_NAME", "n1", 1);
	temp_write("d", "nvidia: {deviceSplitCount: 2}\n");
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct hm_err e = { 0 };

		if (rows[i].text != NULL)
			temp_write("n", rows[i].text);
		errors = 0;
		assert_int_equal(read_options(&e, "--config-file=@d", "--node-config=@n", NULL), OPTIONS_RUN);
		assert_string_equal(options.hami.operating_mode, "hami-core");
		assert_int_equal(options.hami.device_split_count, 2);
		assert_non_null(strstr(options.hami.node_config_trouble, rows[i].trouble));
		assert_int_equal(errors, 1);
	}
	temp_write("n", "{\"nodeconfig\":[{\"name\":\"n1\",\"operatingmode\":\"mps\"}]}");
	{
		struct hm_err e = { 0 };

		assert_int_equal(read_options(&e, "--config-file=@d", "--node-config=@n", NULL), OPTIONS_RUN);
		assert_string_equal(options.hami.operating_mode, "mps");
		assert_null(options.hami.node_config_trouble);
	}
}

static void nvidias_flags_are_options(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	temp_write("d", "version: v1\nflags:\n  migStrategy: single\n  failOnInitError: false\n"
			"  nvidiaDriverRoot: /run/nvidia/driver\n  gdsEnabled: true\n  plugin:\n"
			"    deviceListStrategy: [volume-mounts, cdi-cri]\n    deviceIDStrategy: index\n"
			"    containerDriverRoot: /here\nimex: {channelIDs: [0], required: true}\nnvidia: {}\n");
	assert_int_equal(read_options(&e, "--config-file=@d", "--node-config=", NULL), OPTIONS_RUN);
	assert_string_equal(options.hami.mig_strategy, "single");
	assert_false(options.fail_on_init_error);
	assert_string_equal(options.hami.nvidia_driver_root, "/run/nvidia/driver");
	assert_true(options.hami.gds && !options.hami.mofed);
	assert_string_equal(options.hami.device_list_strategy.text, "volume-mounts,cdi-cri");
	assert_string_equal(options.hami.device_id_strategy, "index");
	assert_string_equal(options.hami.driver_root_ctr_path, "/here");
	assert_string_equal(options.hami.imex_channel_ids.text, "0");
	assert_true(options.hami.imex_required);
	setenv("DEVICE_LIST_STRATEGY", "envvar", 1);
	assert_int_equal(read_options(&e, "--config-file=@d", "--node-config=", NULL), OPTIONS_RUN);
	assert_string_equal(options.hami.device_list_strategy.text, "envvar");
}

static void what_cannot_be_is_refused(void **state)
{
	static const struct {
		const char *text, *flag, *want; /* %s: the file */
	} rows[] = {
		{ "nvidia:\n  deviceSplitCount: ten\n", NULL,
		  "read %s: line 2: nvidia.deviceSplitCount: \"ten\" is not a number between 1 and 1000" },
		{ "flags:\n  migStrategy: both\n", NULL,
		  "read %s: line 2: flags.migStrategy: \"both\" is none of none|single|mixed" },
		{ "flags:\n  plugin:\n    deviceListStrategy: [envvar, magic]\n", NULL,
		  "read %s: line 3: flags.plugin.deviceListStrategy: \"magic\" is none of "
		  "envvar|volume-mounts|cdi-annotations|cdi-cri" },
		{ "flags:\n  gdsEnabled: {}\n", NULL,
		  "read %s: line 2: flags.gdsEnabled: is neither a single value nor a list of them" },
		{ "imex:\n  required: true\n  channelIDs: [3]\n", NULL,
		  "read %s: line 3: imex.channelIDs: --imex-channel-ids: \"3\" is neither empty nor 0" },
		{ "flags:\n  nvidiaDriverRoot: run\n", NULL,
		  "read %s: line 2: flags.nvidiaDriverRoot: --nvidia-driver-root: \"run\" is not an absolute path" },
		{ "flags:\n  plugin:\n    nvidiaCTKPath: bin/ctk\n", NULL,
		  "read %s: line 3: flags.plugin.nvidiaCTKPath: --nvidia-cdi-hook-path: \"bin/ctk\" is not an absolute "
		  "path" },
		{ "flags:\n  plugin:\n    cdiAnnotationPrefix: \"a b\"\n", NULL,
		  "read %s: line 3: flags.plugin.cdiAnnotationPrefix: --cdi-annotation-prefix: \"a b\" cannot begin "
		  "the key "
		  "of an annotation" },
		{ "flags:\n  plugin: [1]\n", NULL, "read %s: line 2: flags.plugin: is no object" },
		{ "flags:\n  Plugin: yes\n", NULL, "read %s: line 2: flags.plugin: is no object" },
		{ "nvidia: {}\n", "--imex-channel-ids=0,1", "--imex-channel-ids: \"0,1\" is neither empty nor 0" },
		{ "nvidia: {}\n", "--device-discovery-strategy=tegra",
		  "--device-discovery-strategy=tegra: this version knows only NVML" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct hm_err e = { 0 };
		char want[600];

		temp_write("d", rows[i].text);
		assert_int_not_equal(read_options(&e, "--config-file=@d", "--node-config=", rows[i].flag), OPTIONS_RUN);
		snprintf(want, sizeof want, rows[i].want, temp_path("d"));
		assert_string_equal(e.msg, want);
	}
	{
		struct hm_err e = { 0 };

		assert_int_equal(read_options(&e, "--config-file=@nothing", NULL, NULL), -HM_ENOTFOUND);
	}
}

/* Reference 1.1: each flag of HAMi's plugin by its variable, and by its other names. */
static void every_variable_and_alias(void **state)
{
	static const struct {
		const char *env, *flag, *value;
		const void *to;
		enum { TEXT, BOOL, U64, F64, LIST } kind;
	} rows[] = {
		{ "MIG_STRATEGY", "mig-strategy", "mixed", &options.hami.mig_strategy, TEXT },
		{ "FAIL_ON_INIT_ERROR", "fail-on-init-error", "true", &options.fail_on_init_error, BOOL },
		{ "NVIDIA_DRIVER_ROOT", "nvidia-driver-root", "/r", &options.hami.nvidia_driver_root, TEXT },
		{ "NVIDIA_DEV_ROOT", "dev-root", "/d", &options.hami.dev_root, TEXT },
		{ NULL, "nvidia-dev-root", "/d", &options.hami.dev_root, TEXT },
		{ "PASS_DEVICE_SPECS", "pass-device-specs", "true", &options.hami.pass_device_specs, BOOL },
		{ "DEVICE_LIST_STRATEGY", "device-list-strategy", "volume-mounts,cdi-cri",
		  &options.hami.device_list_strategy.text, LIST },
		{ "DEVICE_ID_STRATEGY", "device-id-strategy", "index", &options.hami.device_id_strategy, TEXT },
		{ "GDRCOPY_ENABLED", "gdrcopy-enabled", "true", &options.hami.gdrcopy, BOOL },
		{ "GDS_ENABLED", "gds-enabled", "true", &options.hami.gds, BOOL },
		{ "MOFED_ENABLED", "mofed-enabled", "true", &options.hami.mofed, BOOL },
		{ "KUBELET_SOCKET", "kubelet-socket", "/k/s", &options.kubelet_socket, TEXT },
		{ "CDI_ANNOTATION_PREFIX", "cdi-annotation-prefix", "cdi.x/", &options.hami.cdi_annotation_prefix,
		  TEXT },
		{ "NVIDIA_CDI_HOOK_PATH", "nvidia-cdi-hook-path", "/h", &options.hami.nvidia_cdi_hook_path, TEXT },
		{ "NVIDIA_CTK_PATH", "nvidia-ctk-path", "/h", &options.hami.nvidia_cdi_hook_path, TEXT },
		{ "DRIVER_ROOT_CTR_PATH", "driver-root-ctr-path", "/c", &options.hami.driver_root_ctr_path, TEXT },
		{ "CONTAINER_DRIVER_ROOT", "container-driver-root", "/c", &options.hami.driver_root_ctr_path, TEXT },
		{ "DEVICE_DISCOVERY_STRATEGY", "device-discovery-strategy", "nvml",
		  &options.hami.device_discovery_strategy, TEXT },
		{ "IMEX_CHANNEL_IDS", "imex-channel-ids", "0", &options.hami.imex_channel_ids.text, LIST },
		{ "IMEX_REQUIRED", "imex-required", "true", &options.hami.imex_required, BOOL },
		{ "NodeName", "node-name", "n7", &options.node_name, TEXT },
		{ "NODE_NAME", NULL, "n7", &options.node_name, TEXT },
		{ "DEVICE_SPLIT_COUNT", "device-split-count", "7", &options.hami.device_split_count, U64 },
		{ "DEVICE_MEMORY_SCALING", "device-memory-scaling", "1.5", &options.hami.device_memory_scaling, F64 },
		{ "DEVICE_CORES_SCALING", "device-cores-scaling", "1.5", &options.hami.device_cores_scaling, F64 },
		{ "DISABLE_CORE_LIMIT", "disable-core-limit", "true", &options.hami.disable_core_limit, BOOL },
		{ "HOOK_PATH", "hook-path", "/hook", &options.hami.hook_path, TEXT },
		{ "ENABLE_TOPOLOGY_SCORE", "enable-topology-score", "true", &options.hami.topology_score, BOOL },
		{ "DP_DISABLE_HEALTHCHECKS", "disable-health-checks", "48,79", &options.disable_health_checks, TEXT },
		{ "DP_ENABLE_HEALTHCHECKS", "enable-health-checks", "48,79", &options.enable_health_checks, TEXT },
		{ NULL, "resource-name", "a.b/c", &options.resource_name, TEXT },
	};

	(void)state;
	temp_write("d", "nvidia: {}\n");
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		for (int by_flag = 0; by_flag < 2; by_flag++) {
			const char *name = by_flag ? rows[i].flag : rows[i].env;
			struct hm_err e = { 0 };
			char flag[128];
			bool good;

			if (name == NULL)
				continue;
			snprintf(flag, sizeof flag, "--%s=%s", name, rows[i].value);
			if (!by_flag)
				setenv(name, rows[i].value, 1);
			if (read_options(&e, "--config-file=@d", "--node-config=", by_flag ? flag : NULL) !=
			    OPTIONS_RUN)
				fail_msg("%s: %s", name, e.msg);
			if (!by_flag)
				unsetenv(name);
			good = rows[i].kind == BOOL   ? *(const bool *)rows[i].to
			       : rows[i].kind == U64  ? *(const uint64_t *)rows[i].to == 7
			       : rows[i].kind == F64  ? *(const double *)rows[i].to == 1.5
			       : rows[i].kind == LIST ? strcmp(rows[i].to, rows[i].value) == 0
						      : strcmp(*(char *const *)rows[i].to, rows[i].value) == 0;
			if (!good)
				fail_msg("%s has no effect", name);
		}
	}
}

/* A list of a list is a good value of no key. */
static void every_key_of_nvidias_is_looked_at(void **state)
{
	static const struct {
		const char *section, *key;
	} rows[] = {
		{ "flags", "migStrategy" },
		{ "flags", "failOnInitError" },
		{ "flags", "nvidiaDriverRoot" },
		{ "flags", "nvidiaDevRoot" },
		{ "flags", "gdrcopyEnabled" },
		{ "flags", "gdsEnabled" },
		{ "flags", "mofedEnabled" },
		{ "flags", "deviceDiscoveryStrategy" },
		{ "flags.plugin", "passDeviceSpecs" },
		{ "flags.plugin", "deviceListStrategy" },
		{ "flags.plugin", "deviceIDStrategy" },
		{ "flags.plugin", "cdiAnnotationPrefix" },
		{ "flags.plugin", "nvidiaCTKPath" },
		{ "flags.plugin", "containerDriverRoot" },
		{ "imex", "channelIDs" },
		{ "imex", "required" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		bool plugin = strcmp(rows[i].section, "flags.plugin") == 0;
		struct hm_err e = { 0 };
		char text[200], want[600];

		snprintf(text, sizeof text, "nvidia: {}\n%s:\n  %s\n    %s: [[]]\n", plugin ? "flags" : rows[i].section,
			 plugin ? "plugin:" : "# of it:", rows[i].key);
		temp_write("d", text);
		assert_int_not_equal(read_options(&e, "--config-file=@d", "--node-config=", NULL), OPTIONS_RUN);
		snprintf(want, sizeof want, "read %s: line 4: %s.%s: is neither a single value nor a list of them",
			 temp_path("d"), rows[i].section, rows[i].key);
		assert_string_equal(e.msg, want);
	}
}

static void cards_that_are_left_out(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	assert_false(hami_files_leave_out(&options.hami, "GPU-1", 0));
	setenv("NODE_NAME", "n1", 1);
	temp_write("n", "{\"nodeconfig\":[{\"name\":\"n1\",\"filterdevices\":{\"uuid\":[\"GPU-1\"],\"index\":[4]}}]}");
	assert_int_equal(read_options(&e, "--mode=hami", "--node-config=@n", NULL), OPTIONS_RUN);
	assert_true(hami_files_leave_out(&options.hami, "GPU-1", 0));
	assert_true(hami_files_leave_out(&options.hami, "GPU-2", 4));
	assert_false(hami_files_leave_out(&options.hami, "GPU-2", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(the_files_of_the_chart_decide_on_the_mode),
		TEST(mode_hami_without_files_has_the_charts_defaults),
		TEST(each_layer_goes_over_the_next),
		TEST(one_word_is_enough_to_lift_the_core_limit),
		TEST(without_config_json_the_mode_is_hami_core),
		TEST(nvidias_flags_are_options),
		TEST(what_cannot_be_is_refused),
		TEST(every_key_of_nvidias_is_looked_at),
		TEST(every_variable_and_alias),
		TEST(cards_that_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
