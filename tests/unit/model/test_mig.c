#include "model/mig.h"

#include <string.h>

#include "core/macros.h"
#include "harness/unit.h"

/* An A100 40GB's profiles, as NVIDIA's MIG user guide lists them. */
static void a100(struct mig_card *c)
{
	static const struct mig_profile profiles[] = {
		{ "1g.5gb", 19, 1, 7, 14, 4864, 1, { 0, 1, 2, 3, 4, 5, 6 }, 7 },
		{ "1g.5gb+me", 20, 1, 1, 14, 4864, 1, { 0, 1, 2, 3, 4, 5, 6 }, 7 },
		{ "1g.10gb", 15, 1, 4, 14, 9856, 2, { 0, 2, 4, 6 }, 4 },
		{ "2g.10gb", 14, 2, 3, 28, 9856, 2, { 0, 2, 4 }, 3 },
		{ "3g.20gb", 9, 3, 2, 42, 19968, 4, { 0, 4 }, 2 },
		{ "4g.20gb", 5, 4, 1, 56, 19968, 4, { 0 }, 1 },
		{ "7g.40gb", 0, 7, 1, 98, 40192, 8, { 0 }, 1 },
	};

	*c = (struct mig_card) { .capable = true, .enabled = true, .pending = true };
	memcpy(c->profiles, profiles, sizeof profiles);
	c->profile_count = HM_COUNT(profiles);
}

static void a_name_is_the_key(void **state)
{
	static const struct {
		const char *name, *found; /* NULL: none */
	} rows[] = {
		{ "1g.5gb", "1g.5gb" },
		{ "1g.5gb+me", "1g.5gb+me" },
		{ "1g.10gb", "1g.10gb" },
		{ "7g.41gb", "7g.40gb" }, /* rounded otherwise */
		{ "7g.39gb", "7g.40gb" },
		{ "7g.80gb", NULL },
		{ "1g.5gb+gfx", NULL },
		{ "1g.20gb", NULL },
		{ "9g.90gb", NULL },
		{ "1g", NULL },
		{ "", NULL },
		{ "all", NULL },
	};
	struct mig_card c;

	(void)state;
	a100(&c);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const struct mig_profile *p = mig_find_profile(&c, rows[i].name);

		if ((p == NULL) != (rows[i].found == NULL) || (p != NULL && strcmp(p->name, rows[i].found) != 0))
			fail_msg("%s gives %s", rows[i].name, p == NULL ? "none" : p->name);
	}
}

static void resources_have_no_plus(void **state)
{
	char name[64], small[8];

	(void)state;
	assert_true(mig_resource_name("1g.5gb", name, sizeof name));
	assert_string_equal(name, "nvidia.com/mig-1g.5gb");
	assert_true(mig_resource_name("1g.5gb+me", name, sizeof name));
	assert_string_equal(name, "nvidia.com/mig-1g.5gb.me");
	assert_false(mig_resource_name("1g.5gb", small, sizeof small));
}

/* Names that nvidia-smi shows for what NVML says of these cards. */
static void names_are_made_as_the_tools_make_them(void **state)
{
	static const struct {
		unsigned slices;
		unsigned memory, card;
		const char *suffix, *name;
	} rows[] = {
		{ 1, 4864, 40960, "", "1g.5gb" },    { 1, 4864, 40960, "+me", "1g.5gb+me" },
		{ 3, 19968, 40960, "", "3g.20gb" },  { 7, 40192, 40960, "", "7g.40gb" },
		{ 1, 9984, 81559, "", "1g.10gb" },   { 7, 81152, 81559, "", "7g.80gb" },
		{ 1, 5952, 24576, "", "1g.6gb" },    { 4, 24125, 24576, "", "4g.24gb" },
		{ 1, 16384, 143771, "", "1g.18gb" }, { 3, 71168, 143771, "", "3g.71gb" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		char name[MIG_NAME_BYTES];

		mig_make_name(rows[i].slices, rows[i].memory, rows[i].card, rows[i].suffix, name, sizeof name);
		assert_string_equal(name, rows[i].name);
	}
}

static void places_do_not_overlap(void **state)
{
	const struct mig_profile *p;
	struct mig_card c;

	(void)state;
	a100(&c);
	p = mig_find_profile(&c, "2g.10gb");
	assert_true(mig_may_stand(p, (struct mig_placement) { 2, 2 }));
	assert_false(mig_may_stand(p, (struct mig_placement) { 1, 2 }));
	assert_false(mig_may_stand(p, (struct mig_placement) { 2, 1 }));
	assert_true(mig_overlaps((struct mig_placement) { 0, 8 }, (struct mig_placement) { 7, 1 }));
	assert_false(mig_overlaps((struct mig_placement) { 0, 2 }, (struct mig_placement) { 2, 2 }));
	assert_true(mig_overlaps((struct mig_placement) { 1, 0xffffffffU }, (struct mig_placement) { 2, 1 }));
}

static void sums(void **state)
{
	struct mig_card c;

	(void)state;
	a100(&c);
	assert_int_equal(mig_cores(mig_find_profile(&c, "1g.5gb"), &c), 15); /* 14 of 98: 14.3 */
	assert_int_equal(mig_cores(mig_find_profile(&c, "2g.10gb"), &c), 29);
	assert_int_equal(mig_cores(mig_find_profile(&c, "7g.40gb"), &c), 100);
	assert_int_equal(mig_most_instances(c.profiles, c.profile_count), 7);
	assert_int_equal(mig_most_instances(&c.profiles[3], 2), 3);
}

static void a_model_is_meant_or_not(void **state)
{
	static const struct {
		const char *pattern, *model;
		unsigned mib;
		bool matches;
	} rows[] = {
		{ "A30", "NVIDIA A30", 24576, true },
		{ "A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB", 40960, true },
		{ "A100-SXM4-80GB", "NVIDIA A100-SXM4-40GB", 40960, false },
		{ "A100-80GB-PCIe", "NVIDIA A100 80GB PCIe", 81920, true },
		{ "A100-PCIE-40GB", "NVIDIA A100-PCIE-40GB", 40960, true },
		{ "H100-SXM5-80GB", "NVIDIA H100 80GB HBM3", 81559, true },
		{ "H100-PCIE-80GB", "NVIDIA H100 PCIe", 81559, true },
		{ "H100-SXM5-80GB", "NVIDIA H100 PCIe", 81559, false },
		{ "H100-PCIE-80GB", "NVIDIA H100 80GB HBM3", 81559, false },
		{ "H100-SXM5-94GB", "NVIDIA H100 80GB HBM3", 81559, false },
		{ "H200-SXM5", "NVIDIA H200", 143771, true },
		{ "H200 NVL", "NVIDIA H200 NVL", 143771, true },
		{ "H200-SXM5", "NVIDIA H200 NVL", 143771, false },
		{ "H20", "NVIDIA H20", 97871, true },
		{ "a30", "NVIDIA A30", 24576, true },
		{ "A30", "NVIDIA L4", 24576, false },
		{ "80GB", "NVIDIA H100 PCIe", 81559, true },
		{ "", "NVIDIA A30", 24576, false },
		{ "-", "NVIDIA A30", 24576, false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		if (mig_model_matches(rows[i].pattern, rows[i].model, (uint64_t)rows[i].mib << 20) != rows[i].matches)
			fail_msg("%s, %s", rows[i].pattern, rows[i].model);
}

static void a_list_says_what_is_allowed(void **state)
{
	static const char *models[] = { "A30", "A100-SXM4-40GB" }, *others[] = { "A100" };
	static const char *profiles[] = { "2g.10gb", "7g.41gb", "9g.90gb", "1g.5gb+me" }, *few[] = { "1g.5gb" };
	struct mig_allowed items[] = { { models, 2, profiles, 4 }, { others, 1, few, 1 } };
	const struct mig_allowlist list = { items, 2 };
	struct mig_profile out[MIG_MAX_PROFILES];
	struct mig_card c;
	bool listed;

	(void)state;
	a100(&c);
	assert_int_equal(mig_allowed(&list, "NVIDIA A100-SXM4-40GB", 40960ULL << 20, &c, out, &listed), 3);
	assert_true(listed);
	assert_string_equal(out[0].name, "2g.10gb");
	assert_string_equal(out[1].name, "7g.41gb"); /* the list's name, the card's profile */
	assert_int_equal(out[1].id, 0);
	assert_string_equal(out[2].name, "1g.5gb+me");
	assert_int_equal(mig_allowed(&list, "NVIDIA A100 80GB PCIe", 81920ULL << 20, &c, out, &listed), 1);
	assert_int_equal(mig_allowed(&list, "NVIDIA H100 PCIe", 81559ULL << 20, &c, out, &listed), 0);
	assert_false(listed);
	assert_int_equal(mig_allowed(NULL, "NVIDIA H100 PCIe", 81559ULL << 20, &c, out, &listed), 6); /* all but +me */
	assert_true(listed);
}

static void a_difference_is_seen(void **state)
{
	struct mig_card a, b;

	(void)state;
	a100(&a);
	a.device_count = 1;
	a.devices[0] = (struct mig_device) { "MIG-a", "1g.5gb", 7, 0, { 0, 1 }, 4864, true };
	b = a;
	assert_true(mig_card_equal(&a, &b));
	assert_ptr_equal(mig_find_device(&a, "MIG-a"), &a.devices[0]);
	assert_null(mig_find_device(&a, "MIG-b"));
	b.devices[0].gi = 8;
	assert_false(mig_card_equal(&a, &b));
	b = a;
	b.pending = false;
	assert_false(mig_card_equal(&a, &b));
	b = a;
	b.profiles[2].starts[3] = 5;
	assert_false(mig_card_equal(&a, &b));
	b = a;
	b.device_count = 0;
	assert_false(mig_card_equal(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_the_key),
		cmocka_unit_test(resources_have_no_plus),
		cmocka_unit_test(names_are_made_as_the_tools_make_them),
		cmocka_unit_test(places_do_not_overlap),
		cmocka_unit_test(sums),
		cmocka_unit_test(a_model_is_meant_or_not),
		cmocka_unit_test(a_list_says_what_is_allowed),
		cmocka_unit_test(a_difference_is_seen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
