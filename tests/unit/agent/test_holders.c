#include "agent/holders.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/sweep.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "io/file.h"

/* A /proc of our own: <pid>/ns/mnt, ns/pid (files whose inode is the namespace's), root/, status, stat. */
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
	snprintf(name, sizeof name, "proc/%s/root", pid);
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

/* A hard link stands for a bind mount: the same inode at another path. */
static void a_mounted_file_is_found_by_what_it_is(void **state)
{
	(void)state;
	make_process("10", "\t10", 1);
	make_process("self", "\t1", 1);
	make("proc/10/root/run/hami-vgpu");
	temp_write("lib-a", "a");
	temp_write("lib-b", "b");
	assert_int_equal(link(temp_path("lib-a"), temp_path("proc/10/root/run/hami-vgpu/libvgpu.so")), 0);
	hm_auto(holders) *h = scan();
	assert_true(holders_mounted(h, temp_path("lib-a")));
	assert_false(holders_mounted(h, temp_path("lib-b")));
	assert_false(holders_mounted(h, temp_path("none")));
	assert_int_equal(holders_containers(h), 0);
}

static void a_containers_symbolic_link_cannot_keep_anothers_slot(void **state)
{
	(void)state;
	make_process("10", "\t10", 1);
	make("alloc/7/usage");
	make("proc/10/root/run/hami-vgpu");
	assert_int_equal(symlink(temp_path("alloc/7/usage"), temp_path("proc/10/root/run/hami-vgpu/usage")), 0);
	hm_auto(holders) *h = scan();
	assert_false(holders_mounted(h, temp_path("alloc/7/usage")));
}

static void a_namespace_is_looked_into_once(void **state)
{
	(void)state;
	make_process("10", "\t10", 1);
	make("proc/10/root/run/hami-vgpu/usage");
	make("proc/11/ns");
	assert_int_equal(symlink(temp_path("proc/10/root"), temp_path("proc/11/root")), 0);
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
	for (const char *const *pid = (const char *const[]) { "10", "11", NULL }; *pid != NULL; pid++) {
		char name[64];

		snprintf(name, sizeof name, "proc/%s/root/run/hami-vgpu", *pid);
		make(name);
		temp_write(*pid, "a library");
		snprintf(name, sizeof name, "proc/%s/root/run/hami-vgpu/libvgpu.so", *pid);
		assert_int_equal(link(temp_path(*pid), temp_path(name)), 0);
	}
	hm_auto(holders) *h = scan();
	assert_true(holders_mounted(h, temp_path("10")));
	assert_true(holders_mounted(h, temp_path("11")));
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
	make("proc/10/root/run/hami-vgpu/usage");
	assert_int_equal(sweep_run(scenario, NULL).leaked, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, temp_setup, temp_teardown)
		TEST(a_mounted_file_is_found_by_what_it_is),
		TEST(a_containers_symbolic_link_cannot_keep_anothers_slot),
		TEST(a_namespace_is_looked_into_once),
		TEST(each_root_of_a_namespace_is_looked_into),
		TEST(a_process_is_pid_start_time_and_namespace),
		TEST(many_invented_processes_cost_one_look),
		TEST(without_proc_nobody_is_dead),
		TEST(the_real_proc_knows_this_process),
		TEST(allocation_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
