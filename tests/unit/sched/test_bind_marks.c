#include "sched/bind/bind_marks.h"

#include <string.h>

#include "contract/hami.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "unit/hami/signed_placement.h"

static const char *mark(const struct bind_marks *m, const char *key)
{
	for (size_t i = 0; i < m->count; i++)
		if (strcmp(m->values[i].key, key) == 0)
			return m->values[i].value;
	return NULL;
}

static struct cluster *holding(const struct hold_share *shares, size_t count, const struct card_ask *asks,
			       size_t ask_count)
{
	const struct hold h = { .uid = POD_UID,
				.name_space = "ns",
				.name = "p",
				.node = "node-1",
				.state = HOLD_BINDING,
				.asks = asks,
				.ask_count = ask_count,
				.shares = shares,
				.share_count = count };
	struct cluster *c = cluster_new(1);

	assert_int_equal(cluster_hold(c, &h, NULL), 0);
	return c;
}

static void an_entry_for_each_container(void **state)
{
	static const struct card_ask asks[] = { { .kind = ASK_INIT },
						{ .kind = ASK_SIDECAR },
						{ .kind = ASK_APP },
						{ .kind = ASK_APP },
						{ .kind = ASK_APP } };
	static const struct hold_share shares[] = {
		{ 1, "GPU-a", 8000, 0, NULL, { 0, 0 } },
		{ 3, "GPU-b", 2500, 25, NULL, { 0, 0 } },
		{ 3, "GPU-a", 2500, 25, NULL, { 0, 0 } },
	};
	hm_auto(cluster) *c = holding(shares, HM_COUNT(shares), asks, HM_COUNT(asks));
	struct bind_marks m;

	(void)state;
	assert_int_equal(bind_marks_make(cluster_find(c, POD_UID), NULL, 1787293239999, &m, NULL), 0);
	assert_string_equal(mark(&m, "hami.io/vgpu-devices-allocated"),
			    ";GPU-a,NVIDIA,8000,0:;;GPU-b,NVIDIA,2500,25:GPU-a,NVIDIA,2500,25:;;");
	assert_string_equal(mark(&m, "hami.io/vgpu-time"), "1787293239");
	assert_null(mark(&m, "hami.io/vgpu-signature"));
	assert_null(mark(&m, "hami.io/vgpu-mig-allocations"));
	bind_marks_fini(&m);
}

static void mig_instances(void **state)
{
	static const struct card_ask asks[] = { { .kind = ASK_APP }, { .kind = ASK_APP } };
	static const struct hold_share shares[] = {
		{ 1, "GPU-a", 9984, 29, "2g.10gb", { 0, 2 } },
		{ 1, "GPU-a", 9984, 29, "2g.10gb", { 2, 2 } },
	};
	hm_auto(cluster) *c = holding(shares, HM_COUNT(shares), asks, HM_COUNT(asks));
	struct bind_marks m;

	(void)state;
	assert_int_equal(bind_marks_make(cluster_find(c, POD_UID), NULL, 1787293239000, &m, NULL), 0);
	assert_string_equal(mark(&m, "hami.io/vgpu-devices-allocated"), ";GPU-a,NVIDIA,9984,29:GPU-a,NVIDIA,9984,29:;");
	assert_string_equal(
		mark(&m, "hami.io/vgpu-mig-allocations"),
		"[{\"containerIndex\":1,\"deviceIndex\":0,\"gpuUUID\":\"GPU-a\",\"profile\":\"2g.10gb\",\"placement\":{"
		"\"start\":0,\"size\":2}},{\"containerIndex\":1,\"deviceIndex\":1,\"gpuUUID\":\"GPU-a\",\"profile\":"
		"\"2g.10gb\",\"placement\":{\"start\":2,\"size\":2}}]");
	bind_marks_fini(&m);
}

static void signed_by_the_newest_key(void **state)
{
	static const struct card_ask asks[] = { { .kind = ASK_APP } };
	static const struct hold_share share = { 0, "GPU-a", 3000, 30, NULL, { 0, 0 } };
	hm_auto(cluster) *c = holding(&share, 1, asks, 1);
	hm_auto(signature_keys) *keys = NULL;
	struct bind_marks m;
	struct hm_err e;

	(void)state;
	assert_int_equal(signature_keys_open(temp_path(""), &keys, &e), 0);
	assert_int_equal(bind_marks_make(cluster_find(c, POD_UID), keys, 1787293239000, &m, &e), -HM_ENOTFOUND);
	bind_marks_fini(&m);
	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_refresh(keys, &e), 1);
	assert_int_equal(bind_marks_make(cluster_find(c, POD_UID), keys, 1787293239000, &m, &e), 0);
	assert_string_equal(mark(&m, "hami.io/vgpu-signature"), "v1.2026-11." PLAIN_BY_1);
	bind_marks_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_entry_for_each_container),
		cmocka_unit_test(mig_instances),
		cmocka_unit_test_setup_teardown(signed_by_the_newest_key, temp_setup, temp_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
