#include "agent/options/paths.h"

#include <string.h>

#include "harness/unit.h"

static struct agent_paths paths_of(const char *kubelet, const char *plugin_dir)
{
	struct option_spec table[AGENT_OPTION_COUNT];
	struct agent_options o;
	struct agent_paths p;
	struct hm_err e;

	agent_options_init(&o, table);
	o.state_dir = "/var/lib/hami-vgpu//";
	o.kubelet_socket = kubelet;
	o.device_plugin_dir = plugin_dir;
	if (agent_paths_init(&p, &o, &e) < 0)
		fail_msg("%s", e.msg);
	return p;
}

static const char *socket_of(const struct agent_paths *p)
{
	static struct agent_path out;
	struct hm_err e;

	if (agent_path_socket(p, "hami-vgpu.sock", &out, &e) < 0)
		fail_msg("%s", e.msg);
	return out.s;
}

static void the_layout_is_the_contracts(void **state)
{
	struct agent_paths p = paths_of("/k/kubelet.sock", NULL);

	(void)state;
	assert_string_equal(p.claims.s, "/var/lib/hami-vgpu/claims");
	assert_string_equal(p.counter.s, "/var/lib/hami-vgpu/counter");
	assert_string_equal(p.node.s, "/var/lib/hami-vgpu/node");
	assert_string_equal(socket_of(&p), "/k/hami-vgpu.sock");
	assert_string_equal(p.checkpoint.s, "/k/kubelet_internal_checkpoint");
	assert_string_equal(p.kubelet_name, "kubelet.sock");
	assert_string_equal(agent_path_alloc(&p, 7, "").s, "/var/lib/hami-vgpu/alloc/7");
	assert_string_equal(agent_path_alloc(&p, 7, "usage").s, "/var/lib/hami-vgpu/alloc/7/usage");
	assert_string_equal(agent_path_spec(&p, 7).s, "/var/run/cdi/hami-vgpu-v.7.json");
}

static void the_kubelets_name_counts_only_in_the_plugin_folder(void **state)
{
	struct agent_paths other;

	(void)state;
	assert_string_equal(paths_of("/k/kubelet.sock", "/k/").kubelet_name, "kubelet.sock");
	assert_string_equal(paths_of("/k/kubelet.sock", "/other").kubelet_name, "");
	other = paths_of("/k/kubelet.sock", "/other");
	assert_string_equal(socket_of(&other), "/other/hami-vgpu.sock");
	assert_string_equal(paths_of("/kubelet.sock", NULL).plugin_dir.s, "/");
	assert_string_equal(paths_of("", NULL).plugin_dir.s, "/var/lib/kubelet/device-plugins");
	assert_string_equal(paths_of("", "/other").plugin_dir.s, "/other");
	assert_string_equal(paths_of("", "/other").kubelet_name, "");
}

static void a_socket_path_has_107_bytes(void **state)
{
	struct option_spec table[AGENT_OPTION_COUNT];
	struct agent_options o;
	struct agent_path socket;
	struct agent_paths p;
	char dir[128] = "/";
	struct hm_err e;

	(void)state;
	agent_options_init(&o, table);
	memset(dir + 1, 'x', 92);
	o.device_plugin_dir = dir; /* 93 + "/hami-vgpu.sock" = 108 */
	assert_int_equal(agent_paths_init(&p, &o, &e), 0);
	assert_int_equal(agent_path_socket(&p, "hami-vgpu.sock", &socket, &e), -HM_EINVAL);
	assert_non_null(strstr(e.msg, "longer than the 107 bytes of a socket path"));
	assert_int_equal(agent_path_socket(&p, "hami-vgp.sock", &socket, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_layout_is_the_contracts),
		cmocka_unit_test(the_kubelets_name_counts_only_in_the_plugin_folder),
		cmocka_unit_test(a_socket_path_has_107_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
