#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/options.h"
#include "base/str.h"
#include "contract/exit_codes.h"
#include "core/check.h"
#include "core/num.h"
#include "io/file.h"
#include "io/json.h"
#include "sim/simkubelet/commands.h"
#include "sim/simkubelet/jail.h"

enum { MAX_POD_BYTES = 1024 * 1024 };

struct client {
	const char *dir, *wait;
	char **words; /* behind the options */
	int count;
};

static int connect_to(const char *dir, struct hm_err *e)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	hm_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (snprintf(address.sun_path, sizeof address.sun_path, "%s/simkubelet.sock", dir) >=
	    (int)sizeof address.sun_path)
		return hm_err_set(e, HM_EINVAL, "--dir=%s is too long for a socket", dir);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		return hm_err_errno(e, errno, "no hami-simkubelet serves %s", dir);
	return hm_steal_fd(&fd);
}

/* Sends the request; each answer goes to `line` (takes it not), the one with "done" ends it. 0 where that says ok. */
static int ask(const char *dir, cJSON *request, void (*line)(const cJSON *answer, const char *text, void *arg),
	       void *arg, struct hm_err *e)
{
	char *text = cJSON_PrintUnformatted(request);
	hm_auto_fd fd = connect_to(dir, e);
	hm_auto_heap char *buffer = NULL;
	FILE *f = NULL;
	size_t cap = 0;
	int result = -1;

	cJSON_Delete(request);
	if (fd < 0) {
		cJSON_free(text);
		return fd;
	}
	dprintf(fd, "%s\n", text);
	cJSON_free(text);
	f = fdopen(hm_steal_fd(&fd), "r");
	while (f != NULL && result == -1 && getline(&buffer, &cap, f) > 0) {
		hm_auto(cJSON) *answer = cJSON_Parse(buffer);

		if (line != NULL && answer != NULL)
			line(answer, buffer, arg);
		if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "done")))
			result = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(answer, "ok")) ? 0 : 1;
		if (result == 1 && cJSON_HasObjectItem(answer, "error"))
			fprintf(stderr, "hami-simkubelet: %s\n",
				cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "error")));
	}
	if (f != NULL)
		fclose(f);
	return result == -1 ? hm_err_set(e, HM_EIO, "hami-simkubelet ended") : result;
}

static void print_line(const cJSON *answer, const char *text, void *arg)
{
	(void)answer, (void)arg;
	fputs(text, stdout);
	fflush(stdout);
}

static cJSON *request_of(const char *cmd)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "cmd", cmd);
	return o;
}

/* "pod", "pod/container", "namespace/pod/container". */
static void add_target(cJSON *o, const char *text)
{
	char *copy = strdup(text), *parts[3], *rest = copy;
	int n = 0;

	CHECK(copy != NULL);
	while (n < 3 && (parts[n] = strsep(&rest, "/")) != NULL)
		n++;
	if (n == 3)
		cJSON_AddStringToObject(o, "namespace", parts[0]);
	cJSON_AddStringToObject(o, "name", parts[n == 3 ? 1 : 0]);
	if (n > 1)
		cJSON_AddStringToObject(o, "container", parts[n - 1]);
	free(copy);
}

static int read_stdin(struct str *out, struct hm_err *e)
{
	char bytes[4096];
	ssize_t n;

	while ((n = read(STDIN_FILENO, bytes, sizeof bytes)) > 0 && out->n <= MAX_POD_BYTES)
		str_add_n(out, bytes, (size_t)n);
	return n < 0 ? hm_err_errno(e, errno, "standard input") : 0;
}

static int client_run(const struct client *c, struct hm_err *e)
{
	const char *path = c->words[0];
	hm_auto_str text = { 0 };
	cJSON *request, *pod = NULL;
	int r = strcmp(path, "-") == 0 ? read_stdin(&text, e) : file_read(path, MAX_POD_BYTES, &text, e);

	if (r < 0 || json_parse(str_text(&text), text.n, &pod, e) < 0)
		return hm_err_wrap(e, "%s", path);
	request = request_of("run");
	cJSON_AddStringToObject(request, "wait", c->wait);
	cJSON_AddItemToObject(request, "pod", pod);
	return ask(c->dir, request, print_line, NULL, e);
}

/* The container of status that `target` names: its pid and log. */
struct found {
	const cJSON *target;
	pid_t pid;
	char *log;
};

static bool same(const cJSON *object, const char *key, const cJSON *target, const char *target_key,
		 const char *otherwise)
{
	const char *want = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(target, target_key));
	const char *have = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

	want = want == NULL ? otherwise : want;
	return want == NULL || (have != NULL && strcmp(want, have) == 0);
}

static void find_container(const cJSON *answer, const char *text, void *arg)
{
	struct found *f = arg;
	const cJSON *pod, *c;

	(void)text;
	cJSON_ArrayForEach(pod, cJSON_GetObjectItemCaseSensitive(answer, "pods"))
	{
		if (!same(pod, "name", f->target, "name", NULL) ||
		    !same(pod, "namespace", f->target, "namespace", "default"))
			continue;
		cJSON_ArrayForEach(c, cJSON_GetObjectItemCaseSensitive(pod, "containers"))
		{
			bool init = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(c, "init"));

			if (f->log != NULL || (init && !cJSON_HasObjectItem(f->target, "container")) ||
			    !same(c, "name", f->target, "container", NULL))
				continue;
			f->pid = (pid_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(c, "pid"));
			f->log = strdup(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(c, "log")));
		}
	}
}

static int find_target(const struct client *c, struct found *f, struct hm_err *e)
{
	cJSON *target = cJSON_CreateObject();
	int r;

	add_target(target, c->words[0]);
	*f = (struct found) { .target = target };
	r = ask(c->dir, request_of("status"), find_container, f, e);
	f->target = NULL;
	cJSON_Delete(target);
	if (r == 0 && f->log == NULL)
		r = hm_err_set(e, HM_ENOTFOUND, "no container %s", c->words[0]);
	return r;
}

static int client_exec(const struct client *c, struct hm_err *e)
{
	struct found f;
	int r = find_target(c, &f, e);

	free(f.log);
	if (r == 0 && f.pid == 0)
		r = hm_err_set(e, HM_ENOTFOUND, "container %s does not run", c->words[0]);
	return r != 0 ? r : jail_enter(f.pid, c->words + 1, e);
}

static int client_logs(const struct client *c, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	struct found f;
	int r = find_target(c, &f, e);

	if (r == 0)
		r = file_read(f.log, SIZE_MAX / 4, &text, e);
	if (r == 0)
		fwrite(str_text(&text), 1, text.n, stdout);
	free(f.log);
	return r;
}

static int client_simple(const struct client *c, const char *cmd, struct hm_err *e)
{
	bool quiet = strcmp(cmd, "status") != 0;

	(void)c;
	return ask(c->dir, request_of(cmd), quiet ? NULL : print_line, NULL, e);
}

static int client_target(const struct client *c, const char *cmd, struct hm_err *e)
{
	cJSON *request = request_of(cmd);
	uint64_t signo;

	add_target(request, c->words[0]);
	if (c->count > 1) {
		if (!num_u64_str(c->words[1], 64, &signo)) {
			cJSON_Delete(request);
			return hm_err_set(e, HM_EINVAL, "signal \"%s\" is not a number up to 64", c->words[1]);
		}
		cJSON_AddNumberToObject(request, "signal", (double)signo);
	}
	return ask(c->dir, request, NULL, NULL, e);
}

static int client_wait(const struct client *c, struct hm_err *e)
{
	cJSON *request = request_of("wait");
	uint64_t count = 1;

	cJSON_AddStringToObject(request, "resource", c->words[0]);
	if (c->count > 1 && !num_u64_str(c->words[1], UINT32_MAX, &count)) {
		cJSON_Delete(request);
		return hm_err_set(e, HM_EINVAL, "count \"%s\" is not a number", c->words[1]);
	}
	cJSON_AddNumberToObject(request, "count", (double)count);
	return ask(c->dir, request, NULL, NULL, e);
}

static int client_ctl(const struct client *c, struct hm_err *e)
{
	cJSON *request = NULL;

	if (json_parse(c->words[0], strlen(c->words[0]), &request, e) < 0)
		return hm_err_wrap(e, "request");
	return ask(c->dir, request, print_line, NULL, e);
}

static int dispatch(const char *cmd, const struct client *c, struct hm_err *e)
{
	static const struct {
		const char *name;
		int words;
		int (*run)(const struct client *c, struct hm_err *e);
	} own[] = { { "run", 1, client_run },
		    { "exec", 2, client_exec },
		    { "logs", 1, client_logs },
		    { "wait", 1, client_wait },
		    { "ctl", 1, client_ctl } };

	for (size_t i = 0; i < HM_COUNT(own); i++) {
		if (strcmp(own[i].name, cmd) != 0)
			continue;
		if (c->count < own[i].words)
			return hm_err_set(e, HM_EINVAL, "%s needs %d words, see hami-simkubelet help", cmd,
					  own[i].words);
		return own[i].run(c, e);
	}
	if (strcmp(cmd, "delete") != 0 && strcmp(cmd, "kill") != 0)
		return client_simple(c, cmd, e);
	if (c->count < 1)
		return hm_err_set(e, HM_EINVAL, "%s needs a pod", cmd);
	return client_target(c, cmd, e);
}

int command_client(int argc, char **argv)
{
	struct client c = { .wait = "done" };
	const struct option_spec specs[] = {
		{ "dir", NULL, OPTION_TEXT, &c.dir, 0, 0, NULL, "DIR", "that of hami-simkubelet serve" },
		{ "wait", NULL, OPTION_CHOICE, &c.wait, 0, 0, "none|running|done", NULL, "how long run waits" },
	};
	struct hm_err e = { 0 };
	int operand, r = options_parse(specs, HM_COUNT(specs), argc, argv, &operand, &e);

	if (r == OPTIONS_VERSION) {
		puts("hami-simkubelet " HM_VERSION);
		return HM_EXIT_OK;
	}
	if (r == OPTIONS_HELP) {
		options_print_help("hami-simkubelet COMMAND --dir=DIR ...", specs, HM_COUNT(specs));
		return HM_EXIT_OK;
	}
	if (r == OPTIONS_RUN && c.dir == NULL)
		r = hm_err_set(&e, HM_EINVAL, "--dir is needed");
	if (r != OPTIONS_RUN) {
		fprintf(stderr, "hami-simkubelet: %s\n", e.msg);
		return HM_EXIT_USAGE;
	}
	c.words = argv + operand;
	c.count = argc - operand;
	r = dispatch(argv[0], &c, &e);
	if (r >= 0)
		return r;
	fprintf(stderr, "hami-simkubelet: %s\n", e.msg);
	return e.code == HM_EINVAL ? HM_EXIT_USAGE : HM_EXIT_FAILED;
}
