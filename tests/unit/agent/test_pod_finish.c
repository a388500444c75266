#include "agent/hami/pod_finish.h"

#include "fake_pods.h"
#include "harness/fast_loop.h"
#include "harness/temp.h"
#include "unit/agent/checkpoint_text.h"

static struct world {
	struct pods *pods;
	struct claims *claims;
	struct pod_finish *finish;
} w;

static void begin(void)
{
	struct hm_err e;

	fake_forget();
	w.pods = make_pods();
	assert_int_equal(claims_open(temp_path("claims"), &w.claims, &e), 0);
	const struct pod_finish_config config = { (struct kube_client *)&fake_loop, w.pods, w.claims,
						  "nvidia.com/gpu" };

	assert_int_equal(pod_finish_new(&config, &w.finish, &e), 0);
}

static void end(void)
{
	pod_finish_free(w.finish);
	claims_free(w.claims);
	pods_free(w.pods);
}

static struct pod_finish_stats stats(void)
{
	struct pod_finish_stats s;

	pod_finish_stats(w.finish, &s);
	return s;
}

static void erased(void **state)
{
	/* By HAMi's reading: every ";" ends an entry, and what is behind the last is one more. */
	static const char *const rows[][2] = {
		{ "A,NVIDIA,3000,30:;", ";;" },
		{ "", ";" },
		{ ";;", ";;;" },
		{ ";A,NVIDIA,1,1:;B,NVIDIA,1,1:;", ";;;;" },
		{ "no format at all", ";" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str out = { 0 };

		pod_finish_erased(rows[i][0], &out);
		assert_string_equal(str_text(&out), rows[i][1]);
	}
}

#define POD_A "{\"metadata\":{\"name\":\"a\",\"uid\":\"uid-a\",\"resourceVersion\":\"2\"}}"

static void one_patch(void **state)
{
	struct fake_request *r;

	(void)state;
	begin();
	tell_pod("a", "1", "Pending", "x", TO_ALLOCATE("A,NVIDIA,1,1:;") "," PHASE("allocating"));
	pod_finish_success(w.finish, "uid-a");
	r = fake_open();
	assert_int_equal(r->verb, KUBE_PATCH);
	assert_string_equal(r->path, "/api/v1/namespaces/ns/pods/a");
	assert_string_equal(r->content_type, "application/merge-patch+json");
	assert_string_equal(r->body,
			    "{\"metadata\":{\"uid\":\"uid-a\",\"annotations\":{\"hami.io/bind-phase\":\"success\","
			    "\"hami.io/vgpu-devices-to-allocate\":\";;\"}}}");
	pod_finish_success(w.finish, "uid-a"); /* the next container, while it is under way */
	fake_answer(KUBE_DONE, 200, POD_A);
	pod_finish_success(w.finish, "uid-a"); /* and before the watch tells */
	pod_finish_failure(w.finish, "uid-a"); /* never back */
	assert_int_equal(fake_count, 1);
	assert_int_equal(stats().patches, 1);
	assert_int_equal(stats().waiting, 0);
	end();
}

static void what_is_said_already_is_not_said(void **state)
{
	(void)state;
	begin();
	tell_pod("a", "1", "Running", "x", TO_ALLOCATE(";;") "," PHASE("success"));
	pod_finish_success(w.finish, "uid-a");
	tell_pod("b", "1", "Running", "x", PHASE("failed"));
	pod_finish_failure(w.finish, "uid-b");
	tell_pod("c", "1", "Running", "x", PHASE("success")); /* no text to erase */
	pod_finish_success(w.finish, "uid-c");
	assert_int_equal(fake_count, 0);
	/* Of an older agent that was killed between two patches: something is left. */
	tell_pod("d", "1", "Running", "x", TO_ALLOCATE("A,NVIDIA,1,1:;") "," PHASE("success"));
	pod_finish_success(w.finish, "uid-d");
	assert_int_equal(fake_count, 1);
	end();
}

static void a_failure_and_then_a_success(void **state)
{
	(void)state;
	begin();
	tell_pod("a", "1", "Pending", "x", TO_ALLOCATE("A;") "," PHASE("allocating"));
	pod_finish_failure(w.finish, "uid-a");
	assert_string_equal(fake_open()->body,
			    "{\"metadata\":{\"uid\":\"uid-a\",\"annotations\":{\"hami.io/bind-phase\":"
			    "\"failed\"}}}");
	pod_finish_success(w.finish, "uid-a");
	assert_false(fake_requests[0].open);
	assert_non_null(strstr(fake_open()->body, "success"));
	fake_answer(KUBE_DONE, 200, POD_A);
	assert_int_equal(fake_count, 2);
	end();
}

static bool second_try(const void *arg)
{
	(void)arg;
	return fake_count == 2;
}

static void an_answer_that_is_not_the_pod(void **state)
{
	(void)state;
	begin();
	tell_pod("a", "1", "Pending", "x", PHASE("allocating"));
	pod_finish_success(w.finish, "uid-a");
	fake_answer(KUBE_DONE, 200, "<html>");
	assert_int_equal(stats().patches, 0);
	assert_true(fast_until(fake_loop, second_try, NULL));
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"name\":\"a\",\"uid\":\"other\",\"resourceVersion\":\"2\"}}");
	assert_int_equal(stats().patches, 0);
	assert_int_equal(stats().waiting, 1);
	end();
}

static void tried_again_and_given_up(void **state)
{
	(void)state;
	begin();
	tell_pod("a", "1", "Pending", "x", PHASE("allocating"));
	pod_finish_success(w.finish, "uid-a");
	fake_answer(KUBE_SERVER_ERROR, 500, "");
	assert_int_equal(stats().waiting, 1);
	assert_true(fast_until(fake_loop, second_try, NULL));
	assert_int_equal(stats().retries, 1);
	/* The server gave up among other writers; the watch has the pod still. */
	fake_answer(KUBE_CONFLICT, 409, "");
	fast_run(fake_loop, 5000);
	assert_int_equal(fake_count, 3);
	fake_answer(KUBE_CONFLICT, 422, ""); /* another pod has its name */
	assert_int_equal(stats().waiting, 1);
	tell_gone("a");
	assert_int_equal(stats().waiting, 0);
	fast_run(fake_loop, 60000);
	assert_int_equal(fake_count, 3);
	tell_pod("c", "1", "Pending", "x", PHASE("allocating"));
	pod_finish_success(w.finish, "uid-c");
	fake_answer(KUBE_NOT_FOUND, 404, "");
	fast_run(fake_loop, 60000);
	assert_int_equal(fake_count, 4);
	assert_int_equal(stats().dropped, 1);
	tell_gone("c");
	/* A request that cannot even be begun is tried again as well. */
	tell_pod("b", "1", "Pending", "x", PHASE("allocating"));
	fake_refuses = true;
	pod_finish_success(w.finish, "uid-b");
	fake_refuses = false;
	fast_run(fake_loop, 5000);
	assert_int_equal(fake_count, 5);
	tell_gone("b");
	assert_false(fake_requests[4].open);
	end();
}

/* The agent was away, or the pod is told after its start. */
static void what_was_missed(void **state)
{
	(void)state;
	begin();
	pod_finish_success(w.finish, "uid-late");
	assert_int_equal(fake_count, 0);
	tell_pod("late", "1", "Pending", "x", PHASE("allocating"));
	assert_int_equal(fake_count, 1);

	struct claim c = make_claim(5, "uid-was", "hami.io/vgpu=v.5", "A-0", NULL);
	snprintf(c.resource, sizeof c.resource, "nvidia.com/gpu");
	put_claim(w.claims, c);
	c = make_claim(6, "uid-other", "hami.io/vgpu=v.6", "A-0", NULL); /* of another resource */
	put_claim(w.claims, c);
	tell_pod("other", "1", "Pending", "x", PHASE("allocating"));
	tell_pod("nobody", "1", "Pending", "x", PHASE("allocating"));
	assert_int_equal(fake_count, 1);
	tell_pod("was", "1", "Running", "x", PHASE("allocating"));
	assert_int_equal(fake_count, 2);
	end();
}

static int set_up(void **state)
{
	log_set_sink(fast_keep_line, NULL);
	return temp_setup(state) < 0 ? -1 : fake_setup(state);
}

static int tear_down(void **state)
{
	(void)fake_teardown(state);
	return temp_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(erased, set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_patch, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_said_already_is_not_said, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_failure_and_then_a_success, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_answer_that_is_not_the_pod, set_up, tear_down),
		cmocka_unit_test_setup_teardown(tried_again_and_given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_was_missed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
