/* The registrar against a kubelet's registration service in the same loop. */
#include "agent/serve/registrar.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "contract/host.h"
#include "harness/fast_loop.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "rpc/client.h"
#include "rpc/server.h"

struct fixture {
	struct loop *loop;
	struct agent_paths paths;
	char socket[300];
	struct registrar *registrar;
	struct rpc_server *kubelet;
	struct rpc_client *watcher;
	const char *refuse; /* the kubelet's words; NULL: it accepts */
	size_t asked, served;
	size_t wanted; /* what reached_* compare with */
};

static void on_register(struct rpc_call *call, const uint8_t *msg, size_t n, void *arg)
{
	static const char version[] = "v1beta1", resource[] = "hami.com/vgpu";
	struct fixture *f = arg;
	struct hm_err e;

	f->asked++;
	assert_non_null(memmem(msg, n, version, sizeof version - 1));
	assert_non_null(memmem(msg, n, resource, sizeof resource - 1));
	assert_non_null(memmem(msg, n, HM_PLUGIN_SOCKET, sizeof HM_PLUGIN_SOCKET - 1));
	if (f->refuse != NULL) {
		hm_err_set(&e, HM_EINVAL, "%s", f->refuse);
		rpc_call_fail(call, &e);
	} else {
		rpc_call_reply(call, (const uint8_t *)"", 0);
	}
}

static const struct rpc_method methods[] = { { "/v1beta1.Registration/Register", on_register, NULL } };

static void on_served(void *arg, struct dp_plugin *plugin)
{
	struct fixture *f = arg;

	assert_ptr_equal(plugin, registrar_plugin(f->registrar));
	f->served++;
}

static void on_watchers(void *arg, size_t watchers)
{
	registrar_watchers(((struct fixture *)arg)->registrar, watchers);
}

static int make(struct fixture *f, struct hm_err *e)
{
	const struct registrar_config config = { .paths = &f->paths,
						 .socket = HM_PLUGIN_SOCKET,
						 .resource = "hami.com/vgpu",
						 .handlers = { .watchers = on_watchers, .arg = f },
						 .served = on_served,
						 .arg = f };

	return registrar_new(f->loop, &config, &f->registrar, e);
}

static void set_paths(struct fixture *f)
{
	snprintf(f->paths.plugin_dir.s, sizeof f->paths.plugin_dir.s, "%s", temp_path("k"));
	snprintf(f->socket, sizeof f->socket, "%s/" HM_PLUGIN_SOCKET, temp_path("k"));
	snprintf(f->paths.kubelet_socket.s, sizeof f->paths.kubelet_socket.s, "%s/kubelet.sock", temp_path("k"));
	snprintf(f->paths.kubelet_name, sizeof f->paths.kubelet_name, "kubelet.sock");
}

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof *f);
	struct hm_err e;

	*state = f;
	fast = 5;
	fast_moved_ms = 0;
	fast_forget_log();
	log_set_sink(fast_keep_line, NULL);
	if (temp_setup(state) < 0 || mkdir(temp_path("k"), 0755) < 0 || loop_new(&f->loop, &e) < 0)
		return -1;
	*state = f;
	set_paths(f);
	return make(f, &e);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	rpc_client_free(f->watcher);
	registrar_free(f->registrar);
	rpc_server_free(f->kubelet);
	loop_free(f->loop);
	test_free(f);
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

static void kubelet_start(struct fixture *f)
{
	struct hm_err e;

	if (rpc_server_new(f->loop, f->paths.kubelet_socket.s, methods, HM_COUNT(methods), f, &f->kubelet, &e) < 0)
		fail_msg("%s", e.msg);
}

static bool is_registered(const void *arg)
{
	return registrar_is_registered(((const struct fixture *)arg)->registrar);
}

static bool asked_enough(const void *arg)
{
	const struct fixture *f = arg;

	return f->asked >= f->wanted;
}

static bool wait_asked(struct fixture *f, size_t times)
{
	f->wanted = times;
	return fast_until(f->loop, asked_enough, f) && fast_until(f->loop, is_registered, f);
}

static void on_watch_done(void *arg, int status, const char *text)
{
	(void)arg, (void)status, (void)text;
}

static bool is_watched(const void *arg)
{
	const struct dp_plugin *p = registrar_plugin(((const struct fixture *)arg)->registrar);

	return p != NULL && dp_watchers(p) == 1;
}

static bool is_unwatched(const void *arg)
{
	return !is_watched(arg);
}

/* The kubelet's ListAndWatch. */
static void watch(struct fixture *f)
{
	const struct rpc_reply reply = { NULL, on_watch_done, f };
	struct hm_err e;

	if (rpc_client_new(f->loop, f->socket, &f->watcher, &e) < 0 ||
	    rpc_client_call(f->watcher, "/v1beta1.DevicePlugin/ListAndWatch", (const uint8_t *)"", 0, 0, &reply, NULL,
			    &e) < 0)
		fail_msg("%s", e.msg);
	assert_true(fast_until(f->loop, is_watched, f));
}

static void drop(struct fixture *f)
{
	rpc_client_free(HM_STEAL(f->watcher));
	assert_true(fast_until(f->loop, is_unwatched, f));
}

static bool has_trouble(const void *arg)
{
	return registrar_trouble(((const struct fixture *)arg)->registrar)[0] != '\0';
}

/* ---- */

static void registers_once_started(void **state)
{
	struct fixture *f = *state;

	kubelet_start(f);
	fast_run(f->loop, 200);
	assert_int_equal(f->asked, 0);
	assert_null(registrar_plugin(f->registrar));
	registrar_start(f->registrar);
	registrar_start(f->registrar);
	assert_true(wait_asked(f, 1));
	assert_int_equal(f->asked, 1);
	assert_int_equal(f->served, 1);
	assert_string_equal(registrar_trouble(f->registrar), "");
}

static void a_late_kubelet_is_met(void **state)
{
	struct fixture *f = *state;

	registrar_start(f->registrar);
	assert_true(fast_until(f->loop, has_trouble, f));
	assert_false(registrar_is_registered(f->registrar));
	kubelet_start(f);
	assert_true(wait_asked(f, 1));
}

static void a_refusal_is_told_and_tried_again(void **state)
{
	struct fixture *f = *state;

	f->refuse = "no such resource, says the kubelet";
	kubelet_start(f);
	registrar_start(f->registrar);
	f->wanted = 3;
	assert_true(fast_until(f->loop, asked_enough, f));
	assert_non_null(strstr(registrar_trouble(f->registrar), f->refuse));
	assert_false(registrar_is_registered(f->registrar));
	assert_int_equal(fast_said("the kubelet refused our registration"), 1); /* not at each try */
	f->refuse = NULL;
	assert_true(fast_until(f->loop, is_registered, f));
	assert_string_equal(registrar_trouble(f->registrar), "");
}

static void a_restarted_kubelet_is_registered_with_at_once(void **state)
{
	struct fixture *f = *state;

	kubelet_start(f);
	registrar_start(f->registrar);
	assert_true(wait_asked(f, 1));
	watch(f);
	for (size_t n = 2; n < 5; n++) {
		rpc_server_free(HM_STEAL(f->kubelet));
		rpc_client_free(HM_STEAL(f->watcher));
		assert_int_equal(unlink(f->socket), 0);
		kubelet_start(f);
		assert_true(wait_asked(f, n));
		watch(f);
	}
	assert_int_equal(fast_said("ANOTHER PLUGIN"), 0);
	assert_int_equal(fast_said("another plugin"), 0);
}

static void a_folder_that_goes_is_waited_for(void **state)
{
	struct fixture *f = *state;

	kubelet_start(f);
	registrar_start(f->registrar);
	assert_true(wait_asked(f, 1));
	rpc_server_free(HM_STEAL(f->kubelet));
	assert_int_equal(rename(temp_path("k"), temp_path("old")), 0);
	fast_run(f->loop, 500);
	assert_null(registrar_plugin(f->registrar));
	assert_false(registrar_is_registered(f->registrar));
	assert_int_equal(fast_said("went away"), 1);
	assert_int_equal(mkdir(temp_path("k"), 0755), 0);
	kubelet_start(f);
	assert_true(wait_asked(f, 2));
}

static void registered_but_not_asked_registers_again(void **state)
{
	struct fixture *f = *state;

	kubelet_start(f);
	registrar_start(f->registrar);
	assert_true(wait_asked(f, 2));
	assert_true(fast_said("does not ask for our devices") >= 1);
	watch(f);
	f->asked = 0;
	fast_run(f->loop, 3 * REGISTRAR_STREAM_MS);
	assert_int_equal(f->asked, 0);
}

/* How long it holds back, by what lies between the losses. */
static void losses_of_the_stream_back_off_until_it_is_calm(void **state)
{
	static const struct {
		uint64_t before_ms; /* since the loss before */
		const char *next_try;
	} losses[] = {
		{ 0, NULL },
		{ 0, "next_try_ms=10000" },
		{ 11000, "next_try_ms=20000" },
		{ 21000, "next_try_ms=40000" },
		{ 41000, "next_try_ms=80000" },
		{ 200000, NULL },
		{ 0, "next_try_ms=10000" },
	};
	struct fixture *f = *state;

	kubelet_start(f);
	registrar_start(f->registrar);
	assert_true(wait_asked(f, 1));
	for (size_t i = 0; i < HM_COUNT(losses); i++) {
		watch(f);
		fast_moved_ms += losses[i].before_ms;
		fast_forget_log();
		f->asked = 0;
		drop(f);
		if (losses[i].next_try == NULL) {
			assert_true(wait_asked(f, 1));
			assert_int_equal(fast_said("another plugin may serve"), 1);
			assert_int_equal(fast_said("ANOTHER PLUGIN"), 0);
			continue;
		}
		assert_int_equal(fast_said("ANOTHER PLUGIN HAS TAKEN OVER"), 1);
		if (fast_said(losses[i].next_try) != 1)
			fail_msg("loss %zu: %s", i, fast_log);
		assert_non_null(strstr(registrar_trouble(f->registrar), "taken over"));
		fast_run(f->loop, 1000);
		assert_int_equal(f->asked, 0);
		unlink(f->paths.kubelet_socket.s); /* ends the wait: its kubelet comes back */
		rpc_server_free(HM_STEAL(f->kubelet));
		kubelet_start(f);
		assert_true(wait_asked(f, 1));
	}
}

static void replace_socket(struct fixture *f)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	hm_auto_fd fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(at.sun_path, sizeof at.sun_path, "%s", temp_path("theirs"));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(rename(temp_path("theirs"), f->socket), 0);
}

static void a_replaced_socket_is_taken_back_once(void **state)
{
	struct fixture *f = *state;
	struct stat st;

	kubelet_start(f);
	registrar_start(f->registrar);
	assert_true(wait_asked(f, 1));
	replace_socket(f);
	assert_true(wait_asked(f, 2));
	assert_int_equal(fast_said("ANOTHER PLUGIN HAS REPLACED OUR SOCKET"), 1);
	assert_true(dp_owns_socket(registrar_plugin(f->registrar)));
	watch(f);
	replace_socket(f);
	fast_run(f->loop, 1000);
	assert_int_equal(fast_said("next_try_ms=10000"), 1);
	assert_null(registrar_plugin(f->registrar));
	assert_int_equal(stat(f->socket, &st), 0); /* theirs is left alone */
	rpc_client_free(HM_STEAL(f->watcher));
	assert_true(wait_asked(f, 3));
}

/* Whatever cannot be had once: either it says so at its making, or it gets registered all the same. */
static int scenario(void *arg)
{
	struct fixture f = { 0 };
	struct hm_err e;
	int r = -1;

	(void)arg;
	set_paths(&f);
	if (loop_new(&f.loop, &e) == 0 &&
	    rpc_server_new(f.loop, f.paths.kubelet_socket.s, methods, 1, &f, &f.kubelet, &e) == 0) {
		r = make(&f, &e);
		if (r == 0) {
			registrar_start(f.registrar);
			assert_true(fast_until(f.loop, is_registered, &f));
			assert_true(f.served >= 1);
		}
	}
	registrar_free(f.registrar);
	rpc_server_free(f.kubelet);
	loop_free(f.loop);
	return r;
}

static void sweep(void **state)
{
	struct sweep_result r;

	(void)state;
	fast = 50; /* nothing here must not happen yet */
	r = sweep_run(scenario, NULL);
	assert_false(r.failed);
	assert_true(r.allocations > 20);
	if (r.leaked > 0)
		fail_msg("%zu blocks leaked when allocation %zu failed", r.leaked, r.leaked_at);
	assert_int_equal(temp_count("k"), 0); /* no socket is left */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(registers_once_started),
		TEST(a_late_kubelet_is_met),
		TEST(a_refusal_is_told_and_tried_again),
		TEST(a_restarted_kubelet_is_registered_with_at_once),
		TEST(a_folder_that_goes_is_waited_for),
		TEST(registered_but_not_asked_registers_again),
		TEST(losses_of_the_stream_back_off_until_it_is_calm),
		TEST(a_replaced_socket_is_taken_back_once),
		TEST(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
