/* The plugin, the registration and the pod-resources client in one process, in one loop, while memory is short: every
 * allocation of ours fails once, and each call still ends, once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/log.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pb.h"
#include "kubelet/pod_resources.h"
#include "kubelet/proto/device_plugin.pb-c.h"
#include "kubelet/proto/pod_resources.pb-c.h"
#include "kubelet/registration.h"
#include "rpc/client.h"
#include "rpc/server.h"

struct fixture {
	struct loop *loop;
	size_t done, messages; /* of the call in hand */
	int result;
};

static void hush(const char *line, size_t n, void *arg)
{
	(void)line, (void)n, (void)arg;
}

static void run_until_done(struct fixture *f)
{
	uint64_t end_ms = loop_now_ms(f->loop) + 5000;
	struct hm_err e;

	while (f->done == 0 && loop_now_ms(f->loop) < end_ms)
		assert_int_equal(loop_run_once(f->loop, 20, &e), 0);
	assert_int_equal(f->done, 1);
}

/* ---- the plugin ---- */

static void on_preferred(void *arg, struct dp_call *call, const struct dp_preferred_request *r, size_t count)
{
	const char *const *ids[] = { r->available };
	size_t counts[] = { (size_t)r->size };

	(void)arg;
	assert_int_equal(count, 1);
	dp_reply_preferred(call, ids, counts, 1);
}

static void on_allocate(void *arg, struct dp_call *call, const struct dp_container_request *r, size_t count)
{
	const struct dp_container_answer answer = { .cdi_names = r->ids, .cdi_count = r->count };

	(void)arg;
	assert_int_equal(count, 1);
	dp_reply_allocate(call, &answer, 1);
}

static void on_pre_start(void *arg, struct dp_call *call, const struct dp_container_request *r)
{
	(void)arg, (void)r;
	dp_reply_pre_start(call);
}

static void on_message(void *arg, const uint8_t *msg, size_t n)
{
	struct fixture *f = arg;

	(void)msg, (void)n;
	f->messages++;
}

static void on_done(void *arg, int status, const char *text)
{
	struct fixture *f = arg;

	(void)text;
	f->done++;
	f->result = status;
}

/* True when the call was answered. */
static bool one_call(struct fixture *f, const char *socket, const char *method, const struct str *msg)
{
	const struct rpc_reply reply = { on_message, on_done, f };
	hm_auto(rpc_client) *client = NULL;
	char path[64];
	struct hm_err e;

	f->done = f->messages = 0;
	snprintf(path, sizeof path, "/v1beta1.DevicePlugin/%s", method);
	if (rpc_client_new(f->loop, socket, &client, &e) < 0 ||
	    rpc_client_call(client, path, (const uint8_t *)str_text(msg), msg->n, 3000, &reply, NULL, &e) < 0)
		return false;
	run_until_done(f);
	return f->result == RPC_OK && f->messages == 1;
}

/* ListAndWatch never ends by itself: its first message will do. */
static bool one_watch(struct fixture *f, const char *socket, struct dp_plugin *p)
{
	const struct rpc_reply reply = { on_message, on_done, f };
	hm_auto(rpc_client) *client = NULL;
	uint64_t end_ms = loop_now_ms(f->loop) + 5000;
	struct hm_err e;
	bool good;

	f->done = f->messages = 0;
	if (rpc_client_new(f->loop, socket, &client, &e) < 0 ||
	    rpc_client_call(client, "/v1beta1.DevicePlugin/ListAndWatch", (const uint8_t *)"", 0, 0, &reply, NULL, &e) <
		    0)
		return false;
	while (f->done == 0 && f->messages == 0 && loop_now_ms(f->loop) < end_ms)
		assert_int_equal(loop_run_once(f->loop, 20, &e), 0);
	assert_true(f->done + f->messages > 0);
	good = f->messages == 1 && f->done == 0;
	assert_true(!good || dp_watchers(p) == 1);
	rpc_client_free(HM_STEAL(client));
	while (dp_watchers(p) > 0 && loop_now_ms(f->loop) < end_ms)
		assert_int_equal(loop_run_once(f->loop, 20, &e), 0);
	assert_int_equal(dp_watchers(p), 0);
	return good;
}

static size_t all_calls(struct fixture *f, const char *socket, struct dp_plugin *p)
{
	static const struct dp_device devices[] = { { "a", true, 0 }, { "b", true, -1 } };
	const struct str nothing = { 0 };
	hm_auto_str preferred = { 0 }, allocate = { 0 }, pre_start = { 0 };
	size_t good = 0;
	struct hm_err e;

	str_add_n(&preferred, "\x0a\x08\x0a\x01\x61\x0a\x01\x62\x18\x01", 10); /* a, b available; one wanted */
	str_add_n(&allocate, "\x0a\x03\x0a\x01\x61", 5);
	str_add_n(&pre_start, "\x0a\x01\x61", 3);
	if (str_failed(&preferred) || str_failed(&allocate) || str_failed(&pre_start))
		return 0;
	good += dp_set_devices(p, devices, 2, &e) == 0;
	good += one_watch(f, socket, p);
	good += one_call(f, socket, "GetDevicePluginOptions", &nothing);
	good += one_call(f, socket, "GetPreferredAllocation", &preferred);
	good += one_call(f, socket, "Allocate", &allocate);
	good += one_call(f, socket, "PreStartContainer", &pre_start);
	return good;
}

static int plugin_scenario(void *arg)
{
	const struct dp_handlers handlers = { on_preferred, on_allocate, on_pre_start, NULL, NULL, NULL };
	struct fixture f = { 0 };
	struct dp_plugin *p = NULL;
	struct hm_err e;
	size_t good = 0;

	if (loop_new(&f.loop, &e) == 0 && dp_plugin_new(f.loop, arg, &handlers, &p, &e) == 0)
		good = all_calls(&f, arg, p);
	dp_plugin_free(p);
	loop_free(f.loop);
	return good == 6 ? 0 : -1;
}

/* ---- the clients ---- */

static void on_register(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	(void)msg, (void)n, (void)arg;
	rpc_call_reply(call, (const uint8_t *)"", 0);
}

static void on_list(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	/* pod "p" in "n", container "c" with device "i" of "r", and one more of "r" */
	static const char list[] = "\x0a\x1b\x0a\x01p\x12\x01n\x1a\x13\x0a\x01"
				   "c\x12\x06\x0a\x01r\x12\x01i\x12\x06\x0a\x01r\x12\x01j";

	(void)msg, (void)n, (void)arg;
	rpc_call_reply(call, (const uint8_t *)list, sizeof list - 1);
}

static void on_registered(void *arg, const struct hm_err *e)
{
	struct fixture *f = arg;

	f->done++;
	f->result = e == NULL ? 0 : -e->code;
}

static void on_listed(void *arg, const struct pod_resources_container *containers, size_t count, const struct hm_err *e)
{
	struct fixture *f = arg;

	f->done++;
	f->result = e == NULL ? 0 : -e->code;
	if (e != NULL)
		return;
	assert_int_equal(count, 1);
	assert_string_equal(containers[0].container, "c");
	assert_int_equal(containers[0].id_count, 2);
	assert_string_equal(containers[0].ids[1], "j");
}

static bool registers(struct fixture *f, const char *socket)
{
	const struct registration_request request = { socket, "e.sock", "r", on_registered, f };
	hm_auto(registration) *r = NULL;
	struct hm_err e;

	f->done = 0;
	if (registration_start(f->loop, &request, &r, &e) < 0)
		return false;
	run_until_done(f);
	return f->result == 0;
}

static bool lists(struct fixture *f, const char *socket)
{
	hm_auto(pod_resources_call) *c = NULL;
	struct hm_err e;

	f->done = 0;
	if (pod_resources_list(f->loop, socket, "r", on_listed, f, &c, &e) < 0)
		return false;
	run_until_done(f);
	return f->result == 0;
}

static int client_scenario(void *arg)
{
	static const struct rpc_method methods[] = { { "/v1beta1.Registration/Register", on_register, NULL },
						     { "/v1.PodResourcesLister/List", on_list, NULL } };
	struct fixture f = { 0 };
	struct rpc_server *s = NULL;
	struct hm_err e;
	int good = 0;

	if (loop_new(&f.loop, &e) == 0 && rpc_server_new(f.loop, arg, methods, 2, NULL, &s, &e) == 0)
		good = registers(&f, arg) + lists(&f, arg);
	rpc_server_free(s);
	loop_free(f.loop);
	return good == 2 ? 0 : -1;
}

/* A registration or a list that is given up is not told. */
static void given_up(void **state)
{
	struct fixture f = { 0 };
	const struct registration_request request = { temp_path("none.sock"), "e.sock", "r", on_registered, &f };
	struct registration *r = NULL;
	struct pod_resources_call *c = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_new(&f.loop, &e), 0);
	assert_int_equal(registration_start(f.loop, &request, &r, &e), 0);
	assert_int_equal(pod_resources_list(f.loop, temp_path("none.sock"), "r", on_listed, &f, &c, &e), 0);
	assert_int_equal(f.done, 0); /* not from inside the start */
	registration_free(r);
	pod_resources_free(c);
	for (int i = 0; i < 3; i++)
		assert_int_equal(loop_run_once(f.loop, 1, &e), 0);
	assert_int_equal(f.done, 0);
	assert_int_equal(registration_start(f.loop, &request, &r, &e), 0);
	run_until_done(&f);
	assert_int_equal(f.result, -HM_ENOTFOUND);
	registration_free(r);
	loop_free(f.loop);
}

static void check(const char *name, sweep_scenario scenario)
{
	char path[128];
	struct sweep_result r;

	snprintf(path, sizeof path, "%s", temp_path("s.sock"));
	log_set_sink(hush, NULL);
	r = sweep_run(scenario, path);
	log_set_sink(NULL, NULL);
	assert_false(r.failed);
	assert_true(r.allocations > 20);
	if (r.leaked > 0)
		fail_msg("%s: %zu blocks leaked when allocation %zu failed", name, r.leaked, r.leaked_at);
	assert_int_equal(temp_count(""), 0); /* no socket is left */
}

static void plugin_sweep(void **state)
{
	(void)state;
	check("plugin", plugin_scenario);
}

static void client_sweep(void **state)
{
	(void)state;
	check("clients", client_scenario);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(plugin_sweep, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(client_sweep, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(given_up, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
