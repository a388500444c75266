/* The Node's annotations as HAMi 2.10's plugin wrote them for the same cards and configuration. */
#include "agent/cards/hami_cards.h"

#include <string.h>

#include "harness/unit.h"
#include "unit/model/make_inventory.h"

static struct agent_options options;
static struct option_spec table[AGENT_OPTION_COUNT];

static void begin(void)
{
	agent_options_init(&options, table);
	options.mode = "hami";
	options.binding = "classic"; /* HAMi's own */
}

static struct inventory *node(size_t count, const char *const models[], uint64_t mib, char series)
{
	struct inventory *inv = make_inventory(count, mib);

	for (size_t i = 0; i < count; i++) {
		snprintf(inv->cards[i].uuid, sizeof inv->cards[i].uuid, "GPU-0000000%c-5a5a-5000-8000-%012zu", series,
			 i);
		snprintf(inv->cards[i].model, sizeof inv->cards[i].model, "%s", models[i]);
	}
	return inv;
}

static struct fleet *next(const struct fleet *before, const struct inventory *scanned)
{
	struct fleet *f = NULL;
	struct hm_err e;

	assert_int_equal(fleet_new(before, scanned, &f, &e), 0);
	return f;
}

static void check_register(const struct fleet *f, const char *expected)
{
	hm_auto_str text = { 0 };
	struct hm_err e;

	assert_int_equal(hami_cards_register_text(f, &options, NULL, &text, &e), 0);
	assert_string_equal(str_text(&text), expected);
}

static void check_node(const struct inventory *inv, const char *expected)
{
	hm_auto(fleet) *f = next(NULL, inv);

	check_register(f, expected);
}

static void scaled(void **state)
{
	static const char *const t4[] = { "Tesla T4", "Tesla T4" }, *const a10[] = { "NVIDIA A10" };
	hm_auto(inventory) *up = node(2, t4, 15360, '7'), *down = node(1, a10, 23028, '8');

	(void)state;
	begin();
	options.hami.device_split_count = 5;
	options.hami.device_memory_scaling = 1.5;
	options.hami.device_cores_scaling = 1.15; /* 1.15 * 100 is a little less than 115 */
	check_node(up,
		   "[{\"id\":\"GPU-00000007-5a5a-5000-8000-000000000000\",\"count\":5,\"devmem\":23040,\"devcore\":114,"
		   "\"type\":\"NVIDIA-Tesla T4\",\"mode\":\"hami-core\",\"health\":true},"
		   "{\"id\":\"GPU-00000007-5a5a-5000-8000-000000000001\",\"index\":1,\"count\":5,\"devmem\":23040,"
		   "\"devcore\":114,\"type\":\"NVIDIA-Tesla T4\",\"mode\":\"hami-core\",\"health\":true}]");
	options.hami.device_split_count = 1;
	options.hami.device_memory_scaling = 0.5;
	options.hami.device_cores_scaling = 0.29;
	check_node(down, "[{\"id\":\"GPU-00000008-5a5a-5000-8000-000000000000\",\"count\":1,\"devmem\":11514,"
			 "\"devcore\":28,\"type\":\"NVIDIA A10\",\"mode\":\"hami-core\",\"health\":true}]");
	options.hami.device_memory_scaling = 1e6; /* more than fits */
	check_node(down, "[{\"id\":\"GPU-00000008-5a5a-5000-8000-000000000000\",\"count\":1,\"devmem\":2147483647,"
			 "\"devcore\":28,\"type\":\"NVIDIA A10\",\"mode\":\"hami-core\",\"health\":true}]");
}

static void names_numa_and_mode(void **state)
{
	static const char *const odd[] = { "Quadro RTX 6000", "NVIDIA RTX A4000", "GRID <&> \"q\"" };
	hm_auto(inventory) *inv = node(3, odd, 16384, 'd');

	(void)state;
	begin();
	options.hami.operating_mode = "mps";
	inv->cards[0].numa_node = 0;
	inv->cards[1].numa_node = 1;
	inv->cards[2].numa_node = -1;
	check_node(inv,
		   "[{\"id\":\"GPU-0000000d-5a5a-5000-8000-000000000000\",\"count\":10,\"devmem\":16384,"
		   "\"devcore\":100,\"type\":\"NVIDIA-Quadro RTX 6000\",\"mode\":\"mps\",\"health\":true},"
		   "{\"id\":\"GPU-0000000d-5a5a-5000-8000-000000000001\",\"index\":1,\"count\":10,\"devmem\":16384,"
		   "\"devcore\":100,\"type\":\"NVIDIA RTX A4000\",\"numa\":1,\"mode\":\"mps\",\"health\":true},"
		   "{\"id\":\"GPU-0000000d-5a5a-5000-8000-000000000002\",\"index\":2,\"count\":10,\"devmem\":16384,"
		   "\"devcore\":100,\"type\":\"NVIDIA-GRID \\u003c\\u0026\\u003e "
		   "\\\"q\\\"\",\"mode\":\"mps\",\"health\":true}]");
	options.binding = "late";
	inv->count = 1;
	check_node(inv, "[{\"id\":\"GPU-0000000d-5a5a-5000-8000-000000000000\",\"count\":10,\"devmem\":16384,"
			"\"devcore\":100,\"type\":\"NVIDIA-Quadro RTX 6000\",\"mode\":\"mps\",\"health\":true,"
			"\"custominfo\":{\"binding\":\"late\"}}]");
}

static void a_lost_card_keeps_its_place(void **state)
{
	static const char *const models[] = { "NVIDIA A10", "NVIDIA A10" };
	hm_auto(inventory) *both = node(2, models, 1000, '1'), *second = node(2, models, 1000, '1');
	struct hami_card cards[HM_MAX_CARDS];

	(void)state;
	begin();
	second->cards[0] = second->cards[1];
	second->count = 1;
	hm_auto(fleet) *before = next(NULL, both);
	hm_auto(fleet) *lost = next(before, second);
	check_register(
		lost,
		"[{\"id\":\"GPU-00000001-5a5a-5000-8000-000000000000\",\"count\":10,\"devmem\":1000,"
		"\"devcore\":100,\"type\":\"NVIDIA A10\",\"mode\":\"hami-core\"},"
		"{\"id\":\"GPU-00000001-5a5a-5000-8000-000000000001\",\"index\":1,\"count\":10,"
		"\"devmem\":1000,\"devcore\":100,\"type\":\"NVIDIA A10\",\"mode\":\"hami-core\",\"health\":true}]");
	assert_int_equal(hami_cards_of(lost, &options.hami, cards), 2);
	assert_false(cards[0].healthy);
	assert_int_equal(cards[0].card->index, 0);
	assert_ptr_equal(cards[0].card, &fleet_inventory(lost)->cards[cards[0].at]);
}

static void memory_that_nvml_cannot_tell(void **state)
{
	static const char *const models[] = { "NVIDIA GB10", "NVIDIA GB10" };
	hm_auto(inventory) *inv = node(2, models, 8192, 'f');
	struct hami_card cards[HM_MAX_CARDS];

	(void)state;
	begin();
	inv->cards[0].memory_bytes = 0;
	hm_auto(fleet) *f = next(NULL, inv);
	assert_int_equal(hami_cards_of(f, &options.hami, cards), 1);
	assert_int_equal(cards[0].card->index, 1);
	options.hami.preconfigured_memory_mib = 65536;
	assert_int_equal(hami_cards_of(f, &options.hami, cards), 2);
	assert_int_equal(cards[0].memory_mib, 65536);
	assert_int_equal(cards[1].memory_mib, 8192); /* this one NVML tells */
}

static void without_cards_nothing_is_said(void **state)
{
	hm_auto(fleet) *f = next(NULL, NULL);
	hm_auto_str text = { 0 };
	bool asymmetric;
	struct hm_err e;

	(void)state;
	begin();
	check_register(f, "");
	assert_int_equal(hami_cards_score_text(f, &options.hami, &text, &asymmetric, &e), 0);
	assert_int_equal(text.n, 0);
}

static void scores(void **state)
{
	static const char *const models[] = { "NVIDIA A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB",
					      "NVIDIA A100-SXM4-40GB" };
	hm_auto(inventory) *inv = node(3, models, 40960, '4');
	hm_auto_str text = { 0 };
	bool asymmetric = false;
	struct hm_err e;

	(void)state;
	begin();
	/* NVLinks: 0 to 1 twice and not back, 1 to 2 and back. */
	inv->links[0 * 3 + 1] = (struct card_link) { LINK_NVLINK, 2, LINK_NODE, 2, 0 };
	inv->links[1 * 3 + 0] = (struct card_link) { LINK_NVLINK, 2, LINK_NODE, 0, 0 };
	inv->links[0 * 3 + 2] = inv->links[2 * 3 + 0] = (struct card_link) { LINK_SYSTEM, 0, LINK_SYSTEM, 0, 0 };
	inv->links[1 * 3 + 2] = inv->links[2 * 3 + 1] = (struct card_link) { LINK_NVLINK, 1, LINK_SYSTEM, 1, 0 };
	hm_auto(fleet) *f = next(NULL, inv);
	assert_int_equal(hami_cards_score_text(f, &options.hami, &text, &asymmetric, &e), 0);
	assert_true(asymmetric);
	assert_string_equal(
		str_text(&text),
		"[{\"uuid\":\"GPU-00000004-5a5a-5000-8000-000000000000\",\"score\":{"
		"\"GPU-00000004-5a5a-5000-8000-000000000001\":0,\"GPU-00000004-5a5a-5000-8000-000000000002\":10}},"
		"{\"uuid\":\"GPU-00000004-5a5a-5000-8000-000000000001\",\"score\":{"
		"\"GPU-00000004-5a5a-5000-8000-000000000000\":0,\"GPU-00000004-5a5a-5000-8000-000000000002\":110}},"
		"{\"uuid\":\"GPU-00000004-5a5a-5000-8000-000000000002\",\"score\":{"
		"\"GPU-00000004-5a5a-5000-8000-000000000000\":10,\"GPU-00000004-5a5a-5000-8000-000000000001\":110}}]");
}

static int32_t its_count;

static int add_profile(void *arg, const struct card *card, struct node_register *into, int32_t *count, struct hm_err *e)
{
	const struct register_placement at[] = { { 0, 1 }, { 1, 1 } };
	const struct register_profile p = { .name = "1g.5gb", .memory_mib = 4864, .cores = 15, .slices = 1 };

	(void)arg;
	*count = card->index == 0 ? its_count : 0;
	return *count > 0 ? register_add_profile(into, &p, at, 2, e) : 0;
}

static void mig_profiles_come_from_elsewhere(void **state)
{
	static const char *const models[] = { "NVIDIA A100-SXM4-40GB", "NVIDIA T4" };
	hm_auto(inventory) *inv = node(2, models, 40960, '3');
	const struct hami_profiles profiles = { add_profile, NULL };
	hm_auto_str text = { 0 };
	struct hm_err e;

	(void)state;
	begin();
	options.hami.operating_mode = "mig";
	options.hami.device_memory_scaling = options.hami.device_cores_scaling = 2; /* not of MIG's cards */
	its_count = 7;
	hm_auto(fleet) *f = next(NULL, inv);
	assert_int_equal(hami_cards_register_text(f, &options, &profiles, &text, &e), 0);
	assert_string_equal(
		str_text(&text),
		"[{\"id\":\"GPU-00000003-5a5a-5000-8000-000000000000\",\"count\":7,\"devmem\":40960,\"devcore\":100,"
		"\"type\":\"NVIDIA A100-SXM4-40GB\",\"mode\":\"mig\",\"migProfiles\":[{\"name\":\"1g.5gb\","
		"\"memoryMB\":4864,\"core\":15,\"sliceCount\":1,\"placements\":[{\"start\":0,\"size\":1},"
		"{\"start\":1,\"size\":1}]}],\"health\":true}]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scaled),
		cmocka_unit_test(names_numa_and_mode),
		cmocka_unit_test(a_lost_card_keeps_its_place),
		cmocka_unit_test(memory_that_nvml_cannot_tell),
		cmocka_unit_test(without_cards_nothing_is_said),
		cmocka_unit_test(scores),
		cmocka_unit_test(mig_profiles_come_from_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
