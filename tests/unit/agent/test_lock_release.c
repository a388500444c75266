#include "agent/hami/lock_release.h"

#include <unistd.h>

#include "fake_pods.h"
#include "harness/fake_wait.h"
#include "harness/temp.h"

#define LOCK "'hami.io/mutex.lock':'2026-08-21T06:20:39Z,ns,a'"

static struct world {
	struct pods *pods;
	struct node_object *node;
	struct checkpoint_cache *checkpoint;
	struct lock_release *lock;
	struct kube_reflector_events on_node, on_pods;
	char path[512];
} w;

static void node_is(unsigned version, const char *marks)
{
	hm_auto_str text = { 0 };

	fake_reflector = w.on_node;
	str_addf(&text, "{'metadata':{'name':'node-1','uid':'u','resourceVersion':'%u','annotations':{%s}}}", version,
		 marks);
	fake_watch(str_text(&text), false);
	fake_reflector = w.on_pods;
}

/* "<pod>/<container>" each. */
static void checkpoint_has(const char *const *who, size_t count)
{
	hm_auto_str text = { 0 };

	str_add(&text, "{\"Data\":{\"PodDeviceEntries\":[");
	for (size_t i = 0; i < count; i++)
		str_addf(&text,
			 "%s{\"PodUID\":\"uid-%.*s\",\"ContainerName\":\"%s\",\"ResourceName\":\"nvidia.com/gpu\","
			 "\"DeviceIDs\":{\"-1\":[\"A-%zu\"]},\"AllocResp\":\"\"}",
			 i > 0 ? "," : "", (int)strcspn(who[i], "/"), who[i], strchr(who[i], '/') + 1, i);
	str_add(&text, "],\"RegisteredDevices\":{}},\"Checksum\":1}");
	temp_write("new", str_text(&text));
	assert_int_equal(rename(temp_path("new"), w.path), 0);
}

static void begin(void)
{
	struct hm_err e;

	fake_forget();
	snprintf(w.path, sizeof w.path, "%s", temp_path("kubelet_internal_checkpoint"));
	checkpoint_has(NULL, 0);
	assert_int_equal(node_object_new(NULL, &w.node, &e), 0);
	w.on_node = fake_reflector;
	w.pods = make_pods();
	w.on_pods = fake_reflector;
	assert_int_equal(checkpoint_cache_new(w.path, "nvidia.com/gpu", &w.checkpoint, &e), 0);
	const struct lock_release_config config = { NULL, w.node, w.pods, w.checkpoint, w.path };

	assert_int_equal(lock_release_new(&config, &w.lock, &e), 0);
}

static void end(void)
{
	lock_release_free(w.lock);
	checkpoint_cache_free(w.checkpoint);
	pods_free(w.pods);
	node_object_free(w.node);
}

static void removed_when_every_container_has_its_devices(void **state)
{
	static const char *const half[] = { "a/c0" }, *const other[] = { "a/c0", "b/c2" },
				 *const all[] = { "a/c0", "a/c2" };

	(void)state;
	begin();
	node_is(7, LOCK);
	tell_pod("a", "101", "Pending", "x", PHASE("allocating"));
	fast_run(fake_loop, 5000);
	checkpoint_has(half, 1);
	fast_run(fake_loop, 5000);
	checkpoint_has(other, 2);
	fast_run(fake_loop, 5000);
	assert_int_equal(fake_count, 0);
	checkpoint_has(all, 2);
	wait_requests(1);
	assert_string_equal(fake_open()->path, "/api/v1/nodes/node-1");
	assert_string_equal(fake_open()->body,
			    "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\",\"annotations\":{"
			    "\"hami.io/mutex.lock\":null}}}");
	node_is(8, LOCK ",'x':'y'"); /* meanwhile */
	fast_run(fake_loop, 3000);
	assert_int_equal(fake_count, 1);
	fake_answer(KUBE_CONFLICT, 409, "");
	/* Read anew, then tried again under the new version. */
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_DONE, 200,
		    "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"9\",\"annotations\":"
		    "{\"hami.io/mutex.lock\":\"2026-08-21T06:20:39Z,ns,a\"}}}");
	wait_requests(3);
	assert_non_null(strstr(fake_open()->body, "\"resourceVersion\":\"9\""));
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"10\"}}");
	fast_run(fake_loop, 5000);
	assert_int_equal(fake_count, 3);
	struct lock_release_stats stats;

	lock_release_stats(w.lock, &stats);
	assert_int_equal(stats.released, 1);
	assert_int_equal(stats.failures, 1);
	end();
}

static void removed_when_the_pod_has_ended(void **state)
{
	(void)state;
	begin();
	tell_pod("a", "1", "Pending", "x", PHASE("allocating"));
	node_is(7, LOCK);
	assert_int_equal(fake_count, 0);
	tell_pod("a", "1", "Failed", "x", PHASE("allocating"));
	assert_int_equal(fake_count, 1);
	end();
}

/* Nothing in our watch: the API server says what became of it; not at once, since the lock comes before the pod. */
static void a_pod_that_is_not_ours(void **state)
{
	static const struct {
		enum kube_outcome outcome;
		int http;
		const char *body;
		bool removed;
	} rows[] = {
		{ KUBE_NOT_FOUND, 404, "", true },
		{ KUBE_DONE, 200, "{\"spec\":{}}", false },
		{ KUBE_DONE, 200, "{\"spec\":{\"nodeName\":\"node-1\"}}", false },
		{ KUBE_DONE, 200, "{\"spec\":{\"nodeName\":\"node-2\"}}", true },
		{ KUBE_DONE, 200, "nonsense", false },
		{ KUBE_FORBIDDEN, 403, "", false },
		{ KUBE_NO_ANSWER, 0, "", false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		begin();
		node_is(7, LOCK);
		fast_run(fake_loop, LOCK_RELEASE_ASK_MS / 2);
		assert_int_equal(fake_count, 0);
		wait_requests(1);
		assert_int_equal(fake_open()->verb, KUBE_GET);
		assert_string_equal(fake_open()->path, "/api/v1/namespaces/ns/pods/a");
		fake_answer(rows[i].outcome, rows[i].http, rows[i].body);
		assert_int_equal(fake_count, rows[i].removed ? 2 : 1);
		end();
	}
}

/* A lock without a name is anybody's, but not while somebody waits. */
static void a_lock_that_names_nobody(void **state)
{
	static const char *const a[] = { "a/c0" }, *const both[] = { "a/c0", "b/c0" };
	static const char *const values[] = { "2026-08-21T06:20:39Z", "garbage" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(values); i++) {
		hm_auto_str lock = { 0 };

		begin();
		str_addf(&lock, "'hami.io/mutex.lock':'%s'", values[i]);
		node_is(7, str_text(&lock));
		tell_pod("old", "1", "Running", "x", PHASE("success"));
		fast_run(fake_loop, 30000);
		assert_int_equal(fake_count, 0);
		tell_pod("a", "1", "Pending", "x", PHASE("allocating"));
		tell_pod("b", "1", "Pending", "x", PHASE("allocating"));
		checkpoint_has(a, 1);
		fast_run(fake_loop, 5000);
		assert_int_equal(fake_count, 0);
		checkpoint_has(both, 2);
		wait_requests(1);
		end();
	}
}

/* The Node is not followed (fake_kube.h says so): asked once for each pod that is through. */
static void the_node_is_asked_where_it_is_not_watched(void **state)
{
	static const char *const a[] = { "a/c0" };

	(void)state;
	begin();
	node_is(7, "");
	tell_pod("a", "1", "Pending", "x", PHASE("allocating"));
	assert_int_equal(fake_count, 0);
	checkpoint_has(a, 1);
	wait_requests(1);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	fake_answer(KUBE_DONE, 200,
		    "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"9\",\"annotations\":"
		    "{\"hami.io/mutex.lock\":\"2026-08-21T06:20:39Z,ns,a\"}}}");
	assert_int_equal(fake_open()->verb, KUBE_PATCH);
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"10\"}}");
	tell_pod("a", "1", "Running", "x", PHASE("allocating"));
	fast_run(fake_loop, 5000);
	assert_int_equal(fake_count, 2);
	end();
}

/* A pod of two vendors: the other plugin finds it by the same lock. Once a container has started, all have answered. */
static void another_vendor_keeps_the_lock(void **state)
{
	static const char *const all[] = { "a/c0" };
	static const struct {
		const char *key, *text, *phase;
		bool removed;
	} rows[] = {
		{ "hami.io/dcu-devices-to-allocate", "D-1,DCU,100,10:;", "Pending", false },
		{ "hami.io/Ascend910B-devices-to-allocate", ";D-1,Ascend,100,10:;", "Pending", false },
		{ "hami.io/dcu-devices-to-allocate", ";;", "Pending", true },
		{ "hami.io/dcu-devices-allocated", "D-1,DCU,100,10:;", "Pending", true },
		{ "hami.io/dcu-devices-to-allocate", "D-1,DCU,100,10:;", "Failed", true },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str marks = { 0 };

		begin();
		node_is(7, LOCK);
		checkpoint_has(all, 1);
		str_addf(&marks, "'%s':'%s'," PHASE("allocating"), rows[i].key, rows[i].text);
		tell_pod("a", "1", rows[i].phase, "x", str_text(&marks));
		fast_run(fake_loop, 5000);
		assert_int_equal(fake_count, rows[i].removed);
		if (!rows[i].removed)
			wait_requests(1); /* the text may be its author's alone */
		end();
	}
	begin();
	node_is(7, LOCK);
	checkpoint_has(all, 1);
	fake_watch("{'metadata':{'name':'a','namespace':'ns','uid':'uid-a','resourceVersion':'1','annotations':{"
		   "'hami.io/dcu-devices-to-allocate':'D-1,DCU,100,10:;'}},'spec':{'nodeName':'node-1','containers':["
		   "{'name':'c0','resources':{'limits':{'nvidia.com/gpu':'1'}}}]},'status':{'phase':'Running',"
		   "'containerStatuses':[{'name':'c0','state':{'running':{}}}]}}",
		   false);
	assert_int_equal(fake_count, 1);
	end();
}

/* The watch of pods lags behind that of the Node: what it has of that name was bound before the lock was taken. */
static void the_lock_of_a_pod_made_again(void **state)
{
	static const char *const all[] = { "a/c0" };
	/* The lock's time is 1787293239. */
	static const struct {
		const char *phase, *bound;
		bool removed;
	} rows[] = {
		{ "Failed", "1787293100", false }, { "Pending", "1787293100", false },
		{ "Pending", "1787293239", true }, { "Pending", "1787293240", true },
		{ "Failed", "no number", true },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str marks = { 0 };

		begin();
		checkpoint_has(all, 1);
		str_addf(&marks, "'hami.io/bind-time':'%s'," PHASE("allocating"), rows[i].bound);
		node_is(7, LOCK);
		tell_pod("a", "1", rows[i].phase, "x", str_text(&marks));
		fast_run(fake_loop, LOCK_RELEASE_ASK_MS / 2);
		assert_int_equal(fake_count, rows[i].removed);
		if (!rows[i].removed) {
			wait_requests(1);
			assert_int_equal(fake_open()->verb, KUBE_GET);
		}
		end();
	}
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
		cmocka_unit_test_setup_teardown(removed_when_every_container_has_its_devices, set_up, tear_down),
		cmocka_unit_test_setup_teardown(removed_when_the_pod_has_ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_pod_that_is_not_ours, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_lock_that_names_nobody, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_node_is_asked_where_it_is_not_watched, set_up, tear_down),
		cmocka_unit_test_setup_teardown(another_vendor_keeps_the_lock, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_lock_of_a_pod_made_again, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
