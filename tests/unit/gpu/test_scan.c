#include "gpu/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "abi/nvml.h"
#include "harness/sweep.h"
#include "unit/gpu/fake_setup.h"

static struct gpu_driver *open_fake(const char *path)
{
	struct gpu_driver *d = NULL;
	struct hm_err e;

	if (gpu_driver_open(path, &d, &e) < 0 || gpu_driver_set_sysfs(d, "/nowhere", &e) < 0)
		fail_msg("%s", e.msg);
	return d;
}

static struct inventory *scan(struct gpu_driver *d)
{
	struct inventory *inv = NULL;
	struct hm_err e;

	if (gpu_scan(d, &inv, &e) < 0)
		fail_msg("%s", e.msg);
	return inv;
}

static void test_scan(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	hm_auto(inventory) *inv = NULL;
	const struct card *c;

	(void)state;
	fake_node(fake, 3);
	fake->cards[1].minor = 7;
	fake->cards[1].mig = 1;
	inv = scan(d);
	assert_string_equal(inv->driver_version, "550.54.15");
	assert_int_equal(inv->cuda_version, 12040);
	assert_int_equal(inv->count, 3);
	assert_int_equal(inv->skipped_count, 0);
	c = &inv->cards[1];
	assert_string_equal(c->uuid, "GPU-00000000-0000-0000-0000-000000000001");
	assert_string_equal(c->model, "NVIDIA L40S");
	assert_string_equal(c->pci_bus_id, "00000000:3B:00.0");
	assert_int_equal(c->index, 1);
	assert_int_equal(c->minor, 7);
	assert_int_equal(c->memory_bytes, 46068ull << 20);
	assert_int_equal(c->reserved_bytes, 500ull << 20);
	assert_int_equal(c->numa_node, 1);
	assert_true(c->mig_enabled);
	assert_false(inv->cards[2].mig_enabled);
	assert_int_equal(inventory_link(inv, 0, 2).kind, LINK_SYSTEM);
}

/* One card that errs in a call it must answer is named, the others serve and keep NVML's index. */
static void test_one_sick_card(void **state)
{
	static const struct {
		const char *call;
		const char *says;
	} rows[] = {
		{ "nvmlDeviceGetHandleByIndex_v2", "GPU 1: nvmlDeviceGetHandleByIndex: NVML says GPU is lost (15)" },
		{ "nvmlDeviceGetUUID", "GPU 1: nvmlDeviceGetUUID: NVML says GPU is lost (15)" },
		{ "nvmlDeviceGetMemoryInfo", "GPU 1: nvmlDeviceGetMemoryInfo: NVML says GPU is lost (15)" },
		{ "nvmlDeviceGetMinorNumber", "GPU 1: nvmlDeviceGetMinorNumber: NVML says GPU is lost (15)" },
	};
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(inventory) *inv = NULL;

		fake_node(fake, 3);
		fake_fault(fake, rows[i].call, 1, NVML_ERROR_GPU_IS_LOST);
		for (unsigned j = 0; j < 4; j++)
			fake->cards[2].links[j].to = 0;
		inv = scan(d);
		assert_int_equal(inv->count, 2);
		assert_int_equal(inv->cards[1].index, 2);
		assert_int_equal(inventory_link(inv, 0, 1).nvlinks, 4);
		assert_int_equal(inv->skipped_count, 1);
		assert_string_equal(inv->skipped[0], rows[i].says);
	}
}

/* An error in any other call costs that datum alone. */
static void test_missing_data(void **state)
{
	static const char *const calls[] = {
		"nvmlSystemGetDriverVersion",
		"nvmlSystemGetCudaDriverVersion_v2",
		"nvmlDeviceGetName",
		"nvmlDeviceGetPciInfo_v3",
		"nvmlDeviceGetMemoryInfo_v2",
		"nvmlDeviceGetMemoryAffinity",
		"nvmlDeviceGetMigMode",
		"nvmlDeviceGetTopologyCommonAncestor",
		"nvmlDeviceGetNvLinkState",
		"nvmlDeviceGetNvLinkRemotePciInfo_v2",
		"nvmlDeviceGetNvLinkRemoteDeviceType",
	};
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	hm_auto(inventory) *whole = NULL;

	(void)state;
	fake_node(fake, 2);
	fake->cards[0].mig = fake->cards[1].mig = 1;
	whole = scan(d);
	for (size_t i = 0; i < HM_COUNT(calls); i++) {
		hm_auto(inventory) *inv = NULL;
		bool links_only = strstr(calls[i], "NvLink") != NULL;

		fake->faults[0].call = NULL;
		fake_fault(fake, calls[i], -1, NVML_ERROR_UNKNOWN);
		inv = scan(d);
		assert_int_equal(inv->count, 2);
		assert_int_equal(inv->skipped_count, 0);
		/* these two have no NVLink to lose */
		if (inventory_equal(inv, whole) != links_only)
			fail_msg("%s", calls[i]);
	}
}

/* A card whose memory is the machine's serves: how much it may have is for others to say. */
static void test_no_memory_of_its_own(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	hm_auto(inventory) *inv = NULL;

	(void)state;
	fake_node(fake, 2);
	fake_fault(fake, "nvmlDeviceGetMemoryInfo", 1, NVML_ERROR_NOT_SUPPORTED);
	inv = scan(d);
	assert_int_equal(inv->count, 2);
	assert_int_not_equal(inv->cards[0].memory_bytes, 0);
	assert_int_equal(inv->cards[1].memory_bytes, 0);
}

static void test_a_display_card_is_left_out(void **state)
{
	static const char *const names[] = { "DGX Display", "NVIDIA DGX Display" };
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(names); i++) {
		hm_auto(inventory) *inv = NULL;

		fake_node(fake, 2);
		snprintf(fake->cards[0].name, sizeof fake->cards[0].name, "%s", names[i]);
		inv = scan(d);
		assert_int_equal(inv->count, 1);
		assert_int_equal(inv->cards[0].index, 1);
		assert_int_equal(inv->skipped_count, 1);
		assert_non_null(strstr(inv->skipped[0], "only drives a display"));
	}
}

static void test_old_library(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML_OLD);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML_OLD);
	hm_auto(inventory) *inv = NULL;

	(void)state;
	fake_node(fake, 2);
	inv = scan(d);
	assert_int_equal(inv->count, 2);
	assert_string_equal(inv->cards[1].model, "unknown GPU");
	assert_string_equal(inv->cards[1].pci_bus_id, "");
	assert_int_equal(inv->cards[1].numa_node, -1);
	assert_int_equal(inv->cards[1].reserved_bytes, 0);
	assert_string_equal(inv->driver_version, "");
	assert_int_equal(inventory_link(inv, 0, 1).kind, LINK_NONE);
}

static void test_links(void **state)
{
	static const struct {
		int from[2][6]; /* ends of card 0 and 1, card 2 has four links to the switch */
		unsigned ancestor;
		enum link_kind kind;
		unsigned nvlinks;
		enum link_kind path;
		unsigned there, back, switched;
	} rows[] = {
		{ { { -3, -3, -3, -3, -3, -3 }, { -3, -3, -3, -3, -3, -3 } }, 0, LINK_BOARD, 0, LINK_BOARD, 0, 0, 0 },
		{ { { -3, -3, -3, -3, -3, -3 }, { -3, -3, -3, -3, -3, -3 } },
		  10,
		  LINK_SINGLE_SWITCH,
		  0,
		  LINK_SINGLE_SWITCH,
		  0,
		  0,
		  0 },
		{ { { -3, -3, -3, -3, -3, -3 }, { -3, -3, -3, -3, -3, -3 } },
		  20,
		  LINK_MULTI_SWITCH,
		  0,
		  LINK_MULTI_SWITCH,
		  0,
		  0,
		  0 },
		{ { { -3, -3, -3, -3, -3, -3 }, { -3, -3, -3, -3, -3, -3 } },
		  30,
		  LINK_HOSTBRIDGE,
		  0,
		  LINK_HOSTBRIDGE,
		  0,
		  0,
		  0 },
		{ { { -3, -3, -3, -3, -3, -3 }, { -3, -3, -3, -3, -3, -3 } }, 40, LINK_NODE, 0, LINK_NODE, 0, 0, 0 },
		{ { { -3, -3, -3, -3, -3, -3 }, { -3, -3, -3, -3, -3, -3 } },
		  50,
		  LINK_SYSTEM,
		  0,
		  LINK_SYSTEM,
		  0,
		  0,
		  0 },
		{ { { -3, -3, -3, -3, -3, -3 }, { -3, -3, -3, -3, -3, -3 } }, 99, LINK_NONE, 0, LINK_NONE, 0, 0, 0 },
		{ { { 1, 1, -3, -3, -3, -3 }, { 0, 0, -3, -3, -3, -3 } }, 50, LINK_NVLINK, 2, LINK_SYSTEM, 2, 2, 0 },
		{ { { 1, 1, 1, -3, 2, -3 }, { -3, 0, 0, -3, -3, -3 } },
		  50,
		  LINK_NVLINK,
		  3,
		  LINK_SYSTEM,
		  3,
		  2,
		  0 }, /* one side knows more */
		{ { { -1, -1, -1, -1, -1, -1 }, { -1, -1, -3, -1, -1, -1 } },
		  50,
		  LINK_NVLINK,
		  5,
		  LINK_SYSTEM,
		  0,
		  0,
		  5 }, /* by the switch */
		{ { { -1, -1, 1, -3, -3, -3 }, { 0, -1, -3, -3, -3, -3 } }, 50, LINK_NVLINK, 2, LINK_SYSTEM, 1, 1, 1 },
		{ { { -1, -1, -3, -3, -3, -3 }, { -3, -3, -3, -3, -3, -3 } }, 40, LINK_NODE, 0, LINK_NODE, 0, 0, 0 },
		{ { { -2, -2, -3, -3, -3, -3 }, { -2, -2, -3, -3, -3, -3 } },
		  40,
		  LINK_NODE,
		  0,
		  LINK_NODE,
		  0,
		  0,
		  0 }, /* who knows where to */
	};
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(inventory) *inv = NULL;

		fake_node(fake, 3);
		fake->ancestor = rows[i].ancestor;
		for (unsigned j = 0; j < 6; j++) {
			fake->cards[0].links[j].to = rows[i].from[0][j];
			fake->cards[1].links[j].to = rows[i].from[1][j];
			fake->cards[2].links[j].to = j < 4 ? -1 : -3;
		}
		inv = scan(d);
		assert_int_equal(inventory_link(inv, 0, 1).path, rows[i].path);
		assert_int_equal(inventory_link(inv, 1, 0).path, rows[i].path);
		assert_int_equal(inventory_link(inv, 0, 1).direct, rows[i].there);
		assert_int_equal(inventory_link(inv, 1, 0).direct, rows[i].back);
		assert_int_equal(inventory_link(inv, 0, 1).switched, rows[i].switched);
		if (inventory_link(inv, 0, 1).kind != rows[i].kind ||
		    inventory_link(inv, 1, 0).nvlinks != rows[i].nvlinks)
			fail_msg("row %zu: kind %d, %d links", i, inventory_link(inv, 0, 1).kind,
				 inventory_link(inv, 1, 0).nvlinks);
	}
}

static void put_numa(const char *root, const char *pci, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof path, "%s/%s", root, pci);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/%s/numa_node", root, pci);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void test_numa(void **state)
{
	char root[] = "/tmp/hm-test-sysfs-XXXXXX", command[64];
	static const int want[] = { 3, -1, 0, 2, -1 };
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	hm_auto(inventory) *inv = NULL;
	struct hm_err e;

	(void)state;
	assert_non_null(mkdtemp(root));
	fake_node(fake, 5);
	fake->cards[0].numa_mask = 0; /* says nothing: sysfs does */
	put_numa(root, "0000:3a:00.0", "3\n");
	fake->cards[1].numa_mask = 6; /* two nodes: near to none, as sysfs says too */
	put_numa(root, "0000:3b:00.0", "-1\n");
	put_numa(root, "0000:3c:00.0", "5\n"); /* NVML's word counts */
	fake->cards[3].numa_mask = 0;
	fake->cards[3].domain = 0x10000;
	put_numa(root, "10000:3d:00.0", "2");
	fake->cards[4].numa_mask = 0;
	put_numa(root, "0000:3e:00.0", "one\n");
	assert_int_equal(gpu_driver_set_sysfs(d, root, &e), 0);
	inv = scan(d);
	for (size_t i = 0; i < HM_COUNT(want); i++)
		assert_int_equal(inv->cards[i].numa_node, want[i]);
	for (size_t i = 0; i < 5; i++) {
		snprintf(command, sizeof command, "%s/%s:%02zx:00.0/numa_node", root, i == 3 ? "10000" : "0000",
			 0x3a + i);
		assert_int_equal(remove(command), 0);
		*strrchr(command, '/') = '\0';
		assert_int_equal(remove(command), 0);
	}
	assert_int_equal(remove(root), 0);
}

static void test_odd_answers(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	hm_auto(inventory) *inv = NULL, *many = NULL;
	struct inventory *none = NULL;
	struct hm_err e;

	(void)state;
	fake_node(fake, 5);
	snprintf(fake->cards[0].uuid, sizeof fake->cards[0].uuid, "../../etc");
	snprintf(fake->cards[1].uuid, sizeof fake->cards[1].uuid, "GPU-\n");
	fake->cards[2].uuid[0] = '\0';
	snprintf(fake->cards[4].uuid, sizeof fake->cards[4].uuid, "%s", fake->cards[3].uuid);
	inv = scan(d);
	assert_int_equal(inv->count, 1);
	assert_int_equal(inv->skipped_count, 4);
	assert_string_equal(inv->skipped[0], "GPU 0: nvmlDeviceGetUUID: \"../../etc\" is no UUID");
	assert_non_null(strstr(inv->skipped[3], "GPU 4: its UUID GPU-00000000-0000-0000-0000-000000000003 is another"));
	fake_node(fake, FAKE_CARDS);
	many = scan(d);
	assert_int_equal(many->count, HM_MAX_CARDS);
	assert_int_equal(many->skipped_count, FAKE_CARDS - HM_MAX_CARDS);
	fake->count = 1000000;
	assert_int_equal(gpu_scan(d, &none, &e), -HM_EPROTO);
	fake->count = 0;
	fake_fault(fake, "nvmlDeviceGetCount_v2", -1, NVML_ERROR_UNINITIALIZED);
	assert_int_equal(gpu_scan(d, &none, &e), -HM_EIO);
	assert_non_null(strstr(e.msg, "scan GPUs: nvmlDeviceGetCount"));
	assert_null(none);
}

static void test_no_cards(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);
	hm_auto(inventory) *inv = NULL;

	(void)state;
	fake_node(fake, 0);
	inv = scan(d);
	assert_int_equal(inv->count, 0);
}

static int sweep_scan(void *arg)
{
	hm_auto(inventory) *inv = NULL;
	struct hm_err e;

	return gpu_scan(arg, &inv, &e);
}

static void test_sweep(void **state)
{
	struct fake *fake = fake_load(FAKE_NVML);
	hm_auto(gpu_driver) *d = open_fake(FAKE_NVML);

	(void)state;
	fake_node(fake, 3);
	fake_fault(fake, "nvmlDeviceGetUUID", 1, NVML_ERROR_GPU_IS_LOST);
	sweep_check("gpu_scan", sweep_scan, d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scan),
		cmocka_unit_test(test_one_sick_card),
		cmocka_unit_test(test_missing_data),
		cmocka_unit_test(test_old_library),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_no_memory_of_its_own),
		cmocka_unit_test(test_a_display_card_is_left_out),
		cmocka_unit_test(test_numa),
		cmocka_unit_test(test_odd_answers),
		cmocka_unit_test(test_no_cards),
		cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
