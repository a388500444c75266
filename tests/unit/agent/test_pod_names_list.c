/* Asking the kubelet for its pods, against a pod-resources service in the same loop. */
#include "agent/cluster/pod_names.h"

#include "harness/fast_loop.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "io/file.h"
#include "rpc/server.h"
#include "unit/agent/checkpoint_text.h"

struct fixture {
	struct loop *loop;
	struct rpc_server *kubelet;
	struct claims *claims;
	struct pod_names *names;
	char socket[128];
	const char *pod; /* that holds GPU-0::0; NULL: none */
	int status;
	size_t lists, wanted;
};

static void on_list(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	/* pod "train" or "other" in "ns", container "c1" with device "GPU-0::0" */
	static const char train[] = "\x0a\x2c\x0a\x05train\x12\x02ns\x1a\x1f\x0a\x02"
				    "c1\x12\x19\x0a\x0dhami.com/vgpu\x12\x08GPU-0::0";
	struct fixture *f = arg;
	char list[sizeof train];

	(void)msg, (void)n;
	f->lists++;
	if (f->status != RPC_OK) {
		rpc_call_finish(call, f->status, "not now");
		return;
	}
	memcpy(list, train, sizeof train);
	if (f->pod != NULL)
		memcpy(list + 4, f->pod, 5);
	rpc_call_reply(call, (const uint8_t *)list, f->pod != NULL ? sizeof train - 1 : 0);
}

static const struct rpc_method methods[] = { { "/v1.PodResourcesLister/List", on_list, NULL } };

static char unnamed[1024]; /* a claim's file */

static int make(struct fixture *f, struct hm_err *e)
{
	snprintf(f->socket, sizeof f->socket, "%s", temp_path("pods.sock"));
	if (loop_new(&f->loop, e) < 0 || rpc_server_new(f->loop, f->socket, methods, 1, f, &f->kubelet, e) < 0 ||
	    claims_open(temp_path("claims"), &f->claims, e) < 0)
		return -e->code;
	return pod_names_new(f->loop, f->socket, "hami.com/vgpu", f->claims, &f->names, e);
}

static void end(struct fixture *f)
{
	pod_names_free(f->names);
	claims_free(f->claims);
	rpc_server_free(f->kubelet);
	loop_free(f->loop);
}

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof *f);
	struct hm_err e;

	*state = f;
	fast = 200;
	fast_moved_ms = 0;
	fast_forget_log();
	log_set_sink(fast_keep_line, NULL);
	if (temp_setup(state) < 0)
		return -1;
	*state = f;
	f->pod = "train";
	return make(f, &e);
}

static int teardown(void **state)
{
	end(*state);
	test_free(*state);
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

static bool listed_enough(const void *arg)
{
	return ((const struct fixture *)arg)->lists >= ((const struct fixture *)arg)->wanted;
}

static bool is_named(const void *arg)
{
	return strcmp(claims_find(((const struct fixture *)arg)->claims, 1)->pod_name, "train") == 0;
}

static bool is_gone(const void *arg)
{
	return pod_names_is_gone(((const struct fixture *)arg)->names, 1);
}

static void without_claims_nobody_is_asked(void **state)
{
	struct fixture *f = *state;

	fast_run(f->loop, 2 * POD_NAMES_EVERY_MS);
	assert_int_equal(f->lists, 0);
	pod_names_want(f->names);
	f->wanted = 1;
	assert_true(fast_until(f->loop, listed_enough, f));
	fast_run(f->loop, 2 * POD_NAMES_EVERY_MS);
	assert_int_equal(f->lists, 1);
}

static void a_claim_is_named_and_its_pods_end_is_seen(void **state)
{
	struct fixture *f = *state;

	put_claim(f->claims, make_claim(1, "u1", "", "GPU-0::0", NULL));
	pod_names_want(f->names);
	assert_true(fast_until(f->loop, is_named, f));
	assert_string_equal(claims_find(f->claims, 1)->pod_namespace, "ns");
	f->lists = 0;
	f->wanted = 3;
	assert_true(fast_until(f->loop, listed_enough, f));
	assert_false(is_gone(f));
	f->pod = "other";
	assert_true(fast_until(f->loop, is_gone, f));
	f->pod = "train"; /* the kubelet was starting */
	f->lists = 0;
	assert_true(fast_until(f->loop, listed_enough, f));
	assert_false(is_gone(f));
}

static void a_kubelet_that_errs_is_asked_again(void **state)
{
	struct fixture *f = *state;

	f->status = RPC_RESOURCE_EXHAUSTED;
	put_claim(f->claims, make_claim(1, "u1", "", "GPU-0::0", NULL));
	pod_names_want(f->names);
	pod_names_want(f->names);
	f->wanted = 2;
	assert_true(fast_until(f->loop, listed_enough, f));
	assert_false(is_named(f));
	f->status = RPC_OK;
	assert_true(fast_until(f->loop, is_named, f));
	rpc_server_free(HM_STEAL(f->kubelet)); /* nobody listens: no trouble */
	fast_run(f->loop, 3 * POD_NAMES_EVERY_MS);
	assert_false(is_gone(f));
}

/* Whatever cannot be had once: the name comes all the same, or its making says so. A claim that could not be read is
 * none: then nobody is asked. */
static int scenario(void *arg)
{
	struct fixture f = { .pod = "train" };
	struct hm_err e;
	int r;

	(void)arg;
	r = make(&f, &e);
	if (r == 0 && claims_count(f.claims) == 1) {
		pod_names_want(f.names);
		assert_true(fast_until(f.loop, is_named, &f));
	}
	end(&f);
	temp_write("claims/1", unnamed);
	return r;
}

static void sweep(void **state)
{
	struct fixture *f = *state;
	hm_auto_str text = { 0 };
	struct sweep_result r;
	struct hm_err e;

	put_claim(f->claims, make_claim(1, "u1", "", "GPU-0::0", NULL));
	assert_int_equal(file_read(temp_path("claims/1"), sizeof unnamed - 1, &text, &e), 0);
	snprintf(unnamed, sizeof unnamed, "%s", str_text(&text));
	end(f);
	memset(f, 0, sizeof *f);
	r = sweep_run(scenario, NULL);
	assert_false(r.failed);
	assert_true(r.allocations > 20);
	if (r.leaked > 0)
		fail_msg("%zu blocks leaked when allocation %zu failed", r.leaked, r.leaked_at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(without_claims_nobody_is_asked),
		TEST(a_claim_is_named_and_its_pods_end_is_seen),
		TEST(a_kubelet_that_errs_is_asked_again),
		TEST(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
