#include "agent/cluster/pods.h"

#include "base/log.h"
#include "fake_pods.h"

static char heard[256];

static void note(const char *what, const char *name)
{
	size_t n = strlen(heard);

	snprintf(heard + n, sizeof heard - n, "%s%s", what, name);
}

static void on_changed(void *arg, const struct pod_view *v)
{
	(void)arg;
	note("+", v->name);
}

static void on_gone(void *arg, const struct pod_view *v)
{
	(void)arg;
	note("-", v->name);
}

static void on_synced(void *arg)
{
	(void)arg;
	note("!", "");
}

static void told_and_found(void **state)
{
	hm_auto(pods) *p = make_pods();
	struct pods_listener one = { .changed = on_changed, .gone = on_gone, .synced = on_synced };
	struct pods_listener two = { .changed = on_changed, .gone = on_gone };
	struct pods_stats stats;

	(void)state;
	heard[0] = '\0';
	assert_string_equal(fake_reflector_path, "/api/v1/pods");
	assert_string_equal(fake_reflector_selector, "spec.nodeName=node-1");
	pods_listen(p, &one);
	pods_listen(p, &two);
	tell_pod("a", "1", "Pending", NULL, "");
	assert_false(pods_synced(p));
	fake_reflector.synced(fake_reflector.arg);
	assert_true(pods_synced(p));
	tell_pod("a", "2", "Running", NULL, "");
	assert_int_equal(pods_find(p, "uid-a")->containers[0].gpus, 2);
	assert_ptr_equal(pods_find_name(p, "ns", "a"), pods_find(p, "uid-a"));
	assert_null(pods_find_name(p, "other", "a"));
	assert_null(pods_find(p, "uid-b"));
	link_remove(&two.link);
	tell_gone("a");
	tell_gone("a"); /* twice is nothing */
	assert_null(pods_find(p, "uid-a"));
	assert_string_equal(heard, "+a+a!+a+a-a");
	pods_stats(p, &stats);
	assert_int_equal(stats.pods, 0);
	assert_int_equal(stats.unread, 0);
}

/* Of the first list by the annotation, then as they come; a change moves nobody. */
static void order_of_binding(void **state)
{
	static const char *const want[] = { "old", "older-name", "x", "a" };
	hm_auto(pods) *p = make_pods();
	const struct pod_view *v;
	uint64_t last = 0;

	(void)state;
	tell_pod("older-name", "1", "Pending", NULL, "'hami.io/bind-time':'200'");
	tell_pod("old", "1", "Pending", NULL, "'hami.io/bind-time':'100'");
	tell_pod("junk", "1", "Pending", NULL, "'hami.io/bind-time':'99999999999999999999'");
	fake_reflector.synced(fake_reflector.arg);
	tell_pod("x", "1", "Pending", NULL, "'hami.io/bind-time':'50'");
	tell_pod("a", "1", "Pending", NULL, "'hami.io/bind-time':'40'");
	tell_pod("x", "1", "Running", NULL, "'hami.io/bind-time':'300'");
	assert_int_equal(pods_find_name(p, "ns", "junk")->order, 0);
	for (size_t i = 0; i < HM_COUNT(want); i++) {
		v = pods_find_name(p, "ns", want[i]);
		assert_true(v->order > last);
		last = v->order;
	}
}

static void what_cannot_be_taken_is_counted(void **state)
{
	hm_auto(pods) *p = make_pods();
	struct pods_stats stats;

	(void)state;
	log_set_sink(NULL, NULL);
	fake_watch("{'metadata':{'name':'p','namespace':'ns','resourceVersion':'1','uid':"
		   "'0123456789012345678901234567890123456789012345678901234567890123456789'},'spec':{}}",
		   false);
	pods_stats(p, &stats);
	assert_int_equal(stats.unread, 1);
	assert_int_equal(stats.pods, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_and_found),
		cmocka_unit_test(order_of_binding),
		cmocka_unit_test(what_cannot_be_taken_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
