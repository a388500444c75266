#include "cdi/spec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>
#include <cmocka.h>

#include "core/macros.h"
#include "harness/sweep.h"

/* As nvidia-ctk cdi generate --format=json writes it, shortened. */
static const char nvidia[] =
	"{\"cdiVersion\":\"0.5.0\",\"kind\":\"nvidia.com/gpu\",\"devices\":["
	"{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/"
	"nvidia0\",\"major\":195,\"fileMode\":438}]}},"
	"{\"name\":\"GPU-1\",\"containerEdits\":{\"env\":[\"X=a=b\"],\"deviceNodes\":[{\"path\":\"/dev/nvidia1\","
	"\"hostPath\":\"/run/nvidia/driver/dev/nvidia1\",\"permissions\":\"rw\"}],\"additionalGids\":[44]}}],"
	"\"containerEdits\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\"],\"deviceNodes\":[{\"path\":\"/dev/nvidiactl\"}],"
	"\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/usr/bin/nvidia-cdi-hook\","
	"\"args\":[\"nvidia-cdi-hook\",\"update-ldcache\"],\"env\":[\"NVIDIA_CTK_DEBUG=false\"]}],"
	"\"mounts\":[{\"hostPath\":\"/usr/lib/libcuda.so.1\",\"containerPath\":\"/usr/lib/libcuda.so.1\","
	"\"options\":[\"ro\",\"nosuid\",\"nodev\",\"bind\"]}]}}\n";

static void check_nvidia(const struct cdi_spec *s)
{
	const struct cdi_device *d = cdi_spec_device(s, "GPU-1");

	assert_string_equal(s->kind, "nvidia.com/gpu");
	assert_int_equal(s->device_count, 2);
	assert_non_null(cdi_spec_device(s, "0"));
	assert_null(cdi_spec_device(s, "1"));
	assert_non_null(d);
	assert_string_equal(d->edits.envs[0].name, "X");
	assert_string_equal(d->edits.envs[0].value, "a=b");
	assert_string_equal(d->edits.nodes[0].host_path, "/run/nvidia/driver/dev/nvidia1");
	assert_string_equal(d->edits.nodes[0].permissions, "rw");
	assert_null(s->edits.nodes[0].host_path);
	assert_string_equal(s->edits.envs[0].value, "void");
	assert_int_equal(s->edits.mounts[0].option_count, 4);
	assert_string_equal(s->edits.hooks[0].args[1], "update-ldcache");
	assert_string_equal(s->edits.hooks[0].envs[0], "NVIDIA_CTK_DEBUG=false");
}

static void reads_nvidia(void **state)
{
	hm_auto(cdi_spec) *s = NULL;
	struct hm_err e = { 0 };

	(void)state;
	if (cdi_spec_parse(nvidia, sizeof nvidia - 1, &s, &e) < 0)
		fail_msg("%s", e.msg);
	check_nvidia(s);
}

/* The same as nvidia-ctk writes it by default. */
static void reads_yaml(void **state)
{
	static const char text[] =
		"---\ncdiVersion: 0.5.0\nkind: nvidia.com/gpu\ndevices:\n- containerEdits:\n    deviceNodes:\n"
		"    - path: /dev/nvidia0\n  name: \"0\"\n- containerEdits:\n    env:\n    - X=a=b\n"
		"    deviceNodes:\n    - path: /dev/nvidia1\n      permissions: rw\n"
		"      hostPath: /run/nvidia/driver/dev/nvidia1\n  name: GPU-1\ncontainerEdits:\n"
		"  deviceNodes:\n  - path: /dev/nvidiactl\n  env:\n  - NVIDIA_VISIBLE_DEVICES=void\n"
		"  hooks:\n  - args:\n    - nvidia-cdi-hook\n    - update-ldcache\n"
		"    env: [NVIDIA_CTK_DEBUG=false]\n    hookName: createContainer\n"
		"    path: /usr/bin/nvidia-cdi-hook\n  mounts:\n  - containerPath: /usr/lib/libcuda.so.1\n"
		"    hostPath: /usr/lib/libcuda.so.1\n    options:\n    - ro\n    - nosuid\n    - nodev\n"
		"    - bind\n";
	hm_auto(cdi_spec) *s = NULL;
	struct hm_err e = { 0 };

	(void)state;
	if (cdi_spec_parse(text, sizeof text - 1, &s, &e) < 0)
		fail_msg("%s", e.msg);
	check_nvidia(s);
}

/* The bytes are a contract: a PreStart of the same limits must not change the file. */
static void writes(void **state)
{
	struct cdi_edits e = { 0 };
	hm_auto_str out = { 0 };

	(void)state;
	assert_int_equal(cdi_add_env(&e, "A", "line\none \"two\" \\ \x01 \xc3\xa4"), 0);
	assert_int_equal(cdi_add_node(&e, "/dev/nvidia0", NULL, "rw"), 0);
	assert_int_equal(cdi_add_mount(&e, "/h", "/c", true), 0);
	assert_int_equal(cdi_spec_write("hami.io/vgpu", "v.7", &e, &out, NULL), 0);
	assert_string_equal(str_text(&out),
			    "{\"cdiVersion\":\"0.6.0\",\"kind\":\"hami.io/vgpu\",\"devices\":[{\"name\":\"v.7\","
			    "\"containerEdits\":{\"env\":[\"A=line\\u000aone \\\"two\\\" \\\\ \\u0001 \xc3\xa4\"],"
			    "\"deviceNodes\":[{\"path\":\"/dev/nvidia0\",\"permissions\":\"rw\"}],"
			    "\"mounts\":[{\"hostPath\":\"/h\",\"containerPath\":\"/c\","
			    "\"options\":[\"ro\",\"nosuid\",\"nodev\",\"rbind\",\"rprivate\"]}]}}]}\n");
	cdi_edits_fini(&e);
}

/* What we read we write the same, but for what runtimes take from the node. */
static void writes_many_devices(void **state)
{
	hm_auto(cdi_spec) *s = NULL;
	hm_auto(cdi_spec) *again = NULL;
	hm_auto_str out = { 0 };
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(cdi_spec_parse(nvidia, sizeof nvidia - 1, &s, &e), 0);
	if (cdi_spec_write_all(s, &out, &e) < 0 || cdi_spec_parse(str_text(&out), out.n, &again, &e) < 0)
		fail_msg("%s", e.msg);
	check_nvidia(again);
	str_clear(&out);
	s->device_count = 0;
	assert_int_equal(cdi_spec_write_all(s, &out, &e), -HM_EINVAL);
	s->device_count = 2;
}

static void write_refuses(void **state)
{
	struct cdi_edits e = { 0 }, some = { 0 };
	hm_auto_str out = { 0 };
	struct hm_err err = { 0 };

	(void)state;
	assert_int_equal(cdi_add_env(&some, "A", "1"), 0);
	assert_int_equal(cdi_spec_write("hami.io/vgpu", "v.7", &e, &out, &err), -HM_EINVAL);
	assert_string_equal(err.msg, "CDI device hami.io/vgpu=v.7 without edits: runtimes refuse it");
	assert_int_equal(cdi_spec_write("hami.io", "v.7", &some, &out, &err), -HM_EINVAL);
	assert_int_equal(cdi_spec_write("hami.io/vgpu", "v 7", &some, &out, &err), -HM_EINVAL);
	assert_int_equal(out.n, 0);
	cdi_edits_fini(&some);
}

#define SPEC(devices) "{\"cdiVersion\":\"0.6.0\",\"kind\":\"a/b\",\"devices\":[" devices "]}"
#define DEVICE(edits) "{\"name\":\"x\",\"containerEdits\":{" edits "}}"

static void read_refuses(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "[]", "no object" },
		{ "{\"a\":x}", "line 1, column 6: not JSON" },
		{ "{}x", "line 1, column 3: something behind the JSON value" },
		{ "{\"a\":\"\\u0000\"}", "NUL inside" },
		{ "{}", "cdiVersion is missing" },
		{ "{\"cdiVersion\":\"9.0.0\"}", "cdiVersion \"9.0.0\" is not known here: 0.x and 1.x are read" },
		{ "{\"cdiVersion\":\"0.6.0\"}", "kind is missing" },
		{ "{\"cdiVersion\":\"0.6.0\",\"kind\":\"a\"}", "kind \"a\" is not vendor/class" },
		{ "{\"cdiVersion\":\"0.6.0\",\"kind\":\"a/b\",\"kind\":\"a/b\"}", "kind stands there twice" },
		{ "{\"cdiVersion\":\"0.6.0\",\"kind\":\"a/b\"}", "devices is no list of at least one" },
		{ SPEC(""), "devices is no list of at least one" },
		{ SPEC("{}"), "devices[0]: name is missing" },
		{ SPEC("{\"name\":\"a b\"}"), "devices[0]: name \"a b\" has characters that runtimes refuse" },
		{ SPEC("{\"name\":\"x\"},{\"name\":\"x\"}"), "device \"x\" stands there twice" },
		{ SPEC("{\"name\":\"x\",\"containerEdits\":[]}"), "devices[0]: x: containerEdits is no object" },
		{ SPEC(DEVICE("\"env\":[\"A=1\",\"A\"]")), "devices[0]: x: containerEdits: env[1]: is not NAME=VALUE" },
		{ SPEC(DEVICE("\"env\":[\"=1\"]")), "devices[0]: x: containerEdits: env[0]: is not NAME=VALUE" },
		{ SPEC(DEVICE("\"env\":{}")), "devices[0]: x: containerEdits: env is no list" },
		{ SPEC(DEVICE("\"mounts\":[{\"hostPath\":\"/a\"}]")),
		  "devices[0]: x: containerEdits: mounts[0]: containerPath is missing" },
		{ SPEC(DEVICE("\"mounts\":[{\"hostPath\":\"\",\"containerPath\":\"/\"}]")),
		  "devices[0]: x: containerEdits: mounts[0]: hostPath is empty" },
		{ SPEC(DEVICE("\"mounts\":[{\"hostPath\":\"/\",\"containerPath\":\"/\",\"options\":[7]}]")),
		  "devices[0]: x: containerEdits: mounts[0]: options[0] is no text" },
		{ SPEC(DEVICE("\"deviceNodes\":[{\"path\":\"/d\",\"permissions\":\"rx\"}]")),
		  "devices[0]: x: containerEdits: deviceNodes[0]: permissions \"rx\" are not of r, w, m" },
		{ SPEC(DEVICE("\"hooks\":[{\"hookName\":\"x\",\"path\":\"/p\"}]")),
		  "devices[0]: x: containerEdits: hooks[0]: hookName \"x\" is no OCI hook" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct cdi_spec *s = NULL;
		struct hm_err e = { 0 };

		if (cdi_spec_parse(cases[i].text, strlen(cases[i].text), &s, &e) == 0)
			fail_msg("taken: %s", cases[i].text);
		assert_null(s);
		assert_memory_equal(e.msg, "CDI spec: ", 10);
		assert_string_equal(e.msg + 10, cases[i].msg);
	}
}

static void *sweep_malloc(size_t n)
{
	return malloc(n);
}

static void sweep_free(void *p)
{
	free(p);
}

/* Read, copy its edits, write them, read that back. */
static int scenario(void *arg)
{
	cJSON_Hooks hooks = { sweep_malloc, sweep_free };
	hm_auto(cdi_spec) *s = NULL, *again = NULL;
	hm_auto_str text = { 0 };
	struct hm_err e;
	int r;

	(void)arg;
	cJSON_InitHooks(&hooks); /* cJSON's allocations fail too */
	r = cdi_spec_parse(nvidia, sizeof nvidia - 1, &s, &e);
	if (r == 0)
		r = cdi_spec_write("hami.io/vgpu", "v.1", &s->edits, &text, &e);
	if (r == 0)
		r = cdi_spec_parse(str_text(&text), text.n, &again, &e);
	cJSON_InitHooks(NULL);
	if (r == 0)
		assert_string_equal(again->devices[0].edits.hooks[0].args[1], "update-ldcache");
	return r;
}

static void sweep(void **state)
{
	(void)state;
	sweep_check("cdi spec", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_nvidia),  cmocka_unit_test(reads_yaml),
		cmocka_unit_test(writes),        cmocka_unit_test(writes_many_devices),
		cmocka_unit_test(write_refuses), cmocka_unit_test(read_refuses),
		cmocka_unit_test(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
