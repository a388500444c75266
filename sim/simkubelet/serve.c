#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/options.h"
#include "contract/exit_codes.h"
#include "core/check.h"
#include "io/file.h"
#include "sim/simkubelet/commands.h"
#include "sim/simkubelet/jail.h"
#include "sim/simkubelet/node.h"

void *node_alloc(size_t n, size_t size)
{
	void *p = calloc(n, size);

	CHECK(p != NULL);
	return p;
}

char *node_text(const char *s)
{
	char *copy = s == NULL ? NULL : strdup(s);

	CHECK((copy == NULL) == (s == NULL));
	return copy;
}

const char *status_words(int status)
{
	static const char *const names[] = {
		"OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
		"NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
		"Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
		"DataLoss", "Unauthenticated"
	};

	return status >= 0 && status < (int)HM_COUNT(names) ? names[status] : "Unknown";
}

void node_sync(struct node *n)
{
	loop_timer_arm(n->sync, 0);
}

static void on_sync(void *arg)
{
	struct node *n = arg;

	admission_step(n);
	if (!n->kubelet_up || n->readmitting)
		return;
	LIST_FOR_EACH (&n->pods, it)
		pod_step(HM_CONTAINER(it, struct pod, link));
}

/* ---- the kubelet's start and end ---- */

/* The servers' sockets are named relative to our folder; standing elsewhere they find no file of theirs to remove, and
 * leave their sockets behind as a kubelet does that ends. */
void node_kubelet_stop(struct node *n)
{
	if (!n->kubelet_up)
		return;
	n->kubelet_up = false;
	loop_timer_disarm(n->readmit);
	n->readmitting = false;
	admission_abort(n);
	pods_pause(n);
	plugins_stop_kubelet(n);
	CHECK(chdir("/") == 0);
	rpc_server_free(HM_STEAL(n->registration));
	rpc_server_free(HM_STEAL(n->pod_resources));
	CHECK(chdir(n->dir) == 0);
	control_resources_changed(n);
	log_info("kubelet stopped");
}

/* As the kubelet does at its start: sockets go, files and folders stay. */
static void remove_sockets(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	struct stat st;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode))
			unlinkat(dirfd(dir), entry->d_name, 0);
	}
	closedir(dir);
}

static void on_readmit(void *arg)
{
	struct node *n = arg;

	n->readmitting = false;
	pods_readmit(n);
	node_sync(n);
}

static void on_listen(void *arg)
{
	struct node *n = arg;
	struct hm_err e;

	if (plugins_listen(n, &e) < 0 || podres_listen(n, &e) < 0) {
		log_error("kubelet", KV_ERR(&e));
		loop_stop(n->loop);
		return;
	}
	n->kubelet_up = true;
	n->readmitting = !list_empty(&n->pods);
	if (n->readmitting)
		loop_timer_arm(n->readmit, n->readmit_ms);
	log_info("kubelet started");
	node_sync(n);
}

/* A kubelet.sock that does not accept yet. */
static void make_deaf_socket(void)
{
	static const struct sockaddr_un address = { AF_UNIX, "device-plugins/kubelet.sock" };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) < 0)
		log_warn("cannot bind kubelet.sock", KV("err", hm_errno_text(errno)));
	close(fd);
}

static void on_start(void *arg)
{
	struct node *n = arg;

	remove_sockets("device-plugins");
	remove_sockets("pod-resources");
	if (n->gap_ms > 0) {
		make_deaf_socket();
		loop_timer_arm(n->listen, n->gap_ms);
	} else {
		on_listen(n);
	}
}

void node_kubelet_start(struct node *n, uint64_t after_ms, uint64_t gap_ms)
{
	if (n->kubelet_up)
		return;
	n->gap_ms = gap_ms;
	loop_timer_arm(n->start, after_ms);
}

/* ---- the program ---- */

static void on_child(void *arg)
{
	container_reap(arg);
}

static void on_term(void *arg)
{
	struct node *n = arg;

	loop_stop(n->loop);
}

static int make_folders(const struct node *n, struct hm_err *e)
{
	static const char *const names[] = { "device-plugins", "pod-resources", "cdi", "logs", "stage" };

	for (size_t i = 0; i < HM_COUNT(names); i++) {
		hm_auto_str path = { 0 };

		str_addf(&path, "%s/%s", n->dir, names[i]);
		if (file_mkdirs(str_text(&path), 0755, e) < 0)
			return -e->code;
	}
	if (chdir(n->dir) < 0)
		return hm_err_errno(e, errno, "%s", n->dir);
	return 0;
}

/* Can this user make containers here at all? By making one. */
static int try_container(struct node *n, struct hm_err *e)
{
	char *const argv[] = { (char[]) { "/bin/true" }, NULL }, *const env[] = { NULL };
	hm_auto_str stage = { 0 };
	struct jail j = { .argv = argv, .env = env, .user = -1, .group = -1, .log_fd = STDERR_FILENO };
	pid_t pid;

	str_addf(&stage, "%s/stage", n->dir);
	j.stage = str_text(&stage);
	j.user_namespace = n->user_namespace = geteuid() != 0;
	if (jail_start(&j, &pid, e) < 0)
		return hm_err_wrap(
			e, "cannot make containers here (root, or a kernel that lets users make user namespaces, is "
			   "needed)");
	waitpid(pid, NULL, 0);
	return 0;
}

static int set_up(struct node *n, struct hm_err *e)
{
	struct loop *l = n->loop;

	if (loop_timer_new(l, on_sync, n, &n->sync, e) < 0 || loop_timer_new(l, on_start, n, &n->start, e) < 0 ||
	    loop_timer_new(l, on_listen, n, &n->listen, e) < 0 ||
	    loop_timer_new(l, on_readmit, n, &n->readmit, e) < 0 ||
	    loop_signal_new(l, SIGCHLD, on_child, n, &n->child, e) < 0 ||
	    loop_signal_new(l, SIGTERM, on_term, n, &n->term, e) < 0 ||
	    loop_signal_new(l, SIGINT, on_term, n, &n->interrupt, e) < 0)
		return -e->code;
	n->admission = admission_new(n);
	return control_new(n, e);
}

static void tear_down(struct node *n)
{
	LIST_FOR_EACH (&n->pods, it)
		pod_delete(HM_CONTAINER(it, struct pod, link));
	node_kubelet_stop(n);
	admission_free(n->admission);
	while (!list_empty(&n->pods))
		pod_free(HM_CONTAINER(list_first(&n->pods), struct pod, link));
	control_free(n->control);
	remove_sockets(n->dir);
	loop_signal_free(n->child);
	loop_signal_free(n->term);
	loop_signal_free(n->interrupt);
	loop_timer_free(n->sync);
	loop_timer_free(n->start);
	loop_timer_free(n->listen);
	loop_timer_free(n->readmit);
}

static int absolute(const char *path, struct str *out)
{
	char *cwd;

	if (path[0] == '/') {
		str_add(out, path);
		return 0;
	}
	cwd = getcwd(NULL, 0);
	if (cwd == NULL)
		return -1;
	str_addf(out, "%s/%s", cwd, path);
	free(cwd);
	return 0;
}

static int serve(struct node *n, struct hm_err *e)
{
	int r;

	if (make_folders(n, e) < 0)
		return -e->code;
	if (try_container(n, e) < 0)
		return -HM_EUNSUPPORTED;
	if (loop_new(&n->loop, e) < 0)
		return -e->code;
	r = set_up(n, e);
	if (r == 0) {
		on_start(n);
		r = loop_run(n->loop, e);
	}
	tear_down(n);
	loop_free(n->loop);
	return r;
}

int command_serve(int argc, char **argv)
{
	struct node n = { .cdi_dirs = "",
			  .binds = "",
			  .leave_out = "",
			  .retry_ms = 10000,
			  .pre_start_ms = 30000,
			  .restart_ms = 200,
			  .readmit_ms = 800,
			  .dial_ms = 10000,
			  .list_tokens = 10 };
	const struct option_spec specs[] = {
		{ "dir", NULL, OPTION_TEXT, &n.dir, 0, 0, NULL, "DIR",
		  "where everything is: device-plugins/, pod-resources/, cdi/, logs/" },
		{ "cdi-dirs", NULL, OPTION_TEXT, &n.cdi_dirs, 0, 0, NULL, "DIRS",
		  "folders with CDI specs (default DIR/cdi)" },
		{ "bind", NULL, OPTION_TEXT, &n.binds, 0, 0, NULL, "FROM:TO,...",
		  "files and folders that every container gets" },
		{ "leave-out", NULL, OPTION_TEXT, &n.leave_out, 0, 0, NULL, "PATH",
		  "a container path that is never mounted, as by a runtime that forgets it" },
		{ "retry-ms", NULL, OPTION_U64, &n.retry_ms, 1, 600000, NULL, NULL,
		  "a container's start is tried again after so long" },
		{ "prestart-ms", NULL, OPTION_U64, &n.pre_start_ms, 1, 600000, NULL, NULL,
		  "deadline of PreStartContainer" },
		{ "restart-ms", NULL, OPTION_U64, &n.restart_ms, 0, 600000, NULL, NULL,
		  "a container that ended starts again after so long" },
		{ "readmit-ms", NULL, OPTION_U64, &n.readmit_ms, 0, 600000, NULL, NULL,
		  "after a kubelet's start old pods are looked at after so long" },
		{ "dial-ms", NULL, OPTION_U64, &n.dial_ms, 1, 600000, NULL, NULL,
		  "how long a plugin's socket is dialled" },
	};
	hm_auto_str dir = { 0 }, cdi = { 0 };
	struct hm_err e;
	int operand, r;

	list_init(&n.plugins);
	list_init(&n.pods);
	r = options_parse(specs, HM_COUNT(specs), argc, argv, &operand, &e);
	if (r == OPTIONS_VERSION) {
		puts("hami-simkubelet " HM_VERSION);
		return HM_EXIT_OK;
	}
	if (r == OPTIONS_HELP) {
		options_print_help("hami-simkubelet serve --dir=DIR", specs, HM_COUNT(specs));
		return HM_EXIT_OK;
	}
	if (r == OPTIONS_RUN && n.dir == NULL)
		r = hm_err_set(&e, HM_EINVAL, "--dir is needed");
	if (r != OPTIONS_RUN || absolute(n.dir, &dir) < 0) {
		fprintf(stderr, "hami-simkubelet: %s\n", e.msg);
		return HM_EXIT_USAGE;
	}
	n.dir = str_text(&dir);
	str_addf(&cdi, "%s/cdi", n.dir);
	n.cdi_dirs = n.cdi_dirs[0] != '\0' ? n.cdi_dirs : str_text(&cdi);
	log_set_clock(clock_wall_ms);
	r = serve(&n, &e);
	if (r == 0)
		return HM_EXIT_OK;
	fprintf(stderr, "hami-simkubelet: %s\n", e.msg);
	return r == -HM_EUNSUPPORTED ? HM_EXIT_USAGE : HM_EXIT_FAILED;
}
