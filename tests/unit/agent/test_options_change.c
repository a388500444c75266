#include "agent/reload/options_change.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "harness/temp.h"
#include "harness/unit.h"

static struct option_spec table[AGENT_OPTION_COUNT];
static struct agent_options options;

static void no_log(const char *line, size_t n, void *arg)
{
	(void)line, (void)n, (void)arg;
}

static int setup(void **state)
{
	log_set_sink(no_log, NULL);
	agent_options_init(&options, table);
	setenv("NODE_NAME", "n1", 1);
	return temp_setup(state);
}

static int teardown(void **state)
{
	agent_options_fini(&options);
	log_set_sink(NULL, NULL);
	unsetenv("NODE_NAME");
	return temp_teardown(state);
}

static const char first_device[] =
	"nvidia: {deviceSplitCount: 2, migProfileAllowlist: [{models: [A], profiles: [1g.5gb]}]}";
static const char first_node[] = "{\"nodeconfig\":[{\"name\":\"n1\",\"filterdevices\":{\"index\":[1]}}]}";
static const char first_config[] = "v: 1\n";

/* Mode hami on three files as they are now, with a state folder that settling leaves alone. */
static void start(void)
{
	static char config[400], config_file[400], node_config[400], state_dir[400], program[] = "p";
	static char *argv[] = { program, config, config_file, node_config, state_dir, NULL };
	struct hm_err e = { 0 };

	temp_write("d", first_device);
	temp_write("n", first_node);
	temp_write("c", first_config);
	snprintf(config, sizeof config, "--config=%s", temp_path("c"));
	snprintf(config_file, sizeof config_file, "--config-file=%s", temp_path("d"));
	snprintf(node_config, sizeof node_config, "--node-config=%s", temp_path("n"));
	snprintf(state_dir, sizeof state_dir, "--state-dir=%s", temp_path("s"));
	assert_int_equal(agent_options_read(&options, table, 5, argv, &e), OPTIONS_RUN);
	options.binding = "late"; /* settled */
}

static void what_differs_is_named_and_weighed(void **state)
{
	static const struct {
		const char *file, *text, *names;
		enum options_change change;
	} rows[] = {
		{ "c", "v: 1\n# a comment\n", "", OPTIONS_SAME },
		{ "c", "v: 2\n", "v", OPTIONS_LIVE },
		{ "c", "v: 1\nlog-level: WARN\nslicing: dynamic\n", "slicing log-level", OPTIONS_LIVE },
		{ "c", "v: 1\nlibvgpu: /x\n", "libvgpu", OPTIONS_RESTART },
		{ "c", "v: 2\nlibvgpu: /x\n", "libvgpu v", OPTIONS_RESTART },
		{ "c", "v: 1\nmode: slices\n",
		  "mode resource-name enable-topology fail-on-init-error device-split-count filterdevices "
		  "migProfileAllowlist",
		  OPTIONS_RESTART },
		{ "d",
		  "nvidia: {deviceSplitCount: 2, migProfileAllowlist: [{models: [A], profiles: [1g.5gb]}]}\n\nother: "
		  "{}\n",
		  "", OPTIONS_SAME },
		{ "d", "nvidia: {deviceSplitCount: 3, migProfileAllowlist: [{models: [A], profiles: [1g.5gb]}]}",
		  "device-split-count", OPTIONS_LIVE },
		{ "c", "v: 1\ndevice-memory-scaling: 0.5\n", "device-memory-scaling", OPTIONS_LIVE },
		{ "c", "v: 1\ndevice-memory-scaling: 1.5\n", "device-memory-scaling", OPTIONS_RESTART },
		{ "d", "nvidia: {deviceSplitCount: 2, migProfileAllowlist: [{models: [A], profiles: [2g.5gb]}]}",
		  "migProfileAllowlist", OPTIONS_RESTART },
		{ "d",
		  "nvidia: {deviceSplitCount: 2, resourceCountName: a/b, migProfileAllowlist: "
		  "[{models: [A], profiles: [1g.5gb]}]}",
		  "resource-name", OPTIONS_RESTART },
		{ "n", "{\"nodeconfig\":[{\"name\":\"n1\",\"filterdevices\":{\"index\":[2]}}]}", "filterdevices",
		  OPTIONS_LIVE },
		{ "n", "{}", "filterdevices", OPTIONS_LIVE },
		{ "n",
		  "{\"nodeconfig\":[{\"name\":\"n1\",\"operatingmode\":\"mps\",\"filterdevices\":{\"index\":[1]}}]}",
		  "operatingmode", OPTIONS_LIVE },
		{ "n",
		  "{\"nodeconfig\":[{\"name\":\"n1\",\"operatingmode\":\"mig\",\"filterdevices\":{\"index\":[1]}}]}",
		  "operatingmode", OPTIONS_RESTART },
	};

	(void)state;
	start();
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct agent_options fresh;
		hm_auto_str names = { 0 };
		struct hm_err e = { 0 };

		temp_write("d", first_device);
		temp_write("n", first_node);
		temp_write("c", first_config);
		temp_write(rows[i].file, rows[i].text);
		if (options_change_read(&options, &fresh, &e) < 0)
			fail_msg("%s: %s", rows[i].text, e.msg);
		fresh.binding = "late";
		assert_int_equal(options_change_of(&options, &fresh, &names), rows[i].change);
		assert_string_equal(str_text(&names), rows[i].names);
		options_change_fini(&fresh);
	}
}

static void a_swap_is_undone_by_another(void **state)
{
	struct agent_options fresh;
	struct hm_err e = { 0 };

	(void)state;
	start();
	temp_write("d", "nvidia: {deviceSplitCount: 3}");
	temp_write("n", "{\"nodeconfig\":[{\"name\":\"n1\",\"operatingmode\":\"mps\"}]}");
	assert_int_equal(options_change_read(&options, &fresh, &e), 0);
	options_change_swap(&options, &fresh);
	assert_int_equal(options.hami.device_split_count, 3);
	assert_string_equal(options.hami.operating_mode, "mps");
	options_change_swap(&options, &fresh);
	assert_int_equal(options.hami.device_split_count, 2);
	assert_string_equal(options.hami.operating_mode, "hami-core");
	options_change_fini(&fresh);
	/* What is in force outlives what was read and thrown away. */
	assert_string_equal(options.resource_name, "nvidia.com/gpu");
}

static void a_file_that_cannot_be_used_is_an_error(void **state)
{
	static const struct {
		const char *file, *text;
	} rows[] = { { "d", "nvidia: {deviceSplitCount: 0}" }, { "n", "{" }, { "c", "v: many\n" } };
	struct agent_options fresh;

	(void)state;
	start();
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		struct hm_err e = { 0 };

		temp_write("d", first_device);
		temp_write("n", first_node);
		temp_write("c", first_config);
		temp_write(rows[i].file, rows[i].text);
		assert_true(options_change_read(&options, &fresh, &e) < 0);
		assert_non_null(strstr(e.msg, temp_path(rows[i].file)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(what_differs_is_named_and_weighed),
		TEST(a_swap_is_undone_by_another),
		TEST(a_file_that_cannot_be_used_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
