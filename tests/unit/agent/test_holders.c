#include "agent/processes/holders.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/processes/pid_owners.h"
#include "harness/mounts.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"

/* A /proc of our own: <pid>/ns/mnt, ns/pid (files whose inode is the namespace's), mountinfo, status, stat. What a
 * process would have at its root is not there: nobody needs it. */
static void make(const char *path)
{
	struct hm_err e;

	if (file_mkdirs(temp_path(path), 0755, &e) < 0)
		fail_msg("%s", e.msg);
}

static ino_t make_process(const char *pid, const char *status_pids, unsigned long long start)
{
	char name[64], text[256];
	struct stat st;

	snprintf(name, sizeof name, "proc/%s/ns", pid);
	make(name);
	for (const char *const *ns = (const char *const[]) { "mnt", "pid", NULL }; *ns != NULL; ns++) {
		snprintf(name, sizeof name, "proc/%s/ns/%s", pid, *ns);
		temp_write(name, "");
	}
	assert_int_equal(stat(temp_path(name), &st), 0);
	snprintf(name, sizeof name, "proc/%s/status", pid);
	snprintf(text, sizeof text, "Name:\tx\nNSpid:%s\nNSpgid:\t9\n", status_pids);
	temp_write(name, text);
	snprintf(name, sizeof name, "proc/%s/stat", pid);
	snprintf(text, sizeof text, "%s (a) b ) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 %llu 20 21\n", pid,
		 start);
	temp_write(name, text);
	return st.st_ino;
}

static struct holders *scan(void)
{
	struct holders *h = NULL;
	struct hm_err e;

	if (holders_scan(temp_path("proc"), &h, &e) < 0)
		fail_msg("%s", e.msg);
	return h;
}

/* Its mounts: the test's file or folder at a path inside. */
static void mount_in(const char *pid, const char *name, const char *at)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof path, "proc/%s/mountinfo", pid);
	f = fopen(temp_path(path), "a");
	assert_non_null(f);
	assert_true(fputs(mounts_line(temp_path(name), at), f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void a_mounted_file_is_found_by_what_it_is(void **state)
{
	(void)state;
	make_process("10", "\t10", 1);
	make_process("self", "\t1", 1);
	make("x");
	temp_write("lib-a", "a");
	temp_write("lib-b", "b");
	assert_int_equal(symlink(temp_path("lib-a"), temp_path("other-name")), 0);
	mount_in("10", "x", "/");
	mount_in("10", "lib-a", "/run/hami-vgpu/libvgpu.so");
	mount_in("10", "lib-b", "/mnt");
	hm_auto(holders) *h = scan();
	assert_true(holders_mounted(h, temp_path("lib-a")));
	assert_true(holders_mounted(h, temp_path("other-name")));
	assert_false(holders_mounted(h, temp_path("lib-b")));
	assert_false(holders_mounted(h, temp_path("none")));
	assert_int_equal(holders_containers(h), 0);
}

/* The kernel writes such names in octal, and says so of what was removed: another file may have its name by now. */
static void names_are_the_kernels(void **state)
{
	hm_auto_str lines = { 0 };
	const char *p;

	(void)state;
	make_process("10", "\t10", 1);
	make("a b\\c");
	make("old");
	for (p = mounts_line(temp_path("a b\\c"), "/run/hami-vgpu/usage"); *p != '\0'; p++) {
		if (strncmp(p, "a b\\c", 5) != 0) {
			str_addc(&lines, *p);
			continue;
		}
		str_add(&lines, "a\\040b\\134c");
		p += 4;
	}
	for (p = mounts_line(temp_path("old"), "/run/hami-vgpu/usage"); *p != '\0'; p++) {
		if (strncmp(p, "/old ", 5) == 0) {
			str_add(&lines, "/old//deleted ");
			p += 4;
			continue;
		}
		str_addc(&lines, *p);
	}
	temp_write("proc/10/mountinfo", str_text(&lines));
	hm_auto(holders) *h = scan();
	assert_true(holders_mounted(h, temp_path("a b\\c")));
	assert_false(holders_mounted(h, temp_path("old")));
	assert_int_equal(holders_containers(h), 2);
}

/* A list that is no list, cut off, or too long: what can be read of it counts, the first mounts always. */
static void a_hostile_list_hides_nobody(void **state)
{
	hm_auto_str lines = { 0 };

	(void)state;
	make_process("10", "\t10", 1);
	make("usage");
	str_add(&lines, mounts_line(temp_path("usage"), "/run/hami-vgpu/usage"));
	while (lines.n < 2000000)
		str_add(&lines, "99 1 0:7 / /a/long/name/of/something/that/was/mounted/often rw - tmpfs x rw\n");
	str_add(&lines, "nonsense\n1 2 3\n");
	temp_write("proc/10/mountinfo", str_text(&lines));
	hm_auto(holders) *h = scan();
	assert_true(holders_mounted(h, temp_path("usage")));
}

static void a_namespace_is_looked_into_once(void **state)
{
	(void)state;
	make_process("10", "\t10", 1);
	make("usage");
	mount_in("10", "usage", "/run/hami-vgpu/usage");
	make("proc/11/ns");
	mount_in("11", "usage", "/run/hami-vgpu/usage");
	assert_int_equal(link(temp_path("proc/10/ns/mnt"), temp_path("proc/11/ns/mnt")), 0);
	hm_auto(holders) *h = scan();
	assert_int_equal(holders_containers(h), 1);
}

/* One that left the root by chroot must not hide the others of its container. */
static void each_root_of_a_namespace_is_looked_into(void **state)
{
	(void)state;
	make_process("10", "\t10", 1);
	make("proc/11/ns");
	assert_int_equal(link(temp_path("proc/10/ns/mnt"), temp_path("proc/11/ns/mnt")), 0);
	assert_int_equal(symlink("/", temp_path("proc/10/root")), 0);
	assert_int_equal(symlink("/some/where", temp_path("proc/11/root")), 0);
	for (const char *const *pid = (const char *const[]) { "10", "11", NULL }; *pid != NULL; pid++) {
		temp_write(*pid, "a library");
		mount_in(*pid, *pid, "/run/hami-vgpu/libvgpu.so");
	}
	hm_auto(holders) *h = scan();
	assert_true(holders_mounted(h, temp_path("10")));
	assert_true(holders_mounted(h, temp_path("11")));
}

/* ---- a container that puts a file system of its own, which never answers, over what we look for */

static void must(bool ok, int step)
{
	if (!ok)
		_exit(step);
}

static _Noreturn void be_container(const char *usage, const char *root, int ready)
{
	char options[128], byte = 0;
	int fuse;

	/* Not in a user namespace of its own: there the kernel keeps others out of it. */
	must(unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, 77);
	must(chdir(root) == 0 && mount(usage, "run/hami-vgpu/usage", NULL, MS_BIND, NULL) == 0, 4);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	must(fuse >= 0, 77);
	snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fuse);
	must(mount("x", "run/hami-vgpu", "fuse", MS_NOSUID | MS_NODEV, options) == 0, 77);
	must(chroot(".") == 0 && write(ready, &byte, 1) == 1, 5);
	alarm(20); /* ends a look that hangs, by ending its file system */
	for (;;)
		pause();
}

static void a_file_system_that_never_answers_holds_nobody_up(void **state)
{
	struct pid_owners *owners = calloc(1, sizeof *owners);
	hm_auto(holders) *h = NULL;
	char usage[512], root[512];
	int ready[2], status;
	struct hm_err e;
	pid_t container;
	bool mounted;
	char byte;

	(void)state;
	make("alloc/7/usage");
	make("root/run/hami-vgpu/usage");
	snprintf(usage, sizeof usage, "%s", temp_path("alloc/7/usage"));
	snprintf(root, sizeof root, "%s", temp_path("root"));
	*owners = (struct pid_owners) { .proc = "/proc", .alloc = temp_path("alloc") };
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	container = fork();
	if (container == 0)
		be_container(usage, root, ready[1]);
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1) {
		assert_int_equal(waitpid(container, &status, 0), container);
		close(ready[0]);
		free(owners);
		assert_int_equal(WEXITSTATUS(status), 77); /* not allowed here */
		skip();
	}
	close(ready[0]);
	assert_int_equal(holders_scan("/proc", &h, &e), 0);
	mounted = holders_mounted(h, usage);
	assert_int_equal(pid_owners_number(owners, (unsigned)container, 1), 7);
	assert_int_equal(pid_owners_number(owners, (unsigned)getpid(), 1), 0);
	assert_int_equal(waitpid(container, &status, WNOHANG), 0);
	kill(container, SIGKILL);
	assert_int_equal(waitpid(container, &status, 0), container);
	pid_owners_fini(owners);
	free(owners);
	assert_true(mounted);
}

static void a_process_is_pid_start_time_and_namespace(void **state)
{
	ino_t ns = make_process("100", "\t100\t7", 555);
	hm_auto(holder_pids) *pids = NULL;
	struct hm_err e;

	(void)state;
	make_process("101", "\t101\t8", 777);
	assert_int_equal(holder_pids_new(temp_path("proc"), &pids, &e), 0);
	const struct {
		struct region_process p;
		bool alive;
	} rows[] = {
		{ { 7, 555, ns, { 0 } }, true },  { { 100, 555, ns, { 0 } }, false }, /* its pid outside */
		{ { 7, 556, ns, { 0 } }, false },                                     /* the pid was used again */
		{ { 8, 777, ns, { 0 } }, false },                                     /* another namespace's */
		{ { 7, 555, 1, { 0 } }, false },                                      /* a namespace that is gone */
	};
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		if (holder_pids_alive(&rows[i].p, pids) != rows[i].alive)
			fail_msg("row %zu", i);
}

/* A region may say anything; answering costs one look at each process, not one for each line of the region. */
static void many_invented_processes_cost_one_look(void **state)
{
	ino_t ns = make_process("100", "\t100\t7", 555);
	const struct region_process real = { 7, 555, ns, { 0 } };
	struct region_process invented = { 8, 1, ns, { 0 } };
	hm_auto(holder_pids) *pids = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(holder_pids_new(temp_path("proc"), &pids, &e), 0);
	assert_false(holder_pids_alive(&invented, pids));
	assert_int_equal(file_remove_tree(temp_path("proc"), &e), 0);
	for (invented.start_time = 2; invented.start_time < 1024; invented.start_time++)
		assert_false(holder_pids_alive(&invented, pids));
	assert_true(holder_pids_alive(&real, pids));
}

static void without_proc_nobody_is_dead(void **state)
{
	const struct region_process p = { 7, 555, 1, { 0 } };
	hm_auto(holder_pids) *pids = NULL;
	struct hm_err e;

	(void)state;
	assert_int_equal(holder_pids_new(temp_path("none"), &pids, &e), 0);
	assert_true(holder_pids_alive(&p, pids));
}

static void the_real_proc_knows_this_process(void **state)
{
	struct region_process p = { .pid = (uint32_t)getpid() };
	hm_auto(holder_pids) *pids = NULL;
	hm_auto_str text = { 0 };
	struct hm_err e;
	struct stat st;
	char *at;

	(void)state;
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	p.pid_namespace = st.st_ino;
	assert_int_equal(file_read("/proc/self/stat", 4096, &text, &e), 0);
	at = strrchr(text.p, ')') + 2;
	for (int field = 3; field < 22; field++)
		at = strchr(at, ' ') + 1;
	assert_int_equal(sscanf(at, "%lu", &p.start_time), 1);
	assert_int_equal(holder_pids_new("/proc", &pids, &e), 0);
	assert_true(holder_pids_alive(&p, pids));
	p.start_time++;
	assert_false(holder_pids_alive(&p, pids));
}

static int scenario(void *arg)
{
	hm_auto(holders) *h = NULL;
	hm_auto(holder_pids) *pids = NULL;
	struct hm_err e;

	(void)arg;
	if (holders_scan(temp_path("proc"), &h, &e) < 0)
		return -1;
	if (holder_pids_new(temp_path("proc"), &pids, &e) < 0)
		return -1;
	return holder_pids_alive(&(struct region_process) { 10, 1, 1, { 0 } }, pids) ? -1 : 0;
}

static void allocation_failures(void **state)
{
	(void)state;
	make_process("10", "\t10", 1);
	make("usage");
	mount_in("10", "usage", "/run/hami-vgpu/usage");
	assert_int_equal(sweep_run(scenario, NULL).leaked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
		TEST(a_mounted_file_is_found_by_what_it_is),
		TEST(names_are_the_kernels),
		TEST(a_hostile_list_hides_nobody),
		TEST(a_namespace_is_looked_into_once),
		TEST(each_root_of_a_namespace_is_looked_into),
		TEST(a_file_system_that_never_answers_holds_nobody_up),
		TEST(a_process_is_pid_start_time_and_namespace),
		TEST(many_invented_processes_cost_one_look),
		TEST(without_proc_nobody_is_dead),
		TEST(the_real_proc_knows_this_process),
		TEST(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
