/* Expected values: what HAMi v2.10.0's plugin answered (its recorded Allocate answers), and where ours differs, why. */
#include "agent/container/hami_answer.h"

#include <string.h>
#include <sys/stat.h>

#include "contract/container.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/model/make_inventory.h"

#define A "GPU-00000000-0000-0000-0000-000000000000"
#define B "GPU-00000000-0000-0000-0000-000000000001"

static struct inventory *inventory;
static struct hami_answer_config config;
static struct claim claim;

static int setup(void **state)
{
	inventory = make_inventory(3, 81920);
	config = (struct hami_answer_config) { .hook_path = "/usr/local",
					       .strategies = HAMI_LIST_ENVVAR,
					       .log_level = "1",
					       .annotation_prefix = "cdi.k8s.io/" };
	claim = (struct claim) { .number = 7, .pod_uid = "9d2e0a86-0b58-4b57-9fd2-2b1a3e8d7c11" };
	return temp_setup(state);
}

static int teardown(void **state)
{
	inventory_free(inventory);
	return temp_teardown(state);
}

static void card(size_t index, uint64_t mib, unsigned cores)
{
	struct claim_card *c = &claim.cards[claim.card_count++];

	snprintf(c->uuid, sizeof c->uuid, "%s", inventory->cards[index].uuid);
	c->memory_bytes = mib << 20;
	c->cores = cores;
}

static void cards_of_claim(const struct card **out)
{
	for (size_t i = 0; i < claim.card_count; i++)
		out[i] = inventory_find(inventory, claim.cards[i].uuid);
}

static const char *text_of(const struct cdi_edits *edits)
{
	static char text[4096];
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; i < edits->env_count; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "%s=%s\n", edits->envs[i].name,
				       edits->envs[i].value);
	for (size_t i = 0; i < edits->mount_count; i++) {
		const struct cdi_mount *m = &edits->mounts[i];
		bool ro = false;

		for (size_t k = 0; k < m->option_count; k++)
			ro |= strcmp(m->options[k], "ro") == 0;
		at += (size_t)snprintf(text + at, sizeof text - at, "%s %s <- %s\n", ro ? "ro" : "rw",
				       m->container_path, m->host_path);
	}
	for (size_t i = 0; i < edits->node_count; i++)
		at += (size_t)snprintf(text + at, sizeof text - at, "node %s <- %s %s\n", edits->nodes[i].path,
				       edits->nodes[i].host_path, edits->nodes[i].permissions);
	return text;
}

static const char *make(bool late)
{
	const struct card *cards[HM_MAX_CARDS];
	struct cdi_edits edits = { 0 };
	const char *text;
	struct hm_err e;

	cards_of_claim(cards);
	if (hami_answer_edits(&config, &claim, cards, "/state/lib/libvgpu.so.1", late, &edits, &e) < 0)
		fail_msg("%s", e.msg);
	text = text_of(&edits);
	cdi_edits_fini(&edits);
	return text;
}

#define CACHE "CUDA_DEVICE_MEMORY_SHARED_CACHE=/usr/local/vgpu/9d2e0a86-0b58-4b57-9fd2-2b1a3e8d7c11.cache\n"
#define LIBRARY "ro /usr/local/vgpu/libvgpu.so <- /state/lib/libvgpu.so.1\n"

/* Scenario "one". */
static void one_card(void **state)
{
	(void)state;
	card(0, 3000, 30);
	assert_string_equal(make(false), "NVIDIA_VISIBLE_DEVICES=" A "\nCUDA_DEVICE_MEMORY_LIMIT_0=3000m\n"
					 "CUDA_DEVICE_SM_LIMIT=30\nLIBCUDA_LOG_LEVEL=1\n" CACHE LIBRARY);
}

/* "no-core-limit": 0 is no limit, which a claim has as 100. */
static void no_core_limit_is_0(void **state)
{
	(void)state;
	card(1, 4096, 100);
	assert_non_null(strstr(make(false), "CUDA_DEVICE_SM_LIMIT=0\n"));
}

/* "two-cards": alike, so the common variable is enough; cards are named in the scheduler's order. */
static void two_cards_alike(void **state)
{
	(void)state;
	card(1, 8000, 50);
	card(0, 8000, 50);
	assert_string_equal(make(false), "NVIDIA_VISIBLE_DEVICES=" B "," A
					 "\nCUDA_DEVICE_MEMORY_LIMIT_0=8000m\nCUDA_DEVICE_MEMORY_LIMIT_1=8000m\n"
					 "CUDA_DEVICE_SM_LIMIT=50\nLIBCUDA_LOG_LEVEL=1\n" CACHE LIBRARY);
}

/* "two-cards-uneven": HAMi numbers by the scheduler's order (0=8000m, 1=4000m, 50 for both), but in the container index
 * 0 is the card with the lower index on the node. */
static void two_cards_uneven_by_index(void **state)
{
	const char *text;

	(void)state;
	card(1, 8000, 50);
	card(0, 4000, 20);
	text = make(false);
	assert_non_null(strstr(text, "CUDA_DEVICE_MEMORY_LIMIT_0=4000m\nCUDA_DEVICE_MEMORY_LIMIT_1=8000m\n"));
	assert_non_null(
		strstr(text, "CUDA_DEVICE_SM_LIMIT=50\nCUDA_DEVICE_SM_LIMIT_0=20\nCUDA_DEVICE_SM_LIMIT_1=50\n"));
}

/* A reader takes the common variable where a card's own is 0. */
static void one_of_two_without_core_limit(void **state)
{
	(void)state;
	card(0, 4000, 20);
	card(1, 8000, 100);
	assert_non_null(strstr(make(false), "CUDA_DEVICE_SM_LIMIT=0\nCUDA_DEVICE_SM_LIMIT_0=20\n"
					    "CUDA_DEVICE_SM_LIMIT_1=0\n"));
}

static void strategies(void **state)
{
	static const struct {
		unsigned strategies;
		bool by_index, late;
		const char *visible; /* the lines on it */
	} cases[] = {
		{ HAMI_LIST_ENVVAR, false, false, "NVIDIA_VISIBLE_DEVICES=" B "," A "\n" },
		{ HAMI_LIST_ENVVAR, true, false, "NVIDIA_VISIBLE_DEVICES=1,0\n" },
		{ HAMI_LIST_VOLUME_MOUNTS, false, false, "NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices\n" },
		{ HAMI_LIST_ENVVAR | HAMI_LIST_VOLUME_MOUNTS, false, false,
		  "NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices\n" },
		{ HAMI_LIST_CDI_ANNOTATIONS, false, false, "" },
		{ HAMI_LIST_CDI_CRI, false, false, "" },
		{ HAMI_LIST_ENVVAR | HAMI_LIST_CDI_CRI, false, false, "NVIDIA_VISIBLE_DEVICES=" B "," A "\n" },
		{ HAMI_LIST_CDI_CRI, false, true, "NVIDIA_VISIBLE_DEVICES=void\n" },
		{ HAMI_LIST_ENVVAR, false, true, "NVIDIA_VISIBLE_DEVICES=" B "," A "\n" },
	};

	(void)state;
	card(1, 8000, 50);
	card(0, 8000, 50);
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		const char *text;
		size_t n = strlen(cases[i].visible);

		config.strategies = cases[i].strategies;
		config.ids_by_index = cases[i].by_index;
		text = make(cases[i].late);
		if (n == 0 ? strstr(text, HM_ENV_VISIBLE_DEVICES) != NULL : strncmp(text, cases[i].visible, n) != 0)
			fail_msg("case %zu:\n%s", i, text);
	}
}

/* "volume-mounts" and "index-ids-volume-specs": one empty file for each card, before everything else. */
static void volume_mounts(void **state)
{
	(void)state;
	card(1, 8000, 50);
	card(0, 8000, 50);
	config.strategies = HAMI_LIST_VOLUME_MOUNTS;
	assert_non_null(strstr(make(false), "rw /var/run/nvidia-container-devices/" B " <- /dev/null\n"
					    "rw /var/run/nvidia-container-devices/" A " <- /dev/null\n" LIBRARY));
	config.ids_by_index = true;
	config.extras = HAMI_EXTRA_IMEX;
	assert_non_null(strstr(make(true), "rw /var/run/nvidia-container-devices/1 <- /dev/null\n"
					   "rw /var/run/nvidia-container-devices/0 <- /dev/null\n"
					   "rw /var/run/nvidia-container-devices/imex/0 <- /dev/null\n"));
}

/* "pass-device-specs": control nodes that are there, then the cards' in the scheduler's order. */
static void device_specs(void **state)
{
	char expected[512];

	(void)state;
	card(1, 8000, 50);
	card(0, 8000, 50);
	config.pass_device_specs = true;
	config.dev_root = temp_path("");
	assert_int_equal(mkdir(temp_path("dev"), 0755), 0);
	temp_write("dev/nvidiactl", "");
	temp_write("dev/nvidia-uvm", "");
	snprintf(expected, sizeof expected,
		 "node /dev/nvidiactl <- %s/dev/nvidiactl rw\nnode /dev/nvidia-uvm <- %s/dev/nvidia-uvm rw\n"
		 "node /dev/nvidia1 <- %s/dev/nvidia1 rw\nnode /dev/nvidia0 <- %s/dev/nvidia0 rw\n",
		 config.dev_root, config.dev_root, config.dev_root, config.dev_root);
	assert_string_equal(strstr(make(false), "node "), expected);
	assert_null(strstr(make(true), "node "));
	config.strategies = HAMI_LIST_CDI_CRI; /* the named CDI devices bring them */
	assert_null(strstr(make(false), "node "));
}

/* "gds-mofed-gdrcopy", node "core-limit-off", scaled memory. */
static void the_rest_of_the_environment(void **state)
{
	const char *text;

	(void)state;
	card(0, 3000, 30);
	config.extras = HAMI_EXTRA_GDS | HAMI_EXTRA_MOFED | HAMI_EXTRA_GDRCOPY | HAMI_EXTRA_IMEX;
	config.disable_core_limit = claim.oversubscribe = true;
	config.log_level = "";
	text = make(false);
	assert_non_null(strstr(text, "NVIDIA_GDRCOPY=enabled\nNVIDIA_GDS=enabled\nNVIDIA_MOFED=enabled\n"));
	assert_non_null(strstr(text, "NVIDIA_IMEX_CHANNELS=0\n"));
	assert_non_null(strstr(text, "CUDA_OVERSUBSCRIBE=true\n"));
	assert_non_null(strstr(text, "GPU_CORE_UTILIZATION_POLICY=disable\n"));
	assert_null(strstr(text, "LIBCUDA_LOG_LEVEL"));
	config.strategies = HAMI_LIST_CDI_CRI;
	text = make(false);
	assert_null(strstr(text, "NVIDIA_GDS"));
	assert_null(strstr(text, "NVIDIA_IMEX"));
}

/* "license-and-versioned-library-present". */
static void license(void **state)
{
	char expected[512];

	(void)state;
	card(0, 3000, 30);
	config.hook_path = temp_path("");
	assert_int_equal(mkdir(temp_path("vgpu"), 0755), 0);
	assert_null(strstr(make(false), "license"));
	temp_write("vgpu/license", "x");
	assert_null(strstr(make(false), "vgpuvalidator"));
	temp_write("vgpu/vgpuvalidator", "x");
	snprintf(expected, sizeof expected,
		 "ro %s/vgpu/libvgpu.so <- /state/lib/libvgpu.so.1\nro /tmp/license <- %s/vgpu/license\n"
		 "ro /usr/bin/vgpuvalidator <- %s/vgpu/vgpuvalidator\n",
		 config.hook_path, config.hook_path, config.hook_path);
	assert_string_equal(strstr(make(false), "ro "), expected);
}

/* Without HOOK_PATH nothing of HAMi's files. */
static void no_hook_path(void **state)
{
	(void)state;
	card(0, 3000, 30);
	config.hook_path = NULL;
	assert_string_equal(make(false), "NVIDIA_VISIBLE_DEVICES=" A "\nCUDA_DEVICE_MEMORY_LIMIT_0=3000m\n"
					 "CUDA_DEVICE_SM_LIMIT=30\nLIBCUDA_LOG_LEVEL=1\n");
}

static void cdi_names(void **state)
{
	char names[HAMI_ANSWER_NAMES][HAMI_ANSWER_NAME_BYTES];
	const struct card *cards[HM_MAX_CARDS];

	(void)state;
	card(1, 8000, 50);
	card(0, 8000, 50);
	cards_of_claim(cards);
	assert_int_equal(hami_answer_cdi_names(&config, &claim, cards, names), 0);
	config.strategies = HAMI_LIST_CDI_ANNOTATIONS;
	config.extras = HAMI_EXTRA_GDS | HAMI_EXTRA_MOFED;
	config.extra_specs = HAMI_EXTRA_MOFED;
	assert_int_equal(hami_answer_cdi_names(&config, &claim, cards, names), 3);
	assert_string_equal(names[0], "k8s.device-plugin.nvidia.com/gpu=" B);
	assert_string_equal(names[1], "k8s.device-plugin.nvidia.com/gpu=" A);
	assert_string_equal(names[2], "k8s.device-plugin.nvidia.com/mofed=all");
	config.ids_by_index = true;
	assert_int_equal(hami_answer_cdi_names(&config, &claim, cards, names), 3);
	assert_string_equal(names[0], "k8s.device-plugin.nvidia.com/gpu=1");
	/* A MIG device by its own name; an index of it means nothing to us. */
	snprintf(claim.cards[1].mig, sizeof claim.cards[1].mig, "MIG-1");
	assert_int_equal(hami_answer_cdi_names(&config, &claim, cards, names), 3);
	assert_string_equal(names[0], "k8s.device-plugin.nvidia.com/gpu=1");
	assert_string_equal(names[1], "k8s.device-plugin.nvidia.com/gpu=MIG-1");
}

static int everything(void *arg)
{
	const struct card *cards[HM_MAX_CARDS];
	struct cdi_edits edits = { 0 };
	struct hm_err e;
	int r;

	(void)arg;
	cards_of_claim(cards);
	r = hami_answer_edits(&config, &claim, cards, "/l", false, &edits, &e);
	cdi_edits_fini(&edits);
	return r;
}

static void memory_runs_out(void **state)
{
	(void)state;
	card(1, 8000, 50);
	card(0, 4000, 20);
	config.extras = HAMI_EXTRA_GDS | HAMI_EXTRA_IMEX;
	config.pass_device_specs = config.disable_core_limit = claim.oversubscribe = true;
	sweep_check("hami answer", everything, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_card),
		TEST(no_core_limit_is_0),
		TEST(two_cards_alike),
		TEST(two_cards_uneven_by_index),
		TEST(one_of_two_without_core_limit),
		TEST(strategies),
		TEST(volume_mounts),
		TEST(device_specs),
		TEST(the_rest_of_the_environment),
		TEST(license),
		TEST(no_hook_path),
		TEST(cdi_names),
		TEST(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
