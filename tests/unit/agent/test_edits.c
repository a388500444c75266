#include "agent/container/edits.h"

#include <string.h>
#include <unistd.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"
#include "unit/agent/checkpoint_text.h"
#include "unit/model/make_inventory.h"

static struct option_spec table[AGENT_OPTION_COUNT];
static struct agent_options options;
static struct agent_paths paths;
static struct inventory *inventory;
static struct edits *maker;
static enum edits_way way = EDITS_SPEC;
static bool uncontrolled, mig;

static int setup(void **state)
{
	struct hm_err e;

	agent_options_init(&options, table);
	options.mode = "slices";
	inventory = make_inventory(3, 1000);
	return temp_setup(state) < 0 || agent_paths_init(&paths, &options, &e) < 0 ||
			       edits_new(&options, &paths, "/lib/x", NULL, &maker, &e) < 0
		       ? -1
		       : 0;
}

static int teardown(void **state)
{
	edits_free(maker);
	inventory_free(inventory);
	return temp_teardown(state);
}

static struct claim two_cards(void)
{
	struct claim c = make_claim(17, "u", "", "x", NULL);

	c.card_count = 2;
	for (size_t i = 0; i < 2; i++) {
		snprintf(c.cards[i].uuid, sizeof c.cards[i].uuid, "%s", inventory->cards[i + 1].uuid);
		c.cards[i].slot = 3 + (unsigned)i;
	}
	return c;
}

/* One line an edit: "env A=B", "mount HOST INSIDE ro", "node PATH HOST". */
static char *make(const char **error)
{
	static char text[4096];
	static struct hm_err e;
	struct claim c = two_cards();
	struct cdi_edits edits;
	size_t at = 0;

	c.uncontrolled = uncontrolled;
	for (unsigned i = 0; mig && i < 2; i++) { /* two devices of one card */
		snprintf(c.cards[i].uuid, sizeof c.cards[i].uuid, "%s", inventory->cards[1].uuid);
		snprintf(c.cards[i].mig, sizeof c.cards[i].mig, "MIG-%u", i);
		c.cards[i].gi = 3 + i;
	}

	text[0] = '\0';
	*error = "";
	if (edits_make(maker, &c, inventory, way, &edits, &e) < 0) {
		*error = e.msg;
		claim_fini(&c);
		return text;
	}
	for (size_t i = 0; i < edits.env_count; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "env %s=%s\n", edits.envs[i].name,
				       edits.envs[i].value);
	for (size_t i = 0; i < edits.mount_count; i++) {
		const struct cdi_mount *m = &edits.mounts[i];
		bool ro = false;

		for (size_t k = 0; k < m->option_count; k++)
			ro |= strcmp(m->options[k], "ro") == 0;
		at += (size_t)snprintf(text + at, sizeof text - at, "mount %s %s %s\n", m->host_path, m->container_path,
				       ro ? "ro" : "rw");
	}
	for (size_t i = 0; i < edits.node_count; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "node %s %s\n", edits.nodes[i].path,
				       edits.nodes[i].host_path != NULL ? edits.nodes[i].host_path : "-");
	cdi_edits_fini(&edits);
	claim_fini(&c);
	return text;
}

#define HAS(text, line)                                                                                                \
	do {                                                                                                           \
		if (strstr(text, line "\n") == NULL)                                                                   \
			fail_msg("no \"%s\" in:\n%s", line, text);                                                     \
	} while (0)

static void ours_are_always_there(void **state)
{
	const char *error;
	char *text;

	(void)state;
	options.device_root = temp_path("");
	temp_write("f", "");
	struct hm_err e;
	assert_int_equal(file_mkdirs(temp_path("dev"), 0755, &e), 0);
	temp_write("dev/nvidia1", "");
	temp_write("dev/nvidia2", "");
	text = make(&error);
	assert_string_equal(error, "");
	HAS(text, "env HAMI_VGPU_UUID=GPU-00000000-0000-0000-0000-000000000001/3,"
		  "GPU-00000000-0000-0000-0000-000000000002/4");
	HAS(text, "env NVIDIA_VISIBLE_DEVICES=GPU-00000000-0000-0000-0000-000000000001,"
		  "GPU-00000000-0000-0000-0000-000000000002");
	HAS(text, "mount /lib/x /run/hami-vgpu/libvgpu.so ro");
	HAS(text, "mount /var/lib/hami-vgpu/alloc/17/limits /run/hami-vgpu/limits ro");
	HAS(text, "mount /var/lib/hami-vgpu/alloc/17/usage /run/hami-vgpu/usage rw");
	HAS(text, "mount /var/lib/hami-vgpu/alloc/17/ld.so.preload /etc/ld.so.preload ro");
	assert_null(strstr(text, "LD_PRELOAD"));
	assert_null(strstr(text, "nvidia0"));
	assert_null(strstr(text, "nvidiactl")); /* not there, so not asked for */
}

static struct hami_answer_config hami = { .hook_path = "/usr/local", .strategies = HAMI_LIST_ENVVAR };

/* Under HAMi: its environment instead of the slices', ours in files all the same. */
static void hami_s_resources(void **state)
{
	const char *error;
	char *text;
	struct hm_err e;

	(void)state;
	edits_free(maker);
	assert_int_equal(edits_new(&options, &paths, "/lib/x", &hami, &maker, &e), 0);
	way = EDITS_ANSWER; /* NVIDIA's runtime brings the driver: no node is asked for */
	text = make(&error);
	assert_string_equal(error, "");
	HAS(text, "env CUDA_DEVICE_SM_LIMIT_0=25");
	HAS(text, "mount /lib/x /usr/local/vgpu/libvgpu.so ro");
	HAS(text, "mount /var/lib/hami-vgpu/alloc/17/limits /run/hami-vgpu/limits ro");
	HAS(text, "mount /var/lib/hami-vgpu/alloc/17/ld.so.preload /etc/ld.so.preload ro");
	assert_null(strstr(text, "HAMI_VGPU_UUID"));
	assert_null(strstr(text, "/tmp/vgpulock"));
	assert_null(strstr(text, "node "));
	uncontrolled = true;
	text = make(&error);
	assert_null(strstr(text, "ld.so.preload"));
	HAS(text, "mount /var/lib/hami-vgpu/alloc/17/limits /run/hami-vgpu/limits ro");
	way = EDITS_SPEC;
	options.device_root = temp_path("none");
	make(&error);
	assert_non_null(strstr(error, "/dev/nvidia1 is not there"));
	way = EDITS_SPEC;
	uncontrolled = false;
}

static void roots_give_nodes_and_libraries(void **state)
{
	static char root[300], want[900];
	const char *error;
	struct hm_err e;
	char *text;

	(void)state;
	snprintf(root, sizeof root, "%s", temp_path("root"));
	options.driver_root = root;
	assert_int_equal(file_mkdirs(temp_path("root/dev"), 0755, &e), 0);
	assert_int_equal(file_mkdirs(temp_path("root/usr/lib64"), 0755, &e), 0);
	temp_write("root/dev/nvidia1", "");
	temp_write("root/dev/nvidiactl", "");
	temp_write("root/usr/lib64/libcuda.so.1", "");
	make(&error);
	snprintf(want, sizeof want, "the card's device node %s/dev/nvidia2 is not there", root);
	assert_string_equal(error, want);
	temp_write("root/dev/nvidia2", "");
	text = make(&error);
	assert_string_equal(error, "");
	snprintf(want, sizeof want, "node /dev/nvidia2 %s/dev/nvidia2\n", root);
	assert_non_null(strstr(text, want));
	snprintf(want, sizeof want, "node /dev/nvidiactl %s/dev/nvidiactl\n", root);
	assert_non_null(strstr(text, want));
	snprintf(want, sizeof want, "mount %s/usr/lib64/libcuda.so.1 /usr/lib64/libcuda.so.1 ro\n", root);
	assert_non_null(strstr(text, want));
}

static void the_drivers_spec_is_copied_for_just_these_cards(void **state)
{
	static char spec[300];
	const char *error;
	char *text;

	(void)state;
	snprintf(spec, sizeof spec, "%s", temp_path("nvidia.yaml"));
	options.nvidia_cdi_spec = spec;
	make(&error);
	assert_non_null(strstr(error, "nvidia.yaml is not there"));
	temp_write("nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"
				  "containerEdits:\n  env: [NVIDIA_VISIBLE_DEVICES=void, X=1]\n"
				  "  deviceNodes: [{path: /dev/nvidiactl}]\n"
				  "devices:\n"
				  "- {name: '0', containerEdits: {deviceNodes: [{path: /dev/nvidia0}]}}\n"
				  "- {name: gpu1, containerEdits: {deviceNodes: [{path: /dev/nvidia1}]}}\n"
				  "- {name: all, containerEdits: {deviceNodes: [{path: /dev/nvidia9}]}}\n");
	make(&error);
	assert_non_null(strstr(error, "has no device \"GPU-00000000-0000-0000-0000-000000000002\", \"2\" or \"gpu2\""));
	temp_write("nvidia.yaml", "cdiVersion: 0.5.0\nkind: nvidia.com/gpu\n"
				  "containerEdits:\n  env: [NVIDIA_VISIBLE_DEVICES=void, X=1]\n"
				  "devices:\n"
				  "- {name: gpu1, containerEdits: {deviceNodes: [{path: /dev/nvidia1}]}}\n"
				  "- {name: GPU-00000000-0000-0000-0000-000000000002,\n"
				  "   containerEdits: {deviceNodes: [{path: /dev/nvidia2, hostPath: /h}]}}\n"
				  "- {name: all, containerEdits: {deviceNodes: [{path: /dev/nvidia9}]}}\n");
	text = make(&error); /* a changed file is read anew */
	assert_string_equal(error, "");
	HAS(text, "env X=1");
	HAS(text, "env NVIDIA_VISIBLE_DEVICES=GPU-00000000-0000-0000-0000-000000000001,"
		  "GPU-00000000-0000-0000-0000-000000000002");
	assert_null(strstr(text, "void"));
	HAS(text, "node /dev/nvidia1 -");
	HAS(text, "node /dev/nvidia2 /h");
	assert_null(strstr(text, "nvidia9"));
}

static void a_card_that_is_gone_is_named(void **state)
{
	const char *error;

	(void)state;
	inventory->count = 2;
	make(&error);
	assert_string_equal(error, "card GPU-00000000-0000-0000-0000-000000000002 is not on this node now");
}

static int scenario(void *arg)
{
	struct cdi_edits edits;
	struct hm_err e;
	int r = edits_make(maker, arg, inventory, EDITS_SPEC, &edits, &e);

	if (r == 0)
		cdi_edits_fini(&edits);
	return r;
}

static void allocation_failures(void **state)
{
	struct claim c = two_cards();
	struct hm_err e;

	(void)state;
	options.device_root = temp_path("");
	assert_int_equal(file_mkdirs(temp_path("dev"), 0755, &e), 0);
	temp_write("dev/nvidia1", "");
	temp_write("dev/nvidia2", "");
	sweep_check("edits", scenario, &c);
	claim_fini(&c);
}

/* The card keeps their limits: no libvgpu, but the mount that a running container is known by. */
static void mig_devices_come_with_their_nodes(void **state)
{
	const char *error;
	struct hm_err e;
	char *text, line[300];

	(void)state;
	mig = true;
	options.device_root = temp_path("");
	options.mig_minors = temp_path("mig-minors");
	assert_int_equal(file_mkdirs(temp_path("dev"), 0755, &e), 0);
	temp_write("dev/nvidia1", "");
	make(&error);
	assert_non_null(strstr(error, "mig-minors"));
	temp_write("mig-minors", "config 1\nmonitor 2\ngpu1/gi3/access 30\ngpu1/gi3/ci0/access 31\n"
				 "gpu11/gi4/access 98\ngpu1/gi4/access 39\ngpu1/gi4/ci0/access 40\n");
	text = make(&error);
	assert_string_equal(error, "");
	HAS(text, "env NVIDIA_VISIBLE_DEVICES=MIG-0,MIG-1");
	for (unsigned i = 0; i < 4; i++) {
		static const unsigned minors[] = { 30, 31, 39, 40 };

		snprintf(line, sizeof line, "node /dev/nvidia-caps/nvidia-cap%u %sdev/nvidia-caps/nvidia-cap%u",
			 minors[i], temp_path(""), minors[i]);
		(void)line;
		snprintf(line, sizeof line, "node /dev/nvidia-caps/nvidia-cap%u ", minors[i]);
		assert_non_null(strstr(text, line));
	}
	assert_non_null(strstr(text, "node /dev/nvidia1 "));
	assert_null(strstr(strstr(text, "node /dev/nvidia1 ") + 1, "node /dev/nvidia1 "));
	assert_null(strstr(text, "/lib/x"));
	assert_null(strstr(text, "ld.so.preload"));
	assert_non_null(strstr(text, "mount /var/lib/hami-vgpu/alloc/17/usage /run/hami-vgpu/usage rw"));
	mig = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(ours_are_always_there),
		TEST(mig_devices_come_with_their_nodes),
		TEST(roots_give_nodes_and_libraries),
		TEST(the_drivers_spec_is_copied_for_just_these_cards),
		TEST(a_card_that_is_gone_is_named),
		TEST(hami_s_resources),
		TEST(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
