/* What hami-simctl writes of a node: the CDI spec and status -j, with memory to spare and without. */
#include "sim/simctl/simctl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"
#include "io/json.h"

static struct sim_node *node;

static int setup(void **state)
{
	node = mmap(NULL, sizeof *node, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(node, MAP_FAILED);
	snprintf(node->name, sizeof node->name, "made");
	snprintf(node->driver_version, sizeof node->driver_version, "550.1");
	node->clock = SIM_CLOCK_VIRTUAL;
	node->card_count = 2;
	for (unsigned i = 0; i < 2; i++) {
		struct sim_card *c = &node->cards[i];

		snprintf(c->info.uuid, sizeof c->info.uuid, "GPU-%u", i);
		snprintf(c->info.name, sizeof c->info.name, "Card");
		c->info.minor = 5 + i;
		c->info.memory_bytes = 1000;
		c->info.numa_node = -1;
		c->epoch = 1;
	}
	node->processes[3].pid = 77;
	node->cards[1].shares[3].epoch = 1;
	node->cards[1].shares[3].data_bytes = 40;
	node->cards[1].shares[3].context_bytes = 2;
	snprintf(node->cards[1].faults[0].call, SIM_CALL_BYTES, "nvmlDeviceGetName");
	node->cards[1].faults[0].code = 3;
	node->events[0] = (struct sim_event) { .sequence = 1, .card = 1, .xid = 79 };
	node->event_head = 1;
	return temp_setup(state);
}

static int teardown(void **state)
{
	munmap(node, sizeof *node);
	return temp_teardown(state);
}

/* The value at "cards/1/processes/0/pid". */
static const struct cJSON *at(const struct cJSON *tree, const char *path)
{
	char word[64];

	for (int n; tree != NULL && sscanf(path, "%63[^/]%n", word, &n) == 1; path += path[n] == '/' ? n + 1 : n)
		tree = cJSON_IsArray(tree) ? cJSON_GetArrayItem(tree, word[0] - '0')
					   : cJSON_GetObjectItemCaseSensitive(tree, word);
	return tree;
}

static void check_text(const struct cJSON *tree, const char *path, const char *want)
{
	const struct cJSON *v = at(tree, path);
	char number[32];

	if (cJSON_IsNumber(v))
		snprintf(number, sizeof number, "%.0f", v->valuedouble);
	if (v == NULL || strcmp(cJSON_IsNumber(v) ? number : cJSON_IsString(v) ? v->valuestring : "", want) != 0)
		fail_msg("%s is not %s", path, want);
}

static void the_status_tells_all(void **state)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ "node", "made" },
		{ "dir", "/d" },
		{ "clock", "virtual" },
		{ "cards/0/uuid", "GPU-0" },
		{ "cards/0/numa_node", "-1" },
		{ "cards/1/minor", "6" },
		{ "cards/1/total_bytes", "1000" },
		{ "cards/1/processes/0/pid", "77" },
		{ "cards/1/processes/0/bytes", "42" },
		{ "cards/1/processes/0/context_bytes", "2" },
		{ "cards/1/faults/0/call", "nvmlDeviceGetName" },
		{ "cards/1/faults/0/code", "3" },
		{ "events/0/gpu", "1" },
		{ "events/0/xid", "79" },
	};
	hm_auto(cJSON) *tree = NULL;
	char *text = simctl_status_json("/d", node);
	struct hm_err e;

	(void)state;
	assert_non_null(text);
	assert_int_equal(json_parse(text, strlen(text), &tree, &e), 0);
	free(text);
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		check_text(tree, rows[i].path, rows[i].want);
	assert_int_equal(cJSON_GetArraySize(at(tree, "cards/0/processes")), 0);
}

static void the_spec_has_each_card_by_index_and_uuid(void **state)
{
	static const struct {
		const char *path, *want;
	} rows[] = {
		{ "kind", "nvidia.com/gpu" },
		{ "devices/0/name", "0" },
		{ "devices/3/name", "GPU-1" },
		{ "devices/3/containerEdits/deviceNodes/0/path", "/dev/nvidia6" },
		{ "devices/4/name", "all" },
		{ "devices/4/containerEdits/deviceNodes/1/path", "/dev/nvidia6" },
		{ "containerEdits/deviceNodes/0/path", "/dev/nvidiactl" },
	};
	hm_auto(cJSON) *tree = NULL;
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(simctl_write_cdi(temp_path(""), "/nowhere", node, &e), 0);
	assert_int_equal(file_read(temp_path("cdi/nvidia.json"), 65536, &text, &e), 0);
	assert_int_equal(json_parse(str_text(&text), text.n, &tree, &e), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		check_text(tree, rows[i].path, rows[i].want);
	assert_int_equal(cJSON_GetArraySize(at(tree, "containerEdits/mounts")), 1); /* libraries that are not there */
}

static int status_scenario(void *arg)
{
	char *text = simctl_status_json("/d", node);

	(void)arg;
	free(text);
	return text != NULL ? 0 : -1;
}

static int cdi_scenario(void *arg)
{
	struct hm_err e;
	int r = simctl_write_cdi(arg, "/nowhere", node, &e);

	assert_int_equal(r, r < 0 ? -HM_ENOMEM : 0);
	return r;
}

static void memory_that_is_short_is_an_error(void **state)
{
	struct cJSON_Hooks hooks = { malloc, free };
	char dir[200];

	(void)state;
	snprintf(dir, sizeof dir, "%s", temp_path(""));
	cJSON_InitHooks(&hooks); /* its allocations fail too */
	sweep_check("status", status_scenario, NULL);
	sweep_check("CDI spec", cdi_scenario, dir);
	cJSON_InitHooks(NULL);
	assert_int_equal(temp_count("cdi"), 1); /* no half of one */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(the_status_tells_all),
		TEST(the_spec_has_each_card_by_index_and_uuid),
		TEST(memory_that_is_short_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
