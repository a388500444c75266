/* src/kubelet as a process, for tests against grpcio peers.
 *
 *     kubelet_program serve SOCKET            a plugin; stdin: "devices N" sets N devices, its end ends the program
 *     kubelet_program register SOCKET ENDPOINT RESOURCE
 *     kubelet_program list SOCKET RESOURCE
 *
 * What happens is printed, one line each. PreStartContainer by its first id: "err" fails, "later" is answered after
 * 50 ms, "never" never. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/check.h"
#include "core/num.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"
#include "kubelet/registration.h"

static struct loop *loop;
static struct dp_plugin *plugin;
static struct loop_timer *later;
static struct dp_call *waiting;
static int result;

static void on_preferred(void *arg, struct dp_call *call, const struct dp_preferred_request *containers, size_t count)
{
	const char *const **ids = calloc(count, sizeof *ids);
	size_t *counts = calloc(count, sizeof *counts);

	(void)arg;
	CHECK(ids != NULL && counts != NULL);
	for (size_t i = 0; i < count; i++) {
		printf("preferred available=%zu must=%zu size=%lld\n", containers[i].available_count,
		       containers[i].must_count, (long long)containers[i].size);
		ids[i] = containers[i].available;
		counts[i] = (size_t)containers[i].size;
	}
	dp_reply_preferred(call, ids, counts, count);
	free(ids);
	free(counts);
}

static void on_allocate(void *arg, struct dp_call *call, const struct dp_container_request *containers, size_t count)
{
	static const struct dp_mount mounts[] = { { "/c", "/h", true } };
	static const struct dp_node nodes[] = { { "/dev/x", "/dev/null", "rw" } };
	static const struct dp_env annotations[] = { { "k", "v" } };
	static const char *const cdi[] = { "hami.io/vgpu=v.7" };
	struct dp_container_answer *answers = calloc(count, sizeof *answers);
	struct dp_env *envs = calloc(count, sizeof *envs);

	(void)arg;
	CHECK(answers != NULL && envs != NULL);
	for (size_t i = 0; i < count; i++) {
		envs[i] = (struct dp_env) { "FIRST", containers[i].count > 0 ? containers[i].ids[0] : "" };
		answers[i] = (struct dp_container_answer) { &envs[i], 1, mounts, 1, nodes, 1, annotations, 1, cdi, 1 };
	}
	dp_reply_allocate(call, answers, count);
	free(answers);
	free(envs);
}

static void on_later(void *arg)
{
	struct dp_call *call = HM_STEAL(waiting);

	(void)arg;
	if (call != NULL)
		dp_reply_pre_start(call);
}

static void on_pre_start(void *arg, struct dp_call *call, const struct dp_container_request *container)
{
	const char *first = container->count > 0 ? container->ids[0] : "";
	struct hm_err e;

	(void)arg;
	if (strcmp(first, "err") == 0) {
		hm_err_set(&e, HM_EAGAIN, "slot is held by \xc3\xa4 100%%");
		dp_fail(call, &e);
	} else if (strcmp(first, "later") == 0) {
		waiting = call;
		loop_timer_arm(later, 50);
	} else if (strcmp(first, "never") == 0) {
		dp_call_set_data(call, later);
	} else {
		dp_reply_pre_start(call);
	}
}

static void on_watchers(void *arg, size_t watchers)
{
	(void)arg;
	printf("watchers %zu\n", watchers);
}

static void on_gone(void *arg, struct dp_call *call)
{
	(void)arg;
	CHECK(dp_call_data(call) == later);
	printf("gone\n");
}

static void set_devices(size_t count)
{
	struct dp_device *devices = calloc(count + 1, sizeof *devices);
	char(*ids)[64] = calloc(count + 1, sizeof *ids);
	struct hm_err e = { 0 };

	CHECK(devices != NULL && ids != NULL);
	for (size_t i = 0; i < count; i++) {
		snprintf(ids[i], sizeof ids[i], "GPU-03f69c50-207a-2038-9b45-23cac89cb67a::%05zu", i);
		devices[i] = (struct dp_device) { ids[i], i % 2 == 0, i == 0 ? -1 : 1 };
	}
	if (dp_set_devices(plugin, devices, count, &e) < 0)
		printf("refused %s\n", e.msg);
	else
		printf("devices %zu\n", count);
	free(devices);
	free(ids);
}

static void on_stdin(void *arg, int events)
{
	char line[64] = "";
	ssize_t n = read(STDIN_FILENO, line, sizeof line - 1);
	uint64_t count;

	(void)arg, (void)events;
	if (n <= 0) {
		loop_stop(loop);
		return;
	}
	line[strcspn(line, "\n")] = '\0';
	if (strncmp(line, "devices ", 8) == 0 && num_u64_str(line + 8, 1000000, &count))
		set_devices((size_t)count);
}

static int serve(const char *path, struct hm_err *e)
{
	const struct dp_handlers handlers = { on_preferred, on_allocate, on_pre_start, on_watchers, on_gone, NULL };
	struct loop_fd *input;

	if (loop_timer_new(loop, on_later, NULL, &later, e) < 0 ||
	    dp_plugin_new(loop, path, &handlers, &plugin, e) < 0 ||
	    loop_fd_new(loop, STDIN_FILENO, LOOP_READ, on_stdin, NULL, &input, e) < 0)
		return -e->code;
	printf("serving %d\n", dp_owns_socket(plugin));
	if (loop_run(loop, e) < 0)
		return -e->code;
	dp_plugin_free(plugin);
	loop_fd_free(input);
	loop_timer_free(later);
	return 0;
}

static const char *name_of(int code)
{
	static const char *const names[HM_CODE_COUNT] = { [HM_EINVAL] = "invalid",
							  [HM_EIO] = "input/output error",
							  [HM_ENOTFOUND] = "not found",
							  [HM_EAGAIN] = "try again",
							  [HM_EPROTO] = "malformed" };

	return names[code] != NULL ? names[code] : "another error";
}

static void on_registered(void *arg, const struct hm_err *e)
{
	struct registration **r = arg;

	printf("%s: %s\n", e == NULL ? "registered" : name_of(e->code), e == NULL ? "" : e->msg);
	result = e == NULL ? 0 : 1;
	registration_free(HM_STEAL(*r));
	loop_stop(loop);
}

static void on_listed(void *arg, const struct pod_resources_container *containers, size_t count, const struct hm_err *e)
{
	struct pod_resources_call **c = arg;

	if (e != NULL)
		printf("%s: %s\n", name_of(e->code), e->msg);
	for (size_t i = 0; i < count; i++) {
		printf("%s/%s/%s", containers[i].pod_namespace, containers[i].pod, containers[i].container);
		for (size_t k = 0; k < containers[i].id_count; k++)
			printf(" %s", containers[i].ids[k]);
		printf("\n");
	}
	result = e == NULL ? 0 : 1;
	pod_resources_free(HM_STEAL(*c));
	loop_stop(loop);
}

static int run(int argc, char **argv, struct hm_err *e)
{
	struct registration *r = NULL;
	struct pod_resources_call *c = NULL;
	int code;

	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		return serve(argv[2], e);
	if (argc == 5 && strcmp(argv[1], "register") == 0) {
		const struct registration_request request = { argv[2], argv[3], argv[4], on_registered, &r };

		code = registration_start(loop, &request, &r, e);
	} else if (argc == 4 && strcmp(argv[1], "list") == 0) {
		code = pod_resources_list(loop, argv[2], argv[3], on_listed, &c, &c, e);
	} else {
		return hm_err_set(e, HM_EINVAL, "usage");
	}
	return code < 0 ? code : loop_run(loop, e);
}

int main(int argc, char **argv)
{
	struct hm_err e = { 0 };

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (loop_new(&loop, &e) < 0 || run(argc, argv, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 2;
	}
	loop_free(loop);
	return result;
}
