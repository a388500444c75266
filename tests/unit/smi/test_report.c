#include "smi/report.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "abi/nvml.h"
#include "harness/sweep.h"
#include "unit/hamivgpu/made_node.h"

static void make(struct made_node *n)
{
	made_begin(n, 2);
	made_node_file(n);
	made_claim(n, 100, "active", "train-7d9f8c6b5-x2x9z-with-a-long-name", 2);
	made_claim(n, 101, "allocated", "", 1);
	made_claim(n, 102, "allocated", "?", 1);
	made_region(n, 100, 7, 300 << 20);
	made_region(n, 100, 9, 50 << 20);
	n->fake->cards[0].compute[0] = (struct fake_process) { 4711, 450 << 20 };
	n->fake->cards[0].compute[1] = (struct fake_process) { 4712, NVML_VALUE_NOT_AVAILABLE };
	n->fake->cards[0].compute_count = 2;
	n->fake->cards[0].busy = 73;
	made_process(n, 4711, 7, "python3");
	made_process(n, 4712, 8, "\x1b[31mred");
	made_process(n, 4714, 9, "quiet");
	fake_fault(n->fake, "nvmlDeviceGetUtilizationRates", 1, NVML_ERROR_NOT_SUPPORTED);
}

static void test_table(void **state)
{
	static const char want[] =
		"+------------------------------------------------------------------------------------------------+\n"
		"| hami-smi 9.9.9                 Driver Version: 550.54.15             CUDA Version: 12.4        |\n"
		"| 4 slots per card, static slicing, late binding                                                 |\n"
		"+-----+----------------------------+--------------+-----------------------+----------+-----------+\n"
		"| GPU | Name                       | UUID         |   Memory used / total | GPU-Util |     Slots |\n"
		"+=====+============================+==============+=======================+==========+===========+\n"
		"|   0 | NVIDIA L40S                | GPU-00000000 |   1000MiB /  46068MiB |      73% |     4 / 4 |\n"
		"|   1 | NVIDIA L40S                | GPU-00000000 |   1000MiB /  46068MiB |      N/A |     0 / 4 |\n"
		"+-----+----------------------------+--------------+-----------------------+----------+-----------+\n"
		"\n"
		"vGPUs:\n"
		"+----------+---------------------------------+-------+-----------------------+-------+-----------+\n"
		"| vGPU     | Container                       | Slots |   Memory used / limit | Cores | State     |\n"
		"+==========+=================================+=======+=======================+=======+===========+\n"
		"| 0/1      | team-a/train-7d9f8c6b5-x2x9z-wi |     2 |    350MiB /   2048MiB |   50% | active    |\n"
		"|          | th-a-long-name/main             |       |                       |       |           |\n"
		"| 0/1      | pod uid-101/main                |     1 |       N/A /   1024MiB |   25% | allocated |\n"
		"| 0/1      | unknown (claim 102)             |     1 |       N/A /   1024MiB |   25% | allocated |\n"
		"+----------+---------------------------------+-------+-----------------------+-------+-----------+\n"
		"\n"
		"Processes:\n"
		"+-----+----------+----------+--------------------------------+--------------------+--------------+\n"
		"| GPU |      PID | vGPU     | Container                      | Process            |       Memory |\n"
		"+=====+==========+==========+================================+====================+==============+\n"
		"|   0 |     4711 | 0/1      | team-a/train-7d9f8c6b5-x2x9z-w | python3            |       450MiB |\n"
		"|     |          |          | ith-a-long-name/main           |                    |              |\n"
		"|   0 |     4712 | -        |                                | \\x1b[31mred        |          N/A |\n"
		"|   0 |     in 9 | 0/1      | team-a/train-7d9f8c6b5-x2x9z-w |                    |        50MiB |\n"
		"|     |          |          | ith-a-long-name/main           |                    |              |\n"
		"+-----+----------+----------+--------------------------------+--------------------+--------------+\n";
	struct made_node n;
	struct hamivgpu *h;
	hm_auto_str out = { 0 };

	(void)state;
	make(&n);
	h = made_open(&n, FAKE_NVML);
	report_table(h, "9.9.9", &out);
	assert_string_equal(str_text(&out), want);
	hamivgpu_close(h);
	made_end(&n);
}

/* No line is wider than a terminal, and nothing leaves ASCII, whatever stands in the files. */
static void test_table_of_noise(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	hm_auto_str out = { 0 };
	size_t column = 0;

	(void)state;
	made_begin(&n, 16);
	made_node_file(&n);
	made_claim(&n, 1, "active", "\\x1b]0;owned\\x07\\n\\xff\\xfe", 4);
	made_claim(&n, 2, "active", "good", 1);
	made_file(&n, "state/claims/3", "hami-vgpu-claim 1\n\x1b]0;owned\x07\n");
	made_file(&n, "state/alloc/2/usage/region", "noise");
	snprintf(n.fake->cards[3].name, sizeof n.fake->cards[3].name, "\x1b[2J %070d", 0);
	n.fake->cards[4].total = n.fake->cards[4].used = UINT64_MAX - 1;
	n.fake->cards[5].mig = 1;
	h = made_open(&n, FAKE_NVML);
	report_table(h, "9.9.9", &out);
	for (size_t i = 0; i < out.n; i++) {
		column = out.p[i] == '\n' ? 0 : column + 1;
		assert_true(out.p[i] == '\n' || (out.p[i] >= 0x20 && out.p[i] < 0x7f));
		if (strstr(str_text(&out), "\nNotes:\n") > out.p + i)
			assert_true(column <= 98);
	}
	assert_non_null(strstr(str_text(&out), "\nNotes:\n  "));
	assert_non_null(strstr(str_text(&out), "claims/3: line 2: neither"));
	assert_non_null(strstr(str_text(&out), "claim 2: usage region"));
	assert_non_null(strstr(str_text(&out), "|       MIG |"));
	hamivgpu_close(h);
	made_end(&n);
}

static void test_empty(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	hm_auto_str out = { 0 };
	hm_auto_str list = { 0 };

	(void)state;
	made_begin(&n, 0);
	h = made_open(&n, FAKE_NVML);
	report_table(h, "9.9.9", &out);
	report_list(h, &list);
	assert_non_null(strstr(str_text(&out), "| no cards "));
	assert_non_null(strstr(str_text(&out), "| no vGPUs in use "));
	assert_non_null(strstr(str_text(&out), "| no processes "));
	assert_null(strstr(str_text(&out), "slicing"));
	assert_string_equal(str_text(&list), "");
	hamivgpu_close(h);
	made_end(&n);
}

static void test_list(void **state)
{
	struct made_node n;
	struct hamivgpu *h, *without;
	hm_auto_str out = { 0 };

	(void)state;
	make(&n);
	h = made_open(&n, FAKE_NVML);
	report_list(h, &out);
	assert_string_equal(str_text(&out),
			    "GPU 0: NVIDIA L40S (UUID: " MADE_GPU(0) ")\n"
								     "GPU 1: NVIDIA L40S (UUID: " MADE_GPU(1) ")\n");
	hamivgpu_close(h);
	without = made_open(&n, "/nowhere.so");
	str_clear(&out);
	report_list(without, &out);
	assert_string_equal(str_text(&out),
			    "GPU -: unknown GPU (UUID: " MADE_GPU(0) ")\n"
								     "GPU -: unknown GPU (UUID: " MADE_GPU(1) ")\n");
	hamivgpu_close(without);
	made_end(&n);
}

/* What a script would read of it. */
static double number_at(const struct cJSON *tree, const char *list, int i, const char *key)
{
	const struct cJSON *v = cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(tree, list), i), key);

	assert_true(cJSON_IsNumber(v));
	return v->valuedouble;
}

static const char *text_at(const struct cJSON *object, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItem(object, key));
}

static void check_json(const struct cJSON *t)
{
	const struct cJSON *vgpu = cJSON_GetArrayItem(cJSON_GetObjectItem(t, "vgpus"), 0);
	const struct cJSON *share = cJSON_GetArrayItem(cJSON_GetObjectItem(vgpu, "cards"), 0);
	const struct cJSON *process = cJSON_GetArrayItem(cJSON_GetObjectItem(t, "processes"), 1);

	assert_true(cJSON_GetObjectItem(t, "version")->valuedouble == 1);
	assert_true(cJSON_GetObjectItem(t, "timestamp_ms")->valuedouble == 1764447654123.0);
	assert_string_equal(text_at(cJSON_GetObjectItem(t, "driver"), "state"), "ok");
	assert_string_equal(text_at(cJSON_GetObjectItem(t, "agent"), "slicing"), "static");
	assert_true(number_at(t, "cards", 0, "memory_total") == 48305799168.0);
	assert_true(number_at(t, "cards", 0, "slots_used") == 4);
	assert_true(cJSON_IsNull(
		cJSON_GetObjectItem(cJSON_GetArrayItem(cJSON_GetObjectItem(t, "cards"), 1), "busy_percent")));
	assert_true(number_at(t, "vgpus", 0, "number") == 100);
	assert_string_equal(text_at(cJSON_GetObjectItem(vgpu, "pod"), "name"),
			    "train-7d9f8c6b5-x2x9z-with-a-long-name");
	assert_string_equal(text_at(vgpu, "container"), "main");
	assert_true(cJSON_GetObjectItem(share, "memory_limit")->valuedouble == 2147483648.0);
	assert_true(cJSON_GetObjectItem(share, "memory_used")->valuedouble == 367001600.0);
	assert_string_equal(text_at(cJSON_GetObjectItem(vgpu, "usage"), "state"), "ok");
	assert_string_equal(text_at(process, "name"), "\x1b[31mred");
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(process, "vgpu")));
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(process, "memory_used")));
}

static void test_json(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	struct cJSON *tree = NULL, *back = NULL;
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	make(&n);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(report_json(h, 1764447654123, &tree, &e), 0);
	assert_int_equal(report_json_text(tree, &text, &e), 0);
	assert_int_equal(json_parse(str_text(&text), text.n, &back, &e), 0);
	check_json(back);
	cJSON_Delete(tree);
	cJSON_Delete(back);
	hamivgpu_close(h);
	made_end(&n);
}

/* Names that are no UTF-8 stay JSON. */
static void test_json_of_noise(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	struct cJSON *tree = NULL;
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	made_begin(&n, 1);
	made_claim(&n, 1, "active", "a\\xff\\x1b", 1);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(report_json(h, 0, &tree, &e), 0);
	assert_int_equal(report_json_text(tree, &text, &e), 0);
	assert_non_null(strstr(str_text(&text), "\"a\\\\xff\\\\x1b\""));
	assert_non_null(strstr(str_text(&text), "\"not_found\"")); /* the node file is missing */
	cJSON_Delete(tree);
	hamivgpu_close(h);
	made_end(&n);
}

static void test_query(void **state)
{
	struct made_node n;
	struct hamivgpu *h;
	struct cJSON *tree = NULL;
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	make(&n);
	h = made_open(&n, FAKE_NVML);
	assert_int_equal(report_json(h, 5, &tree, &e), 0);
	report_query(tree, &text);
	assert_non_null(strstr(str_text(&text), "timestamp_ms                             : 5\n"));
	assert_non_null(strstr(str_text(&text), "cards[1]\n    index                                : 1\n"));
	assert_non_null(strstr(str_text(&text), "    busy_percent                         : N/A\n"));
	assert_non_null(strstr(str_text(&text), "    mig_enabled                          : no\n"));
	assert_non_null(strstr(str_text(&text), "    pod\n        uid                              : uid-100\n"));
	assert_non_null(strstr(str_text(&text), "    name                                 : \\x1b[31mred\n"));
	cJSON_Delete(tree);
	hamivgpu_close(h);
	made_end(&n);
}

/* cJSON's own allocations pass through these, so that the sweep reaches them. */
static void *counted_malloc(size_t n)
{
	return malloc(n);
}

static void counted_free(void *p)
{
	free(p);
}

static int sweep_json(void *arg)
{
	hm_auto(cJSON) *tree = NULL;
	hm_auto_str text = { 0 };
	struct hm_err e;
	int r = report_json(arg, 5, &tree, &e);

	if (r == 0)
		r = report_json_text(tree, &text, &e);
	if (r == 0)
		report_query(tree, &text);
	if (r == 0)
		report_table(arg, "9.9.9", &text);
	return r == 0 && str_failed(&text) ? -1 : r;
}

static void test_sweep(void **state)
{
	cJSON_Hooks hooks = { counted_malloc, counted_free };
	struct made_node n;
	struct hamivgpu *h;

	(void)state;
	made_begin(&n, 1);
	made_node_file(&n);
	made_claim(&n, 1, "active", "a\\xff", 1);
	h = made_open(&n, FAKE_NVML);
	cJSON_InitHooks(&hooks);
	sweep_check("reports", sweep_json, h);
	cJSON_InitHooks(NULL);
	hamivgpu_close(h);
	made_end(&n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table), cmocka_unit_test(test_table_of_noise),
		cmocka_unit_test(test_empty), cmocka_unit_test(test_list),
		cmocka_unit_test(test_json),  cmocka_unit_test(test_json_of_noise),
		cmocka_unit_test(test_query), cmocka_unit_test(test_sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
