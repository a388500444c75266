#include "agent/cluster/node_object.h"

#include "fake_kube.h"

static struct node_listener listener;
static unsigned told;
static bool told_gone;

static void on_changed(void *arg, const struct node_view *view)
{
	(void)arg;
	told++;
	told_gone = view == NULL;
}

static struct node_object *begin(void **state)
{
	struct node_object *n = NULL;
	struct hm_err e;

	fake_loop = *state;
	fake_forget();
	told = 0;
	assert_int_equal(node_object_new(NULL, &n, &e), 0);
	listener = (struct node_listener) { .changed = on_changed };
	node_object_listen(n, &listener);
	return n;
}

#define NODE(uid, version, rest) "{'metadata':{'name':'node-1','uid':'" uid "','resourceVersion':'" version "'" rest

static const char answer_12[] =
	"{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"12\",\"annotations\":{"
	"\"hami.io/node-nvidia-register\":\"new\"}}}";

static const char answer_14[] =
	"{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u\",\"resourceVersion\":\"14\",\"annotations\":{"
	"\"hami.io/node-nvidia-register\":\"new\"}}}";

static void the_view_is_what_was_said_last(void **state)
{
	hm_auto(node_object) *n = begin(state);
	const struct node_view *v;

	assert_null(node_object_view(n));
	assert_string_equal(fake_reflector_path, "/api/v1/nodes");
	assert_string_equal(fake_reflector_selector, "metadata.name=node-1");
	fake_watch(NODE("u", "7",
			",'annotations':{'hami.io/node-nvidia-register':'[]','hami.io/mutex.lock':'T,ns,p',"
			"'hami.io/node-handshake':'Requesting_x'}},'status':{'nodeInfo':{"
			"'kubeletVersion':'v1.34.4','containerRuntimeVersion':'containerd://2.2.9'}}}"),
		   false);
	v = node_object_view(n);
	assert_non_null(v);
	assert_string_equal(v->uid, "u");
	assert_string_equal(v->resource_version, "7");
	assert_string_equal(v->kubelet_version, "v1.34.4");
	assert_string_equal(v->container_runtime, "containerd://2.2.9");
	assert_string_equal(v->annotations[NODE_REGISTER], "[]");
	assert_null(v->annotations[NODE_SCORE]);
	assert_string_equal(v->annotations[NODE_HANDSHAKE], "Requesting_x");
	assert_string_equal(v->annotations[NODE_LOCK], "T,ns,p");
	assert_int_equal(told, 1);
	fake_watch(NODE("u", "8", ",'annotations':null}}"), false);
	v = node_object_view(n);
	assert_string_equal(v->kubelet_version, "");
	assert_null(v->annotations[NODE_REGISTER]);
	assert_null(v->annotations[NODE_LOCK]);
	/* Of an older one that had the name: nothing. */
	fake_watch(NODE("other", "9", "}}"), true);
	assert_non_null(node_object_view(n));
	fake_watch(NODE("u", "9", "}}"), true);
	assert_null(node_object_view(n));
	assert_true(told_gone);
	fake_watch(NODE("u2", "10", "}}"), false);
	assert_string_equal(node_object_view(n)->uid, "u2");
	assert_int_equal(told, 4);
}

static void odd_objects_do_no_harm(void **state)
{
	static const char *const odd[] = {
		NODE("u", "7", ",'annotations':[1]},'status':'x'}"),
		NODE("u", "8",
		     ",'annotations':{'hami.io/mutex.lock':7,'hami.io/"
		     "node-nvidia-register':null}},'status':{'nodeInfo':[]}}"),
		NODE("u", "9", "},'status':{'nodeInfo':{'kubeletVersion':1}}}"),
	};
	hm_auto(node_object) *n = begin(state);

	for (size_t i = 0; i < HM_COUNT(odd); i++) {
		fake_watch(odd[i], false);
		assert_string_equal(node_object_view(n)->kubelet_version, "");
		for (size_t k = 0; k < NODE_ANNOTATION_COUNT; k++)
			assert_null(node_object_view(n)->annotations[k]);
	}
}

static enum kube_outcome patched;
static unsigned patched_count;

static void on_patched(void *arg, const struct kube_answer *a)
{
	/* The view is the answer's by now. */
	if (a->status.outcome == KUBE_DONE && strstr(a->body, "new") != NULL)
		assert_string_equal(node_object_view(arg)->annotations[NODE_REGISTER], "new");
	patched = a->status.outcome;
	patched_count++;
}

static void a_patch_names_the_node_it_means(void **state)
{
	hm_auto(node_object) *n = begin(state);
	const struct kube_patch_value values[] = { { "hami.io/node-nvidia-register", "new" } };
	const struct node_patch patch = { values, 1, false, on_patched, n };
	const struct node_patch guarded = { values, 1, true, on_patched, n };
	struct node_patch_call *call = NULL;
	struct hm_err e;

	patched_count = 0;
	assert_int_equal(node_object_patch(n, &patch, &call, &e), -HM_EAGAIN);
	fake_watch(NODE("u", "7", "}}"), false);
	assert_int_equal(node_object_patch(n, &patch, &call, &e), 0);
	assert_int_equal(fake_open()->verb, KUBE_PATCH);
	assert_string_equal(fake_open()->path, "/api/v1/nodes/node-1");
	assert_string_equal(fake_open()->content_type, "application/merge-patch+json");
	assert_string_equal(fake_open()->body, "{\"metadata\":{\"uid\":\"u\",\"annotations\":{"
					       "\"hami.io/node-nvidia-register\":\"new\"}}}");
	fake_answer(KUBE_DONE, 200, answer_12);
	assert_int_equal(patched_count, 1);
	assert_int_equal(told, 2);
	/* What the watch still had in its pipe is older, and passed over; what comes next is not. */
	fake_watch(NODE("u", "11", "}}"), false);
	assert_string_equal(node_object_view(n)->annotations[NODE_REGISTER], "new");
	assert_int_equal(node_object_patch(n, &guarded, &call, &e), 0);
	assert_non_null(strstr(fake_open()->body, "\"resourceVersion\":\"12\""));
	fake_answer(KUBE_CONFLICT, 409, "");
	assert_int_equal(patched, KUBE_CONFLICT);
	fake_watch(NODE("u", "13", "}}"), false);
	assert_null(node_object_view(n)->annotations[NODE_REGISTER]);
	/* A Node that was made again starts anywhere. */
	assert_int_equal(node_object_patch(n, &patch, &call, &e), 0);
	fake_answer(KUBE_DONE, 200, answer_14);
	fake_watch(NODE("u9", "2", "}}"), false);
	assert_string_equal(node_object_view(n)->uid, "u9");
	/* The watch was faster than the answer. */
	assert_int_equal(node_object_patch(n, &patch, &call, &e), 0);
	fake_watch(NODE("u9", "4", ",'annotations':{'hami.io/node-nvidia-register':'newer'}}}"), false);
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{\"name\":\"node-1\",\"uid\":\"u9\",\"resourceVersion\":\"3\"}}");
	assert_string_equal(node_object_view(n)->annotations[NODE_REGISTER], "newer");
	/* Cancelled: no word of it any more. */
	assert_int_equal(node_object_patch(n, &patch, &call, &e), 0);
	node_patch_cancel(call);
	assert_int_equal(patched_count, 4);
	fake_refuses = true;
	assert_int_equal(node_object_patch(n, &patch, &call, &e), -HM_ENOMEM);
	fake_refuses = false;
	/* One under way when all ends. */
	assert_int_equal(node_object_patch(n, &patch, &call, &e), 0);
}

static void a_question_is_asked_once_and_answered(void **state)
{
	hm_auto(node_object) *n = begin(state);
	struct node_object_stats stats;

	node_object_refresh(n);
	node_object_refresh(n);
	assert_int_equal(fake_count, 1);
	assert_int_equal(fake_open()->verb, KUBE_GET);
	assert_string_equal(fake_open()->path, "/api/v1/nodes/node-1");
	fake_answer(KUBE_DONE, 200, answer_12);
	assert_string_equal(node_object_view(n)->resource_version, "12");
	node_object_refresh(n);
	fake_answer(KUBE_NO_ANSWER, 0, "");
	assert_non_null(node_object_view(n));
	node_object_refresh(n);
	fake_answer(KUBE_DONE, 200, "{\"metadata\":{}}");
	assert_string_equal(node_object_view(n)->resource_version, "12");
	node_object_refresh(n);
	fake_answer(KUBE_NOT_FOUND, 404, "");
	assert_null(node_object_view(n));
	node_object_stats(n, &stats);
	assert_int_equal(stats.refreshes, 4);
	assert_int_equal(stats.failures, 2);
	assert_false(stats.known);
	assert_true(stats.heard_ms > 0);
}

static int set_up(void **state)
{
	struct hm_err e;

	return loop_new((struct loop **)state, &e);
}

static int tear_down(void **state)
{
	fake_forget();
	loop_free(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_view_is_what_was_said_last),
		cmocka_unit_test(odd_objects_do_no_harm),
		cmocka_unit_test(a_patch_names_the_node_it_means),
		cmocka_unit_test(a_question_is_asked_once_and_answered),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
