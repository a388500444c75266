#include "agent/container/hami_cdi.h"

#include <string.h>
#include <sys/stat.h>

#include "agent/options/options.h"
#include "base/str.h"
#include "contract/hami.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"
#include "unit/model/make_inventory.h"

static struct option_spec table[AGENT_OPTION_COUNT];
static struct agent_options options;
static struct hami_answer_config config;
static struct inventory *inventory;
static struct driver_edits *driver;
static char spec_path[256], root[256];

static const char nvidia[] = "{\"cdiVersion\":\"0.5.0\",\"kind\":\"nvidia.com/gpu\",\"devices\":["
			     "{\"name\":\"0\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia0\"}]}},"
			     "{\"name\":\"2\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia2\"}]}}],"
			     "\"containerEdits\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=all\",\"X=1\"],"
			     "\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/usr/bin/nvidia-cdi-hook\","
			     "\"args\":[\"nvidia-cdi-hook\",\"update-ldcache\"]}]}}\n";

static int setup(void **state)
{
	struct hm_err e;

	if (temp_setup(state) < 0)
		return -1;
	agent_options_init(&options, table);
	options.mode = "slices";
	inventory = make_inventory(3, 81920);
	config = (struct hami_answer_config) { .strategies = HAMI_LIST_CDI_CRI };
	temp_write("nvidia.json", nvidia);
	snprintf(spec_path, sizeof spec_path, "%s", temp_path("nvidia.json"));
	snprintf(root, sizeof root, "%s", temp_path(""));
	options.nvidia_cdi_spec = spec_path;
	return driver_edits_new(&options, &driver, &e);
}

static int teardown(void **state)
{
	driver_edits_free(driver);
	agent_options_fini(&options);
	inventory_free(inventory);
	return temp_teardown(state);
}

static unsigned write_specs(void)
{
	unsigned extras = 99;
	struct hm_err e;

	if (hami_cdi_write(&config, driver, inventory, temp_path("cdi"), &extras, &e) < 0)
		fail_msg("%s", e.msg);
	return extras;
}

static const char *text_of(const char *name)
{
	static struct str text;
	struct hm_err e;

	if (file_read(temp_path(name), 1 << 20, &text, &e) < 0)
		fail_msg("%s", e.msg);
	return str_text(&text);
}

/* Card 1 is not in the driver's spec. What pod or image say of NVIDIA_VISIBLE_DEVICES must not count besides. */
static void a_device_for_each_card(void **state)
{
	(void)state;
	assert_int_equal(write_specs(), 0);
	assert_string_equal(text_of("cdi/k8s.device-plugin.nvidia.com-gpu.json"),
			    "{\"cdiVersion\":\"0.6.0\",\"kind\":\"k8s.device-plugin.nvidia.com/gpu\",\"devices\":["
			    "{\"name\":\"GPU-00000000-0000-0000-0000-000000000000\",\"containerEdits\":{"
			    "\"deviceNodes\":[{\"path\":\"/dev/nvidia0\"}]}},"
			    "{\"name\":\"GPU-00000000-0000-0000-0000-000000000002\",\"containerEdits\":{"
			    "\"deviceNodes\":[{\"path\":\"/dev/nvidia2\"}]}}],"
			    "\"containerEdits\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\",\"X=1\"],"
			    "\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/usr/bin/nvidia-cdi-hook\","
			    "\"args\":[\"nvidia-cdi-hook\",\"update-ldcache\"]}]}}\n");
	assert_int_equal(temp_count("cdi"), 1);
	config.ids_by_index = true;
	write_specs();
	assert_non_null(strstr(text_of("cdi/k8s.device-plugin.nvidia.com-gpu.json"), "\"name\":\"2\""));
}

/* Without a spec of the driver's: what lies below HAMi's driver root, which we see at another path. */
static void the_drivers_root_gives_libraries(void **state)
{
	static const char mount[] = "{\"hostPath\":\"/run/nvidia/driver/usr/lib64/libcuda.so.1\",\"containerPath\":"
				    "\"/usr/lib64/libcuda.so.1\"";
	static const struct {
		const char *path, *hook;
	} rows[] = {
		{ "/opt/nvidia-ctk",
		  "\"hooks\":[{\"hookName\":\"createContainer\",\"path\":\"/opt/nvidia-ctk\",\"args\":"
		  "[\"nvidia-ctk\",\"hook\",\"update-ldcache\",\"--folder\",\"/usr/lib64\"]}]" },
		{ "/opt/nvidia-cdi-hook",
		  "\"path\":\"/opt/nvidia-cdi-hook\",\"args\":[\"nvidia-cdi-hook\",\"update-ldcache\","
		  "\"--folder\",\"/usr/lib64\"]}]" },
	};
	struct hm_err e;

	(void)state;
	assert_int_equal(file_mkdirs(temp_path("usr/lib64"), 0755, &e), 0);
	assert_int_equal(file_mkdirs(temp_path("dev"), 0755, &e), 0);
	temp_write("usr/lib64/libcuda.so.1", "");
	temp_write("dev/nvidia0", "");
	options.mode = "hami";
	options.nvidia_cdi_spec = NULL;
	options.device_root = options.hami.driver_root_ctr_path = root;
	options.hami.nvidia_driver_root = "/run/nvidia/driver";
	write_specs();
	assert_non_null(strstr(text_of("cdi/k8s.device-plugin.nvidia.com-gpu.json"), mount));
	assert_null(strstr(text_of("cdi/k8s.device-plugin.nvidia.com-gpu.json"), "hooks"));
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		options.hami.nvidia_cdi_hook_path = rows[i].path;
		write_specs();
		assert_non_null(strstr(text_of("cdi/k8s.device-plugin.nvidia.com-gpu.json"), mount));
		assert_non_null(strstr(text_of("cdi/k8s.device-plugin.nvidia.com-gpu.json"), rows[i].hook));
	}
	options.hami.driver_root_ctr_path = "/nonexistent";
	write_specs();
	assert_null(strstr(text_of("cdi/k8s.device-plugin.nvidia.com-gpu.json"), "libcuda"));
}

/* Card 2 is cut into one instance that the driver's spec has, one that only the list of minors has, and one that
 * neither has. */
static void a_device_for_each_mig_device(void **state)
{
	struct card *card = &inventory->cards[2];

	(void)state;
	temp_write("nvidia.json",
		   "{\"cdiVersion\":\"0.5.0\",\"kind\":\"nvidia.com/gpu\",\"devices\":["
		   "{\"name\":\"MIG-a\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/a\"}]}},"
		   "{\"name\":\"2\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia2\"}]}}]}");
	temp_write("mig-minors", "gpu2/gi3/access 30\ngpu2/gi3/ci0/access 31\n");
	options.mig_minors = temp_path("mig-minors");
	card->mig_enabled = true;
	card->mig.device_count = 3;
	card->mig.devices[0] = (struct mig_device) { .uuid = "MIG-a", .gi = 1 };
	card->mig.devices[1] = (struct mig_device) { .uuid = "MIG-b", .gi = 3 };
	card->mig.devices[2] = (struct mig_device) { .uuid = "MIG-c", .gi = 4 };
	write_specs();
	assert_string_equal(text_of("cdi/k8s.device-plugin.nvidia.com-gpu.json"),
			    "{\"cdiVersion\":\"0.6.0\",\"kind\":\"k8s.device-plugin.nvidia.com/gpu\",\"devices\":["
			    "{\"name\":\"MIG-a\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/a\"}]}},"
			    "{\"name\":\"MIG-b\",\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/nvidia2\"},"
			    "{\"path\":\"/dev/nvidia-caps/nvidia-cap30\",\"hostPath\":\"/dev/nvidia-caps/"
			    "nvidia-cap30\",\"permissions\":\"rw\"},"
			    "{\"path\":\"/dev/nvidia-caps/nvidia-cap31\",\"hostPath\":\"/dev/nvidia-caps/"
			    "nvidia-cap31\",\"permissions\":\"rw\"}]}}],"
			    "\"containerEdits\":{\"env\":[\"NVIDIA_VISIBLE_DEVICES=void\"]}}\n");
}

static void what_is_the_same_stays(void **state)
{
	struct stat before, after;

	(void)state;
	write_specs();
	assert_int_equal(stat(temp_path("cdi/k8s.device-plugin.nvidia.com-gpu.json"), &before), 0);
	write_specs();
	assert_int_equal(stat(temp_path("cdi/k8s.device-plugin.nvidia.com-gpu.json"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
}

static void make_nodes(void)
{
	struct hm_err e;

	assert_int_equal(file_mkdirs(temp_path("dev/infiniband"), 0755, &e), 0);
	assert_int_equal(file_mkdirs(temp_path("dev/nvidia-caps-imex-channels"), 0755, &e), 0);
	temp_write("dev/infiniband/uverbs0", "");
	temp_write("dev/infiniband/uverbs1", "");
	temp_write("dev/nvidia-caps-imex-channels/channel0", "");
}

/* Wanted and there: a spec; wanted and not there: none, for a name without a spec would keep its container from
 * starting. */
static void extras_that_are_there(void **state)
{
	(void)state;
	config.dev_root = root;
	make_nodes();
	config.extras = HAMI_EXTRA_MOFED | HAMI_EXTRA_GDS | HAMI_EXTRA_IMEX;
	assert_int_equal(write_specs(), HAMI_EXTRA_MOFED | HAMI_EXTRA_IMEX);
	assert_int_equal(temp_count("cdi"), 3);
	assert_non_null(strstr(text_of("cdi/k8s.device-plugin.nvidia.com-mofed.json"),
			       "\"kind\":\"k8s.device-plugin.nvidia.com/mofed\",\"devices\":[{\"name\":\"all\","
			       "\"containerEdits\":{\"deviceNodes\":[{\"path\":\"/dev/infiniband/uverbs0\""));
	assert_non_null(strstr(text_of("cdi/k8s.device-plugin.nvidia.com-imex-channel.json"), "\"name\":\"0\""));
	config.extras = HAMI_EXTRA_IMEX;
	assert_int_equal(write_specs(), HAMI_EXTRA_IMEX);
	assert_false(temp_exists("cdi/k8s.device-plugin.nvidia.com-mofed.json"));
}

static void the_driver_s_spec_is_missing(void **state)
{
	unsigned extras;
	struct hm_err e;

	(void)state;
	options.nvidia_cdi_spec = temp_path("none.json");
	assert_int_equal(hami_cdi_write(&config, driver, inventory, temp_path("cdi"), &extras, &e), -HM_EAGAIN);
	assert_non_null(strstr(e.msg, "none.json"));
}

static int everything(void *arg)
{
	struct cdi_edits edits = { 0 };
	struct hm_err e;
	int r;

	(void)arg;
	r = hami_cdi_add_extras(&config, &edits, &e);
	cdi_edits_fini(&edits);
	return r;
}

static void memory_runs_out(void **state)
{
	(void)state;
	config.dev_root = root;
	make_nodes();
	config.extras = HAMI_EXTRA_MOFED | HAMI_EXTRA_IMEX;
	sweep_check("extras", everything, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_drivers_root_gives_libraries),
		TEST(a_device_for_each_mig_device),
		TEST(a_device_for_each_card),
		TEST(what_is_the_same_stays),
		TEST(extras_that_are_there),
		TEST(the_driver_s_spec_is_missing),
		TEST(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
