#include "agent/container/hami_hook.h"

#include <string.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/str.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"
#include "unit/model/make_inventory.h"

static struct option_spec table[AGENT_OPTION_COUNT];
static struct agent_options options;
static char root[256], library[256];
static struct hami_hook *hook;

static int setup(void **state)
{
	if (temp_setup(state) < 0)
		return -1;
	snprintf(root, sizeof root, "%s", temp_path(""));
	snprintf(library, sizeof library, "%s", temp_path("lib"));
	temp_write("lib", "\177ELF ours");
	agent_options_init(&options, table);
	options.mode = "slices";
	options.hami.hook_path = root;
	return 0;
}

static int teardown(void **state)
{
	hami_hook_free(hook);
	hook = NULL;
	agent_options_fini(&options);
	return temp_teardown(state);
}

static void open_hook(void)
{
	struct hm_err e;

	hami_hook_free(hook);
	if (hami_hook_new(&options, library, &hook, &e) < 0)
		fail_msg("%s", e.msg);
}

static void assert_holds(const char *name, const char *want)
{
	hm_auto_str text = { 0 };
	struct hm_err e;

	if (file_read(temp_path(name), 1 << 20, &text, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(str_text(&text), want);
}

static ino_t inode(const char *name)
{
	struct stat st;

	assert_int_equal(stat(temp_path(name), &st), 0);
	return st.st_ino;
}

/* Not mounted: nothing is made, and the monitor has no folder. */
static void without_the_folder(void **state)
{
	(void)state;
	open_hook();
	assert_false(temp_exists("vgpu"));
	assert_null(hami_hook_monitor_dir(hook));
	options.hami_monitor_dir = "/m";
	open_hook();
	assert_string_equal(hami_hook_monitor_dir(hook), "/m");
}

/* HAMi's old library stays with those who have it mapped: another file takes its name. */
static void the_library_and_what_names_it(void **state)
{
	char want[512];
	ino_t before;

	(void)state;
	assert_int_equal(mkdir(temp_path("vgpu"), 0755), 0);
	temp_write("vgpu/libvgpu.so", "\177ELF HAMi's");
	temp_write("vgpu/license", "L");
	before = inode("vgpu/libvgpu.so");
	open_hook();
	assert_holds("vgpu/libvgpu.so", "\177ELF ours");
	assert_int_not_equal(inode("vgpu/libvgpu.so"), before);
	snprintf(want, sizeof want, "%s/vgpu/libvgpu.so\n", root);
	assert_holds("vgpu/ld.so.preload", want);
	assert_holds("vgpu/license", "L");
	assert_int_equal(temp_count("vgpu"), 3);
	before = inode("vgpu/libvgpu.so");
	open_hook();
	assert_int_equal(inode("vgpu/libvgpu.so"), before);
	snprintf(want, sizeof want, "%s/vgpu/containers", root);
	assert_string_equal(hami_hook_monitor_dir(hook), want);
}

static void options_become_the_answer(void **state)
{
	const struct hami_answer_config *a;

	(void)state;
	open_hook();
	a = hami_hook_answer(hook);
	assert_int_equal(a->strategies, HAMI_LIST_ENVVAR);
	assert_int_equal(a->extras, 0);
	assert_false(a->ids_by_index);
	assert_string_equal(a->log_level, "1");
	assert_string_equal(a->dev_root, "/");
	assert_string_equal(a->annotation_prefix, "cdi.k8s.io/");
	snprintf(options.hami.device_list_strategy.text, OPTION_LIST_BYTES, "volume-mounts,cdi-cri");
	snprintf(options.hami.imex_channel_ids.text, OPTION_LIST_BYTES, "0");
	options.hami.device_id_strategy = "index";
	options.hami.gds = options.hami.pass_device_specs = options.hami.disable_core_limit = true;
	options.hami.nvidia_driver_root = "/run/nvidia/driver";
	hami_hook_configure(hook);
	assert_int_equal(a->strategies, HAMI_LIST_VOLUME_MOUNTS | HAMI_LIST_CDI_CRI);
	assert_int_equal(a->extras, HAMI_EXTRA_IMEX | HAMI_EXTRA_GDS);
	assert_true(a->ids_by_index && a->pass_device_specs && a->disable_core_limit);
	assert_string_equal(a->dev_root, "/run/nvidia/driver");
	options.hami.dev_root = "/d";
	hami_hook_configure(hook);
	assert_string_equal(a->dev_root, "/d");
}

/* Classic binding with a CDI strategy alone. */
static void cdi_specs(void **state)
{
	static const struct {
		const char *binding, *strategy;
		bool there;
	} rows[] = {
		{ "late", "cdi-cri", false },
		{ "classic", "envvar", false },
		{ "classic", "cdi-annotations", true },
	};
	struct inventory *cards = make_inventory(1, 1000);
	struct driver_edits *driver;
	struct hm_err e;

	(void)state;
	assert_int_equal(mkdir(temp_path("dev"), 0755), 0);
	temp_write("dev/nvidia0", "");
	options.device_root = root;
	options.cdi_dir = strdup(temp_path("cdi"));
	assert_int_equal(driver_edits_new(&options, &driver, &e), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		options.binding = rows[i].binding;
		snprintf(options.hami.device_list_strategy.text, OPTION_LIST_BYTES, "%s", rows[i].strategy);
		open_hook();
		hami_hook_take(hook, driver, cards);
		assert_int_equal(temp_exists("cdi/k8s.device-plugin.nvidia.com-gpu.json"), rows[i].there);
	}
	driver_edits_free(driver);
	inventory_free(cards);
	free((char *)options.cdi_dir);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_the_folder),
		TEST(the_library_and_what_names_it),
		TEST(options_become_the_answer),
		TEST(cdi_specs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
