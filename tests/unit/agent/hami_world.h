/* Late binding's parts over the test's API server and two cards, for the tests of hami_late and what stands around it.
 */
#ifndef HM_TESTS_AGENT_HAMI_WORLD_H
#define HM_TESTS_AGENT_HAMI_WORLD_H

#include "agent/hami/hami_late.h"
#include "fake_pods.h"
#include "harness/fast_loop.h"
#include "harness/temp.h"

#define ALLOCATING PHASE("allocating")

static struct world {
	struct pods *pods;
	struct claims *claims;
	struct checkpoint_cache *checkpoint;
	struct pod_finish *finish;
	struct signature_keys *keys;
	struct hami_late *late;
	struct card cards[2];
	struct inventory inventory;
	char path[512];
} w;

static inline void begin(const struct hami_late_config *more)
{
	struct hami_late_config config = *more;
	struct hm_err e;

	fake_forget();
	w = (struct world) { .cards = { { .uuid = "GPU-0-0-0-0-a" }, { .uuid = "GPU-0-0-0-0-b" } } };
	w.inventory = (struct inventory) { .cards = w.cards, .count = 2 };
	snprintf(w.path, sizeof w.path, "%s", temp_path("kubelet_internal_checkpoint"));
	w.pods = make_pods();
	assert_int_equal(claims_open(temp_path("claims"), &w.claims, &e), 0);
	assert_int_equal(checkpoint_cache_new(w.path, "nvidia.com/gpu", &w.checkpoint, &e), 0);
	const struct pod_finish_config finish = { (struct kube_client *)&fake_loop, w.pods, w.claims,
						  "nvidia.com/gpu" };

	assert_int_equal(pod_finish_new(&finish, &w.finish, &e), 0);
	config.node = "node-1";
	config.resource = "nvidia.com/gpu";
	config.pods = w.pods;
	config.claims = w.claims;
	config.checkpoint = w.checkpoint;
	config.finish = w.finish;
	config.keys = w.keys;
	assert_int_equal(hami_late_new(&config, &w.late, &e), 0);
	fake_reflector.synced(fake_reflector.arg);
}

static inline void end(void)
{
	hami_late_free(w.late);
	pod_finish_free(w.finish);
	checkpoint_cache_free(w.checkpoint);
	signature_keys_free(w.keys);
	claims_free(w.claims);
	pods_free(w.pods);
}

static inline struct hami_late_stats stats(void)
{
	struct hami_late_stats s;

	hami_late_stats(w.late, &s);
	return s;
}

static inline int set_up(void **state)
{
	log_set_sink(fast_keep_line, NULL);
	return temp_setup(state) < 0 ? -1 : fake_setup(state);
}

static inline int tear_down(void **state)
{
	(void)fake_teardown(state);
	return temp_teardown(state);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

#endif
