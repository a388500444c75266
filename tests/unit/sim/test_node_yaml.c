#include "sim/simd/node_yaml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "abi/nvml.h"
#include "base/str.h"
#include "core/macros.h"
#include "harness/sweep.h"
#include "harness/unit.h"
#include "io/file.h"
#include "io/json.h"

static struct sim_node *node;

static int setup(void **state)
{
	(void)state;
	node = mmap(NULL, sizeof *node, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return node == MAP_FAILED;
}

static int teardown(void **state)
{
	(void)state;
	return munmap(node, sizeof *node);
}

static void load(const char *name, struct str *text)
{
	struct hm_err e = { 0 };
	char path[512];

	snprintf(path, sizeof path, HM_NODES "/%s.yaml", name);
	if (file_read(path, 1 << 20, text, &e) < 0 || node_yaml_load(str_text(text), text->n, node, &e) < 0)
		fail_msg("%s: %s", name, e.msg);
}

/* Facts that the files must hold, taken from the cards and not from the files. */
static void the_nodes_are_what_they_are_named(void **state)
{
	static const struct {
		const char *name, *model;
		unsigned cards, mib, sms, threads, cc, links, mig;
	} nodes[] = {
		{ "t4x2", "Tesla T4", 2, 15360, 40, 1024, 75, 0, 0 },
		{ "a100x8-nvlink", "NVIDIA A100-SXM4-40GB", 8, 40960, 108, 2048, 80, 12, 0 },
		{ "h100x8-mig", "NVIDIA H100 80GB HBM3", 8, 81559, 132, 2048, 90, 18, 1 },
		{ "l4x4", "NVIDIA L4", 4, 23034, 58, 1536, 89, 0, 0 },
		{ "rtx4090x4", "NVIDIA GeForce RTX 4090", 4, 24564, 128, 1536, 89, 0, 0 },
		{ "sm20", "NVIDIA GeForce RTX 3050", 1, 8192, 20, 1536, 86, 0, 0 },
		{ "sm188", "NVIDIA RTX PRO 6000 Blackwell Server Edition", 1, 97887, 188, 1536, 120, 0, 0 },
	};

	for (size_t i = 0; i < HM_COUNT(nodes); i++) {
		hm_auto_str text = { 0 };

		setup(state);
		load(nodes[i].name, &text);
		assert_string_equal(node->name, nodes[i].name);
		assert_int_equal(node->card_count, nodes[i].cards);
		for (unsigned k = 0; k < node->card_count; k++) {
			const struct sim_card_info *c = &node->cards[k].info;

			assert_string_equal(c->name, nodes[i].model);
			assert_int_equal(c->memory_bytes, (uint64_t)nodes[i].mib << 20);
			assert_int_equal(c->sms, nodes[i].sms);
			assert_int_equal(c->threads_per_sm, nodes[i].threads);
			assert_int_equal(10 * c->cc_major + c->cc_minor, nodes[i].cc);
			assert_int_equal(c->mig_enabled, nodes[i].mig);
			for (unsigned j = 0; j < node->card_count; j++)
				assert_int_equal(c->nvlinks[j], j == k ? 0 : nodes[i].links);
			for (unsigned l = 0; l < SIM_MAX_LINKS; l++)
				assert_int_equal(c->links[l].remote,
						 l < nodes[i].links ? SIM_LINK_SWITCH : SIM_LINK_NONE);
		}
		teardown(state);
	}
	setup(state);
}

static void a_card_in_all_its_parts(void **state)
{
	hm_auto_str text = { 0 };
	const struct sim_card_info *c;

	(void)state;
	load("a100x8-nvlink", &text);
	c = &node->cards[2].info;
	assert_int_equal(node->cuda_version, 12040);
	assert_int_equal(node->switch_count, 6);
	assert_int_equal(c->pci_bus, 0x47);
	assert_int_equal(c->pci_device_id, 0x20b010de);
	assert_int_equal(c->numa_node, 1);
	assert_int_equal(c->minor, 2);
	assert_int_equal(c->cpu_mask[0], 0xffff0000ULL); /* 16-31 */
	assert_int_equal(c->cpu_mask[2], 0xffff0000ULL); /* 144-159 */
	assert_int_equal(c->pci_level[3], SIM_PCI_MULTIPLE);
	assert_int_equal(c->pci_level[0], SIM_PCI_SYSTEM);
	assert_int_equal(c->links[7].card, 1); /* 7 modulo 6 switches */
	assert_int_equal(c->mig_capable, 1);
	assert_int_equal(c->mig_profile_count, 7);
	assert_string_equal(c->mig_profiles[6].name, "7g.40gb");
	assert_int_equal(c->mig_profiles[6].sms, 98);
	assert_int_equal(c->ecc, 1);
	assert_int_equal(c->power_limit_mw, 400000);
	assert_int_equal(c->shared_per_block_optin, 163 << 10);
}

/* The T4 node with one text replaced by another. */
static void broken_nodes_are_refused(void **state)
{
	static const struct {
		const char *from, *to, *error;
	} cases[] = {
		{ "sms: 40", "sms: forty", "models.t4.sms: \"forty\" is not a number between 0 and 1024" },
		{ "sms: 40", "sms: 0", "models.t4.sms: a card without multiprocessors" },
		{ "sms: 40", "smps: 40", "models.t4.smps: unknown key" },
		{ "reserved_mib: 450", "reserved_mib: 15360", "models.t4.reserved_mib: is not less than memory_mib" },
		{ "brand: NVIDIA", "brand: AMD",
		  "models.t4.brand: \"AMD\" is none of the known words, Tesla to Unknown" },
		{ "\"7.5\"", "\"7\"", "models.t4.compute_capability: \"7\" is not a version as \"12.4\"" },
		{ "0x1eb810de", "1eb8", "models.t4.pci_device_id: \"1eb8\" is not a number as 0x1eb810de" },
		{ "model: t4,", "model: t5,", "cards[0].model: \"t5\" is not among the models" },
		{ "0000:00:1d.0", "0000:00:1e.0", "cards[1].pci: is that of card 0 already" },
		{ "0000:00:1d.0", "00:1d.0", "cards[0].pci: \"00:1d.0\" is not a PCI address as 0000:3b:00.0" },
		{ "uuid: GPU-", "uuid: XPU-", "cards[0].uuid: \"XPU-" },
		{ "cpus: \"0-47\"", "cpus: \"47-0\"", "cards[0].cpus: \"47-0\" is not a list of CPUs as 0-23,48-71" },
		{ "numa: 0", "numa: 0, mig: true", "cards[0].mig: the model has no MIG profiles" },
		{ "numa: 0", "numa: 0, mig_instances: [{profile: 1g.5gb, start: 0}]",
		  "cards[0].mig_instances: at most 7, and only with mig: true" },
		{ "numa: 0", "numa: 0, minor: 1", "cards[1].minor: is that of card 0 already" },
		{ "- [X, PHB]", "- [X, NODE]", "topology[1][0]: differs from its mirror image" },
		{ "- [X, PHB]", "- [X]", "topology[0]: needs 2 entries, one a card" },
		{ "- [X, PHB]", "- [PHB, X]", "topology[0][0]: X stands for the card itself" },
		{ "- [X, PHB]\n", "", "topology: needs 2 rows, one a card" },
		{ "name: t4x2", "title: t4x2", "title: unknown key" },
		{ "cuda_version: \"12.4\"", "cuda_version: 12.4",
		  "cuda_version: a number with a fraction is not a text" },
	};
	hm_auto_str text = { 0 };

	(void)state;
	load("t4x2", &text);
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		const char *at = strstr(str_text(&text), cases[i].from);
		hm_auto_str changed = { 0 };
		struct hm_err e = { 0 };

		if (at == NULL)
			fail_msg("%s is not in the file", cases[i].from);
		memset(node, 0, sizeof(struct sim_node) - sizeof node->runs);
		str_add_n(&changed, str_text(&text), (size_t)(at - str_text(&text)));
		str_add(&changed, cases[i].to);
		str_add(&changed, at + strlen(cases[i].from));
		assert_true(node_yaml_load(str_text(&changed), changed.n, node, &e) < 0);
		if (strncmp(e.msg, "line ", 5) != 0 || strstr(e.msg, cases[i].error) == NULL)
			fail_msg("\"%s\" gives \"%s\"", cases[i].to, e.msg);
	}
}

static int load_scenario(void *arg)
{
	const struct str *text = arg;
	struct hm_err e;

	memset(node, 0, sizeof(struct sim_node) - sizeof node->runs);
	return node_yaml_load(text->p, text->n, node, &e);
}

static void out_of_memory_leaks_nothing(void **state)
{
	struct cJSON_Hooks hooks = { malloc, free };
	hm_auto_str text = { 0 };

	(void)state;
	load("sm20", &text);
	cJSON_InitHooks(&hooks);
	sweep_check("node_yaml_load", load_scenario, &text);
	cJSON_InitHooks(NULL);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_nodes_are_what_they_are_named),
		TEST(a_card_in_all_its_parts),
		TEST(broken_nodes_are_refused),
		TEST(out_of_memory_leaks_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
