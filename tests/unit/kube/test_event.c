/* What events ask of the API server, call by call. */
#include "kube/event.h"

#include "unit/agent/fake_kube.h"

static struct kube_events *begin(void)
{
	struct kube_events *v = NULL;
	struct hm_err e;

	fake_forget();
	assert_int_equal(kube_events_new(NULL, "part", "host", &v, &e), 0);
	return v;
}

static void tell(struct kube_events *v)
{
	const struct kube_event_object about = { "v1", "Pod", "ns", "p", "uid-1" };
	struct hm_err e;

	kube_events_tell(v, &about, "Warning", "Reason", "text");
	assert_int_equal(loop_run_once(fake_loop, 100, &e), 0);
}

static unsigned dropped(const struct kube_events *v)
{
	struct kube_events_state state;

	kube_events_state(v, &state);
	return (unsigned)state.dropped;
}

static void the_count_is_raised_by_a_patch(void **state)
{
	hm_auto(kube_events) *v = begin();
	char path[256];

	(void)state;
	tell(v);
	assert_int_equal(fake_open()->verb, KUBE_POST);
	assert_string_equal(fake_open()->path, "/api/v1/namespaces/ns/events");
	fake_answer(KUBE_DONE, 201, "{}");
	tell(v);
	assert_int_equal(fake_count, 2);
	assert_int_equal(fake_open()->verb, KUBE_PATCH);
	assert_string_equal(fake_open()->content_type, "application/merge-patch+json");
	assert_memory_equal(fake_open()->body, "{\"count\":2,\"lastTimestamp\":\"", 28);
	assert_memory_equal(fake_open()->path, "/api/v1/namespaces/ns/events/p.", 31);
	snprintf(path, sizeof path, "\"name\":\"%s\"", fake_open()->path + 29);
	assert_non_null(strstr(fake_requests[0].body, path)); /* the very one that was made */
	fake_answer(KUBE_DONE, 200, "{}");
	assert_int_equal(dropped(v), 0);
}

/* HAMi's role for agents: events list, create, update. */
static void by_an_update_where_patching_is_not_allowed(void **state)
{
	hm_auto(kube_events) *v = begin();
	char path[256];

	(void)state;
	tell(v);
	fake_answer(KUBE_DONE, 201, "{}");
	tell(v);
	snprintf(path, sizeof path, "%s", fake_open()->path);
	fake_answer(KUBE_FORBIDDEN, 403, "");
	assert_int_equal(fake_count, 3);
	assert_int_equal(fake_open()->verb, KUBE_PUT);
	assert_string_equal(fake_open()->path, path);
	assert_string_equal(fake_open()->content_type, "application/json");
	assert_non_null(strstr(fake_open()->body, "\"reason\":\"Reason\""));
	assert_non_null(strstr(fake_open()->body, "\"count\":2"));
	fake_answer(KUBE_DONE, 200, "{}");
	tell(v);
	assert_int_equal(fake_open()->verb, KUBE_PUT); /* known by now */
	assert_int_equal(dropped(v), 0);
	fake_answer(KUBE_FORBIDDEN, 403, "");
	assert_int_equal(fake_count, 4);
	assert_int_equal(dropped(v), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_count_is_raised_by_a_patch),
		cmocka_unit_test(by_an_update_where_patching_is_not_allowed),
	};

	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
