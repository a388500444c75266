#include "sched/bind/bind.h"

#include "contract/hami.h"
#include "core/num.h"
#include "harness/fake_kube.h"
#include "harness/fast_loop.h"
#include "harness/temp.h"
#include "pod_json.h"
#include "sched/bind/lock_take.h"

const struct view_node *__wrap_view_node(const struct view *v, const char *name);
void __wrap_kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
			     const char *reason, const char *message);

static struct world {
	struct cluster *cluster;
	struct binder *binder;
	struct view_node seen;
	unsigned answers;
	char answer[1024], event[1024];
	unsigned events;
	const char *bar;
} w;

const struct view_node *__wrap_view_node(const struct view *v, const char *name)
{
	(void)v;
	return strcmp(name, "n1") == 0 && w.seen.uid != NULL ? &w.seen : NULL;
}

void __wrap_kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
			     const char *reason, const char *message)
{
	(void)events;
	w.events++;
	snprintf(w.event, sizeof w.event, "%s/%s %s %s: %s", about->name_space, about->name, type, reason, message);
}

static const char *bar(void *arg)
{
	(void)arg;
	return w.bar;
}

static void put_node(const char *name, bool late)
{
	struct node_state *n = node_state_new(name, cluster_texts(w.cluster));
	struct node_card card = { .count = 100,
				  .memory_mib = 80000,
				  .cores = 100,
				  .healthy = true,
				  .type = "NVIDIA A100",
				  .mode = "hami-core",
				  .uuid = "GPU-a" };

	assert_int_equal(node_state_add_card(n, &card, NULL), 0);
	n->late_binding = late;
	assert_int_equal(cluster_put_node(w.cluster, n, NULL), 0);
}

static void begin(void)
{
	const struct bind_config config = {
		.client = (struct kube_client *)&fake_loop,
		.events = (struct kube_events *)&fake_loop,
		.pods = { "nvidia.com/gpu", "nvidia.com/gpumem", "", "nvidia.com/gpucores", { 1, 0, 0 } },
		.lock_timeout_ms = 300000,
		.barred = bar,
	};
	struct bind_config c = config;

	fake_forget();
	w = (struct world) { .seen = { "n1", "un", "7", NULL, "" } };
	w.cluster = cluster_new(1);
	c.cluster = w.cluster;
	put_node("n1", false);
	put_node("late", true);
	assert_int_equal(binder_new(fake_loop, &c, &w.binder, NULL), 0);
}

static void end(void)
{
	binder_free(w.binder);
	cluster_free(w.cluster);
	fake_forget();
}

static void reserve(const char *uid, const char *node)
{
	struct card_ask containers[2] = { { ASK_APP, 1, 3000, 0, 30 }, { .kind = ASK_APP } };
	struct card_share share = { .memory_mib = 3000, .cores = 30, .profile = NO_PROFILE };
	const struct pod_ask ask = {
		.uid = uid, .name_space = "ns", .name = uid, .containers = containers, .count = 2, .cap = 2
	};
	const struct grant grant = { &share, 1, 1 };

	assert_int_equal(cluster_reserve(w.cluster, &ask, node, &grant, 1000000, NULL), 0);
}

static int64_t held(const char *node)
{
	return cluster_node(w.cluster, node)->used[0].memory_mib;
}

static void on_done(void *arg, const char *error)
{
	(void)arg;
	w.answers++;
	snprintf(w.answer, sizeof w.answer, "%s", error);
}

static void bind_pod(const char *uid, const char *node)
{
	const struct bind_request r = { "ns", uid, uid, node, on_done, NULL };

	assert_int_equal(binder_bind(w.binder, &r, NULL), 0);
	assert_int_equal(loop_run_once(fake_loop, 0, NULL), 0);
}

static bool asked(const void *arg)
{
	return fake_count >= *(const size_t *)arg;
}

static void wait_requests(size_t count)
{
	if (!fast_until(fake_loop, asked, &count))
		fail_msg("%zu requests, not %zu", fake_count, count);
}

static bool answered(const void *arg)
{
	return w.answers >= *(const unsigned *)arg;
}

static void wait_answers(unsigned count)
{
	assert_true(fast_until(fake_loop, answered, &count));
}

/* ---- the Binding */

static void expect_binding(const char *pod, const char *node)
{
	hm_auto_str path = { 0 };
	hm_auto(cJSON) *tree = NULL;
	const struct cJSON *meta, *marks;
	const char *time;
	uint64_t seconds;

	str_addf(&path, "/api/v1/namespaces/ns/pods/%s/binding", pod);
	assert_int_equal(fake_open()->verb, KUBE_POST);
	assert_string_equal(fake_open()->path, str_text(&path));
	assert_int_equal(json_parse(fake_open()->body, strlen(fake_open()->body), &tree, NULL), 0);
	meta = cJSON_GetObjectItem(tree, "metadata");
	marks = cJSON_GetObjectItem(meta, "annotations");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(meta, "uid")), pod);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "target"), "name")),
			    node);
#define MARK(key) cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(marks, key))
	assert_string_equal(MARK("hami.io/vgpu-node"), node);
	assert_string_equal(MARK("hami.io/vgpu-devices-allocated"), "GPU-a,NVIDIA,3000,30:;;");
	assert_string_equal(MARK("hami.io/vgpu-devices-to-allocate"), "GPU-a,NVIDIA,3000,30:;;");
	assert_string_equal(MARK("hami.io/bind-phase"), "allocating");
	time = MARK("hami.io/vgpu-time");
	assert_true(num_u64_str(time, UINT64_MAX, &seconds));
	assert_in_range(seconds, clock_wall_ms() / 1000 - 60, clock_wall_ms() / 1000);
	assert_string_equal(MARK("hami.io/bind-time"), time);
	assert_int_equal(cJSON_GetArraySize(marks), 6);
}

static void one_call(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	bind_pod("p1", "late");
	wait_requests(1);
	expect_binding("p1", "late");
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BINDING);
	fake_answer(KUBE_DONE, 201, "{}");
	assert_int_equal(w.answers, 1);
	assert_string_equal(w.answer, "");
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	assert_int_equal(fake_count, 1);
	assert_int_equal(w.events, 0);
	end();
}

static void what_is_refused_is_rolled_back(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	bind_pod("p1", "late");
	wait_requests(1);
	fake_answer(KUBE_NOT_FOUND, 404, "");
	assert_int_equal(w.answers, 1);
	assert_string_equal(w.answer, "404 as the test says");
	assert_string_equal(w.event, "ns/p1 Warning BindingFailed: 404 as the test says");
	assert_int_equal(held("late"), 0);
	end();
}

#define POD(uid, node, time)                                                                                           \
	"{\"metadata\":{\"name\":\"p1\",\"uid\":\"" uid "\",\"annotations\":{\"hami.io/vgpu-time\":\"" time            \
	"\",\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,3000,30:;;\"}},\"spec\":{\"nodeName\":\"" node "\"}}"

static void somebody_else_has_bound_it(void **state)
{
	static const char *const pods[] = {
		POD("p1", "other", "1"), POD("another", "late", "1"),
		POD("p1", "late", "1"), /* by another placement than ours */
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(pods); i++) {
		begin();
		reserve("p1", "late");
		bind_pod("p1", "late");
		wait_requests(1);
		fake_answer(KUBE_CONFLICT, 409, "");
		assert_int_equal(w.answers, 0);
		assert_int_equal(fake_open()->verb, KUBE_GET);
		assert_string_equal(fake_open()->path, "/api/v1/namespaces/ns/pods/p1");
		assert_true(held("late") > 0);
		fake_answer(KUBE_DONE, 200, pods[i]);
		assert_string_equal(w.answer, "409 as the test says");
		assert_int_equal(held("late"), 0);
		end();
	}
}

/* What we would have the pod say: the time that was sent. */
static void answer_ours(void)
{
	hm_auto_str text = { 0 };
	const char *time = strstr(fake_requests[0].body, "vgpu-time\":\"");

	assert_non_null(time);
	str_addf(&text,
		 "{\"metadata\":{\"name\":\"p1\",\"uid\":\"p1\",\"annotations\":{\"hami.io/vgpu-time\":\"%.10s\","
		 "\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,3000,30:;;\"}},\"spec\":{\"nodeName\":\"late\"}}",
		 time + strlen("vgpu-time\":\""));
	fake_answer(KUBE_DONE, 200, str_text(&text));
}

static void the_answer_was_lost(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	bind_pod("p1", "late");
	wait_requests(1);
	fake_answer(KUBE_NO_ANSWER, 0, "");
	assert_int_equal(w.answers, 0);
	assert_true(held("late") > 0);
	wait_requests(2); /* the very same again: of two that arrive the second is refused */
	assert_string_equal(fake_open()->body, fake_requests[0].body);
	fake_answer(KUBE_CONFLICT, 409, "");
	assert_int_equal(fake_open()->verb, KUBE_GET);
	answer_ours();
	assert_int_equal(w.answers, 1);
	assert_string_equal(w.answer, "");
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	end();
}

/* The API server is away: kube-scheduler hears in time, but the promise stands until it is certain. */
static void nobody_knows(void **state)
{
	struct hm_err e;

	(void)state;
	begin();
	reserve("p1", "late");
	bind_pod("p1", "late");
	wait_requests(1);
	fake_answer(KUBE_SERVER_ERROR, 500, "");
	wait_requests(2);
	wait_answers(1); /* the second one hangs */
	assert_memory_equal(w.answer, "it is not known yet whether the pod is bound: ", 46);
	assert_true(held("late") > 0);
	assert_int_equal(cluster_may_place(w.cluster, "p1", &e), -HM_EEXIST);
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(3);
	/* Nobody waits any more, so nothing new is sent; the pod says. */
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(4);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fast_moved_ms += 30000; /* what was sent cannot come any more */
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"uid\":\"p1\"},\"spec\":{}}");
	assert_int_equal(held("late"), 0);
	assert_int_equal(w.answers, 1);
	end();
}

/* "Not bound", said a moment after the Binding was sent, is no proof that it will not be. */
static void not_yet_is_not_never(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	bind_pod("p1", "late");
	wait_requests(1);
	binder_stop(w.binder, "we do not lead");
	assert_string_equal(w.answer, "we do not lead");
	fake_answer(KUBE_NO_ANSWER, 0, "");
	wait_requests(2);
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"uid\":\"p1\"},\"spec\":{}}");
	assert_true(held("late") > 0);
	wait_requests(3);
	answer_ours();
	assert_int_equal(cluster_find(w.cluster, "p1")->state, HOLD_BOUND);
	assert_int_equal(w.answers, 1);
	end();
}

/* ---- what was not promised */

static void a_pod_without_a_promise(void **state)
{
	static const char plain[] = "{\"metadata\":{\"uid\":\"p1\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}";
	static const char other[] = "{\"metadata\":{\"uid\":\"p2\"},\"spec\":{\"containers\":[{\"name\":\"c\"}]}}";
	static const char asks[] =
		"{\"metadata\":{\"uid\":\"p1\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
		"\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}";

	(void)state;
	begin();
	bind_pod("p1", "late");
	wait_requests(1);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_DONE, 200, asks);
	assert_string_equal(w.answer, "nothing is reserved for the pod on this node: it is to be scheduled again");
	bind_pod("p1", "late");
	wait_requests(2);
	fake_answer(KUBE_DONE, 200, other);
	assert_string_equal(w.answer, "the pod is another one of this name");
	bind_pod("p1", "late");
	wait_requests(3);
	fake_answer(KUBE_DONE, 200, plain);
	assert_int_equal(fake_open()->verb, KUBE_POST);
	assert_non_null(strstr(fake_open()->body, "\"annotations\":{}"));
	fake_answer(KUBE_DONE, 201, "{}");
	assert_int_equal(w.answers, 3);
	assert_string_equal(w.answer, "");
	end();
}

static void another_node_than_promised(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	bind_pod("p1", "n1");
	wait_answers(1);
	assert_string_equal(w.answer, "nothing is reserved on node n1 for pod p1");
	assert_int_equal(fake_count, 0);
	assert_true(held("late") > 0); /* that promise was not asked for */
	end();
}

static void a_node_that_is_gone(void **state)
{
	(void)state;
	begin();
	reserve("p1", "late");
	cluster_remove_node(w.cluster, "late");
	bind_pod("p1", "late");
	wait_answers(1);
	assert_string_equal(w.answer, "failed to get node late");
	assert_null(cluster_find(w.cluster, "p1"));
	end();
}

/* ---- the lock */

static void expect_lock(const char *version)
{
	hm_auto_str want = { 0 };

	str_addf(
		&want,
		"{\"metadata\":{\"uid\":\"un\",\"resourceVersion\":\"%s\",\"annotations\":{\"hami.io/mutex.lock\":\"20",
		version);
	assert_int_equal(fake_open()->verb, KUBE_PATCH);
	assert_string_equal(fake_open()->path, "/api/v1/nodes/n1");
	assert_memory_equal(fake_open()->body, str_text(&want), want.n);
	assert_non_null(strstr(fake_open()->body, "Z,ns,p1\"}}}"));
}

static void the_lock_comes_first(void **state)
{
	(void)state;
	begin();
	reserve("p1", "n1");
	bind_pod("p1", "n1");
	wait_requests(1);
	expect_lock("7");
	fake_answer(KUBE_DONE, 200, "{}");
	expect_binding("p1", "n1");
	fake_answer(KUBE_DONE, 201, "{}");
	assert_string_equal(w.answer, "");
	assert_int_equal(fake_count, 2); /* its agent removes the lock */
	end();
}

static void the_lock_is_given_back(void **state)
{
	(void)state;
	begin();
	reserve("p1", "n1");
	bind_pod("p1", "n1");
	wait_requests(1);
	fake_answer(KUBE_DONE, 200, "{}");
	fake_answer(KUBE_NOT_FOUND, 404, "");
	assert_int_equal(w.answers, 1);
	assert_int_equal(held("n1"), 0);
	wait_requests(3);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_DONE, 200,
		    "{\"metadata\":{\"name\":\"n1\",\"uid\":\"un\",\"resourceVersion\":\"8\",\"annotations\":{"
		    "\"hami.io/mutex.lock\":\"2026-08-21T06:20:39Z,ns,p1\"}}}");
	assert_string_equal(fake_open()->body,
			    "{\"metadata\":{\"uid\":\"un\",\"resourceVersion\":\"8\",\"annotations\":{"
			    "\"hami.io/mutex.lock\":null}}}");
	fake_answer(KUBE_DONE, 200, "{}");
	/* And again, for another pod. */
	reserve("p2", "n1");
	bind_pod("p2", "n1");
	wait_requests(5);
	end();
}

static void one_at_a_time_on_a_node(void **state)
{
	(void)state;
	begin();
	reserve("p1", "n1");
	reserve("p2", "n1");
	bind_pod("p1", "n1");
	wait_requests(1);
	bind_pod("p2", "n1");
	wait_answers(1);
	assert_string_equal(w.answer, "node n1 is locked: node lock contention");
	assert_int_equal(fake_count, 1);
	assert_int_equal(held("n1"), 3000);
	end();
}

static void locked_by_another(void **state)
{
	static const struct {
		const char *pod; /* the holder, as the API server has it; NULL: 404 */
		bool taken;
	} rows[] = {
		{ "{\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Pending\"}}", false },
		{ "{\"spec\":{},\"status\":{\"phase\":\"Pending\"}}", false },
		{ "{\"spec\":{\"nodeName\":\"n1\"},\"status\":{\"phase\":\"Failed\"}}", true },
		{ "{\"spec\":{\"nodeName\":\"n2\"},\"status\":{\"phase\":\"Running\"}}", true },
		{ NULL, true },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str lock = { 0 }, node = { 0 };

		begin();
		str_add_utc(&lock, clock_wall_ms());
		str_add(&lock, "Z,other,q");
		w.seen.lock = str_text(&lock);
		str_addf(&node,
			 "{\"metadata\":{\"name\":\"n1\",\"uid\":\"un\",\"resourceVersion\":\"8\",\"annotations\":{"
			 "\"hami.io/mutex.lock\":\"%s\"}}}",
			 str_text(&lock));
		reserve("p1", "n1");
		bind_pod("p1", "n1");
		wait_requests(1);
		/* The watch may be late: the node is read before anybody is turned away. */
		assert_string_equal(fake_open()->path, "/api/v1/nodes/n1");
		fake_answer(KUBE_DONE, 200, str_text(&node));
		assert_string_equal(fake_open()->path, "/api/v1/namespaces/other/pods/q");
		if (rows[i].pod != NULL)
			fake_answer(KUBE_DONE, 200, rows[i].pod);
		else
			fake_answer(KUBE_NOT_FOUND, 404, "");
		if (rows[i].taken) {
			expect_lock("8");
		} else {
			assert_string_equal(w.answer, "node n1 has been locked within 5m0s: node lock contention");
			assert_int_equal(held("n1"), 0);
		}
		end();
	}
}

static void a_conflict_is_tried_again(void **state)
{
	(void)state;
	begin();
	reserve("p1", "n1");
	bind_pod("p1", "n1");
	wait_requests(1);
	for (size_t i = 1; i < LOCK_TRIES; i++) {
		fake_answer(KUBE_CONFLICT, 409, "");
		wait_requests(2 * i);
		fake_answer(KUBE_DONE, 200,
			    "{\"metadata\":{\"name\":\"n1\",\"uid\":\"un\",\"resourceVersion\":\"9\"}}");
		expect_lock("9");
	}
	fake_answer(KUBE_CONFLICT, 409, "");
	assert_string_equal(w.answer, "node lock of n1: 409 as the test says");
	end();
}

static void what_a_lock_says(void **state)
{
	/* 2026-08-21T06:20:39Z */
	const int64_t at = 1787293239;
	static const struct {
		const char *value;
		int64_t after_s;
		enum lock_says says;
	} rows[] = {
		{ NULL, 0, LOCK_FREE },
		{ "2026-08-21T06:20:39Z,other,q", 10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,other,q", 300, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,other,q", 301, LOCK_FREE },
		{ "2026-08-21T08:20:39+02:00,other,q", 10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,other,q", -10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,other,q", -301, LOCK_FREE }, /* of a clock that is wrong */
		{ "2026-08-21T06:20:39Z,ns,p1", 10, LOCK_FREE },
		{ "2026-08-21T06:20:39Z,other,p1", 10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z,ns,xp1", 10, LOCK_ASK_HOLDER },
		{ "2026-08-21T06:20:39Z", 10, LOCK_HELD },
		{ "2026-08-21T06:20:39Z", 301, LOCK_FREE },
		{ "garbage", 10, LOCK_FREE },
		{ "", 10, LOCK_FREE },
		{ "2026-08-21T06:20:39Z,other", 10, LOCK_FREE },
		{ "yesterday,other,q", 10, LOCK_FREE },
		{ "2026-08-21T06:20:39Z,a,b,c", 10, LOCK_FREE },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		if (lock_says(rows[i].value, "ns", "p1", at + rows[i].after_s, 300000) != rows[i].says)
			fail_msg("row %zu", i);
}

/* ---- many */

static void ten_are_in_hand(void **state)
{
	struct bind_stats stats;

	(void)state;
	begin();
	for (unsigned i = 0; i < 12; i++) {
		char uid[8];

		snprintf(uid, sizeof uid, "p%u", i);
		reserve(uid, "late");
		bind_pod(uid, "late");
	}
	wait_requests(10);
	fast_run(fake_loop, 1000);
	assert_int_equal(fake_count, 10);
	binder_stats(w.binder, &stats);
	assert_int_equal(stats.waiting, 2);
	fake_answer(KUBE_DONE, 201, "{}");
	wait_requests(11);
	assert_string_equal(fake_open()->path, "/api/v1/namespaces/ns/pods/p10/binding");
	binder_stop(w.binder, "we do not lead");
	assert_int_equal(w.answers, 12);
	/* What was on its way is followed; what waited was promised by a leader that is none any more. */
	binder_stats(w.binder, &stats);
	assert_int_equal(stats.in_doubt, 10);
	assert_int_equal(held("late"), 11 * 3000);
	assert_int_equal(stats.waiting, 0);
	fake_answer(KUBE_DONE, 201, "{}");
	binder_stats(w.binder, &stats);
	assert_int_equal(stats.in_doubt, 9);
	end();
}

static void nothing_is_bound_while_barred(void **state)
{
	(void)state;
	begin();
	w.bar = "we do not lead";
	reserve("p1", "late");
	bind_pod("p1", "late");
	wait_answers(1);
	assert_string_equal(w.answer, "we do not lead");
	assert_int_equal(fake_count, 0);
	assert_int_equal(held("late"), 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_call),
		cmocka_unit_test(what_is_refused_is_rolled_back),
		cmocka_unit_test(somebody_else_has_bound_it),
		cmocka_unit_test(the_answer_was_lost),
		cmocka_unit_test(nobody_knows),
		cmocka_unit_test(not_yet_is_not_never),
		cmocka_unit_test(a_pod_without_a_promise),
		cmocka_unit_test(another_node_than_promised),
		cmocka_unit_test(a_node_that_is_gone),
		cmocka_unit_test(the_lock_comes_first),
		cmocka_unit_test(the_lock_is_given_back),
		cmocka_unit_test(one_at_a_time_on_a_node),
		cmocka_unit_test(locked_by_another),
		cmocka_unit_test(a_conflict_is_tried_again),
		cmocka_unit_test(what_a_lock_says),
		cmocka_unit_test(ten_are_in_hand),
		cmocka_unit_test(nothing_is_bound_while_barred),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 30;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
