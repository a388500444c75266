#include "sched/options/options.h"

#include <stdlib.h>
#include <string.h>

#include "harness/temp.h"
#include "harness/unit.h"

#define ARGS(...) ((const char *const[]) { "hami-scheduler", __VA_ARGS__, NULL })

static int read_args(struct sched_options *o, const char *const *args, struct hm_err *e)
{
	struct option_spec table[SCHED_OPTION_COUNT];
	char *argv[32];
	int argc = 0;

	for (; args[argc] != NULL; argc++)
		argv[argc] = (char *)(uintptr_t)args[argc];
	sched_options_init(o, table);
	return sched_options_read(o, table, argc, argv, e);
}

/* The command line of HAMi's chart (v2.10.0), as it stands in a pod. */
static void test_chart(void **state)
{
	struct sched_options o;
	struct hm_err e;

	(void)state;
	temp_write("device-config.yaml", "nvidia:\n  resourceCountName: example.com/gpu\n  defaultMemory: 5000\n");
	hm_auto_str file = { 0 };
	str_addf(&file, "--device-config-file=%s", temp_path("device-config.yaml"));
	assert_int_equal(
		read_args(&o,
			  ARGS("--http_bind=0.0.0.0:443", "--cert_file=/tls/tls.crt", "--key_file=/tls/tls.key",
			       "--scheduler-name=hami-scheduler", "--metrics-bind-address=:9395",
			       "--node-scheduler-policy=binpack", "--gpu-scheduler-policy=spread",
			       "--force-overwrite-default-scheduler=true", str_text(&file), "--leader-elect=true",
			       "--leader-elect-resource-name=hami-scheduler",
			       "--leader-elect-resource-namespace=kube-system", "--enable-ascend=true",
			       "--node-label-selector=gpu=on", "--debug", "-v=4"),
			  &e),
		OPTIONS_RUN);
	assert_string_equal(o.http_bind, "0.0.0.0:443");
	assert_string_equal(o.cert_file, "/tls/tls.crt");
	assert_string_equal(o.leader_elect_namespace, "kube-system");
	assert_string_equal(o.device->resource_count, "example.com/gpu");
	assert_int_equal(o.device->default_memory_mib, 5000);
	assert_true(o.leader_elect);
	assert_int_equal(o.v, 4);
	assert_string_equal(str_text(&o.ignored), "--enable-ascend, --debug");
	sched_options_fini(&o);
}

static void test_defaults(void **state)
{
	struct sched_options o;
	struct hm_err e;

	(void)state;
	assert_int_equal(read_args(&o, ARGS(NULL), &e), OPTIONS_RUN);
	assert_string_equal(o.http_bind, "127.0.0.1:8080");
	assert_string_equal(o.metrics_bind_address, ":9395");
	assert_string_equal(o.node_policy, "binpack");
	assert_string_equal(o.gpu_policy, "spread");
	assert_string_equal(o.device->resource_count, "nvidia.com/gpu");
	assert_int_equal(o.node_lock_timeout_ms, 5 * 60 * 1000);
	assert_int_equal(o.node_lock_retry_ms, 28000);
	assert_true(o.force_overwrite_default_scheduler);
	assert_false(o.leader_elect);
	sched_options_fini(&o);
}

/* HAMi reads the variable and then overwrites it by the flag's default. */
static void test_lock_from_environment(void **state)
{
	struct sched_options o;
	struct hm_err e;

	(void)state;
	setenv("HAMI_NODELOCK_EXPIRE", "90s", 1);
	assert_int_equal(read_args(&o, ARGS(NULL), &e), OPTIONS_RUN);
	assert_int_equal(o.node_lock_timeout_ms, 90000);
	sched_options_fini(&o);
	assert_int_equal(read_args(&o, ARGS("--node-lock-timeout=2m"), &e), OPTIONS_RUN);
	assert_int_equal(o.node_lock_timeout_ms, 120000);
	sched_options_fini(&o);
	unsetenv("HAMI_NODELOCK_EXPIRE");
}

static void test_refused(void **state)
{
	const struct {
		const char *const *args;
		const char *says;
	} cases[] = {
		{ ARGS("--cert_file=/a"), "--cert_file without --key_file: HTTPS needs both" },
		{ ARGS("--key_file", "/a"), "--key_file without --cert_file" },
		{ ARGS("--client-ca-file=/a"), "--client-ca-file: only HTTPS" },
		{ ARGS("--leader-elect"), "--leader-elect needs --leader-elect-resource-name" },
		{ ARGS("--node-lock-timeout=5"),
		  "--node-lock-timeout: \"5\" is not a duration between 1s and 24h0m0s" },
		{ ARGS("--http-bind=:1"), "unknown option \"--http-bind=:1\"" },
		{ ARGS("filter"), "unexpected argument \"filter\"" },
		{ ARGS("--device-config-file=/nowhere/file"), "/nowhere/file" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct sched_options o;
		struct hm_err e;

		assert_true(read_args(&o, cases[i].args, &e) < 0);
		if (strstr(e.msg, cases[i].says) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", e.msg, cases[i].says);
		sched_options_fini(&o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_chart), cmocka_unit_test(test_defaults),
					    cmocka_unit_test(test_lock_from_environment),
					    cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, temp_setup, temp_teardown);
}
