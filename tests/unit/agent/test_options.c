#include "agent/options/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/temp.h"
#include "harness/unit.h"

static struct option_spec table[AGENT_OPTION_COUNT];
static struct agent_options options;

static int read_options(const char *a, const char *b, struct hm_err *e)
{
	char program[] = "p", first[256], second[256];
	char *argv[] = { program, first, second, NULL };

	snprintf(first, sizeof first, "%s", a != NULL ? a : "");
	snprintf(second, sizeof second, "%s", b != NULL ? b : "");
	if (b == NULL)
		argv[2] = NULL;
	if (a == NULL)
		argv[1] = NULL;
	agent_options_fini(&options);
	agent_options_init(&options, table);
	return agent_options_read(&options, table, a == NULL ? 1 : b == NULL ? 2 : 3, argv, e);
}

static void defaults_are_those_of_a_node(void **state)
{
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(read_options(NULL, NULL, &e), OPTIONS_RUN);
	assert_string_equal(options.kubelet_socket, "/var/lib/kubelet/device-plugins/kubelet.sock");
	assert_string_equal(options.cdi_dir, "/var/run/cdi");
	assert_string_equal(options.state_dir, "/var/lib/hami-vgpu");
	assert_int_equal(options.cores_per_device, 4);
	assert_true(options.enable_topology);
	assert_false(options.fail_on_init_error);
	assert_false(options.oversubscribe);
	assert_true(agent_binds_late(&options));
	assert_int_equal(agent_slots_config(&options).slicing, SLICING_STATIC);
}

static void oversubscription_where_it_is_asked_for(void **state)
{
	struct hm_err e = { 0 };
	char config[300];

	(void)state;
	temp_write("c", "oversubscribe: true\n");
	snprintf(config, sizeof config, "--config=%s", temp_path("c"));
	assert_int_equal(read_options(config, NULL, &e), OPTIONS_RUN);
	assert_true(options.oversubscribe);
	assert_true(agent_slots_config(&options).oversubscribe);
	assert_int_equal(read_options("--oversubscribe=perhaps", NULL, &e), -HM_EINVAL);
}

static void flag_over_environment_over_file(void **state)
{
	struct hm_err e = { 0 };
	char config[300];

	(void)state;
	temp_write("c", "cores-per-device: 2\nslicing: dynamic\nmemory-mb-per-core: 100\n");
	snprintf(config, sizeof config, "--config=%s", temp_path("c"));
	setenv("HAMI_VGPU_CORES_PER_DEVICE", "3", 1);
	setenv("HAMI_VGPU_MEMORY_MB_PER_CORE", "200", 1);
	assert_int_equal(read_options(config, "--cores-per-device=5", &e), OPTIONS_RUN);
	unsetenv("HAMI_VGPU_CORES_PER_DEVICE");
	unsetenv("HAMI_VGPU_MEMORY_MB_PER_CORE");
	assert_int_equal(options.cores_per_device, 5);
	assert_int_equal(options.memory_mb_per_core, 200);
	assert_string_equal(options.slicing, "dynamic");
}

static void what_cannot_be_is_refused(void **state)
{
	char longest[AGENT_PATH_OPTION_BYTES + 32];
	struct hm_err e = { 0 };
	static const struct {
		const char *flag, *want;
	} rows[] = {
		{ "--mode=dra", "--mode=dra: this version has only --mode=slices and --mode=hami" },
		{ "--cdi-dir=cdi", "--cdi-dir: \"cdi\" is not an absolute path" },
		{ "--state-dir=", "--state-dir: \"\" is not an absolute path" },
		{ "--state-dir=/a\nb", "--state-dir: the path has a control character in it" },
		{ "--resource-name=a/b/c", "--resource-name: \"a/b/c\" is not of the form domain/name" },
		{ "--resource-name=/x", "--resource-name: \"/x\" is not of the form domain/name" },
		{ "--resource-name=a.b/c d",
		  "--resource-name: \"a.b/c d\" has a character that is no letter, digit, '-', '_' or '.'" },
		{ "--resource-name=x.kubernetes.io/gpu",
		  "--resource-name: \"x.kubernetes.io/gpu\" is in kubernetes.io, which the kubelet refuses" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		assert_true(read_options(rows[i].flag, NULL, &e) < 0);
		assert_string_equal(e.msg, rows[i].want);
	}
	memset(longest, 'x', sizeof longest);
	memcpy(longest, "--state-dir=/", 13);
	longest[sizeof longest - 1] = '\0';
	{
		char program[] = "p";
		char *argv[] = { program, longest, NULL };

		agent_options_fini(&options);
		agent_options_init(&options, table);
		assert_true(agent_options_read(&options, table, 2, argv, &e) < 0);
		assert_non_null(strstr(e.msg, "--state-dir: the path is longer than 400 bytes"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
		TEST(defaults_are_those_of_a_node),
		TEST(oversubscription_where_it_is_asked_for),
		TEST(flag_over_environment_over_file),
		TEST(what_cannot_be_is_refused),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	agent_options_fini(&options);
	return r;
}
