/* What the client, the reflector and the events do when memory runs out, and that a cancelled call stays silent. The
 * server is a socket that accepts (the kernel does) and says nothing; what they say to one that answers is
 * tests/integration/kube. */
#include "kube/client.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness/sweep.h"
#include "harness/unit.h"
#include "kube/event.h"
#include "kube/reflector.h"

static char config_text[300];
static int listener;

static int setup(void **state)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof a;

	(void)state;
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&a, n) < 0 || listen(listener, 4096) < 0 ||
	    getsockname(listener, (struct sockaddr *)&a, &n) < 0)
		return -1;
	snprintf(config_text, sizeof config_text,
		 "{current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}], users: [{name: u, user: "
		 "{token: t}}],"
		 " clusters: [{name: c, cluster: {server: \"http://127.0.0.1:%u\"}}]}",
		 ntohs(a.sin_port));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return close(listener);
}

struct world {
	struct loop *loop;
	struct kube_client *client;
	unsigned done;
};

static void world_fini(struct world *w)
{
	kube_client_free(w->client);
	loop_free(w->loop);
}
#define auto_world __attribute__((cleanup(world_fini))) struct world

static int world_init(struct world *w, const struct kube_client_options *options)
{
	struct kube_config *config = NULL;

	if (loop_new(&w->loop, NULL) < 0 ||
	    kube_config_parse(config_text, strlen(config_text), NULL, &config, NULL) < 0)
		return -1;
	return kube_client_new(w->loop, config, options, &w->client, NULL);
}

static void turn(struct world *w, unsigned times)
{
	while (times-- > 0)
		assert_int_equal(loop_run_once(w->loop, 0, NULL), 0);
}

static void on_done(void *arg, const struct kube_answer *a)
{
	struct world *w = arg;

	(void)a;
	w->done++;
}

static int call(struct world *w, struct kube_call **out)
{
	struct kube_events_of_call events = { .done = on_done, .arg = w };
	struct kube_request r = { .verb = KUBE_PATCH, .path = "/x", .content_type = KUBE_JSON, .body = "{}", .n = 2 };

	return kube_client_call(w->client, &r, &events, out, NULL);
}

static int use_client(void *arg)
{
	auto_world w = { 0 };

	if (world_init(&w, arg) < 0 || call(&w, NULL) < 0 || call(&w, NULL) < 0)
		return -1;
	turn(&w, 5);
	return w.done == 0 ? 0 : -1;
}

/* As sweep_check, but for a socket that could not be watched (two allocations): its calls end by their time limit. */
static void check_sweep(sweep_scenario scenario, void *arg, size_t unreported)
{
	struct sweep_result r = sweep_run(scenario, arg);

	assert_false(r.failed);
	assert_int_equal(r.leaked, 0);
	assert_true(r.allocations > 20);
	assert_in_range(r.swallowed, 0, unreported);
}

static void clients_without_memory(void **state)
{
	struct kube_client_options slow = { .per_second = 1, .burst = 1 };

	(void)state;
	check_sweep(use_client, NULL, 2);
	check_sweep(use_client, &slow, 2);
}

static void nothing(void *arg, const struct kube_object *o)
{
	(void)arg, (void)o;
	fail_msg("nobody said so");
}

static int use_reflector(void *arg)
{
	struct kube_reflector_options options = { .path = "/api/v1/pods",
						  .field_selector = "a=b",
						  .label_selector = "c" };
	struct kube_reflector_events events = { .changed = nothing, .deleted = nothing };
	struct kube_reflector_state s;
	hm_auto(kube_reflector) *r = NULL;
	auto_world w = { 0 };
	int got = -1;

	(void)arg;
	if (world_init(&w, NULL) == 0 && kube_reflector_new(w.client, &options, &events, &r, NULL) == 0) {
		turn(&w, 5);
		kube_reflector_state(r, &s);
		assert_false(s.synced);
		assert_true(s.failures > 0 || s.lists == 1);
		got = s.failures == 0 ? 0 : -1;
	}
	kube_reflector_free(HM_STEAL(r)); /* before its client */
	return got;
}

static void reflectors_without_memory(void **state)
{
	(void)state;
	check_sweep(use_reflector, NULL, 2);
}

static int use_events(void *arg)
{
	struct kube_event_object pod = { "v1", "Pod", "default", "a", "u" };
	hm_auto(kube_events) *v = NULL;
	struct kube_events_state s = { 0 };
	auto_world w = { 0 };
	int got = -1;

	(void)arg;
	if (world_init(&w, NULL) == 0 && kube_events_new(w.client, "test", "host", &v, NULL) == 0) {
		for (unsigned i = 0; i < 3; i++)
			kube_events_tell(v, &pod, "Normal", "Reason", i == 0 ? "one" : "other");
		turn(&w, 5);
		kube_events_state(v, &s);
		got = s.dropped == 0 && s.limited == 0 && s.merged == 1 && kube_client_stats(w.client) != NULL ? 0 : -1;
	}
	kube_events_free(HM_STEAL(v));
	return got;
}

static void events_without_memory(void **state)
{
	(void)state;
	/* Sending that finds no memory is tried again later: nobody is told. */
	check_sweep(use_events, NULL, 30);
}

/* Whoever decides about each send himself does not wait in our queue, and goes before those that do. */
static void once_is_now_or_not_at_all(void **state)
{
	struct kube_client_options slow = { .per_second = 100, .burst = 1 };
	struct kube_events_of_call events = { .done = on_done };
	struct kube_request r = {
		.verb = KUBE_POST, .path = "/x", .content_type = KUBE_JSON, .body = "{}", .n = 2, .once = true
	};
	auto_world w = { 0 };
	struct hm_err e;

	(void)state;
	events.arg = &w;
	assert_int_equal(world_init(&w, &slow), 0);
	assert_int_equal(kube_client_call(w.client, &r, &events, NULL, &e), 0);
	assert_int_equal(kube_client_call(w.client, &r, &events, NULL, &e), -HM_EAGAIN);
	assert_string_equal(e.msg, "POST /x: our own rate");
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(call(&w, NULL), 0);
	usleep(20000);
	assert_int_equal(kube_client_call(w.client, &r, &events, NULL, &e), 0);
}

static void a_cancelled_call_is_silent(void **state)
{
	struct kube_client_options options = { .request_ms = 50 };
	struct kube_call *first = NULL, *second = NULL;
	auto_world w = { 0 };

	(void)state;
	assert_int_equal(world_init(&w, &options), 0);
	assert_int_equal(call(&w, &first), 0);
	assert_int_equal(call(&w, &second), 0);
	turn(&w, 5);
	kube_call_cancel(first);
	kube_call_cancel(NULL);
	for (unsigned i = 0; i < 500 && w.done == 0; i++)
		assert_int_equal(loop_run_once(w.loop, 10, NULL), 0);
	assert_int_equal(w.done, 1);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(loop_run_once(w.loop, 10, NULL), 0);
	assert_int_equal(w.done, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clients_without_memory),     cmocka_unit_test(reflectors_without_memory),
		cmocka_unit_test(events_without_memory),      cmocka_unit_test(once_is_now_or_not_at_all),
		cmocka_unit_test(a_cancelled_call_is_silent),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
