#include "agent/processes/sweep.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/container/container_dir.h"
#include "harness/temp.h"
#include "harness/unit.h"
#include "region/ledger.h"
#include "region/map.h"
#include "region/process_id.h"
#include "region/region.h"
#include "region/slots.h"
#include "unit/agent/checkpoint_text.h"

enum { BYTES = 5000 };

static struct agent_paths paths;
static struct claims *claims;
static struct loop *loop;
static struct sweep *sweep;

static int setup(void **state)
{
	static char dir[300], proc[300];
	struct option_spec table[AGENT_OPTION_COUNT];
	struct agent_options o;
	struct claim c = make_claim(7, "u", "", "x", NULL);
	struct hm_err e;

	if (temp_setup(state) < 0)
		return -1;
	agent_options_init(&o, table);
	snprintf(dir, sizeof dir, "%s", temp_path("s"));
	snprintf(proc, sizeof proc, "%s", temp_path("proc"));
	o.state_dir = dir;
	c.state = CLAIM_ACTIVE;
	if (agent_paths_init(&paths, &o, &e) < 0 || container_dir_write(&paths, &c, false, &e) < 0 ||
	    claims_open(paths.claims.s, &claims, &e) < 0 || claims_put(claims, &c, &e) < 0 || loop_new(&loop, &e) < 0)
		return -1;
	return sweep_new(loop, proc, &paths, claims, &sweep, &e);
}

static int teardown(void **state)
{
	sweep_free(HM_STEAL(sweep));
	loop_free(HM_STEAL(loop));
	claims_free(HM_STEAL(claims));
	return temp_teardown(state);
}

/* A process that holds BYTES in the container's region until it is killed. */
static pid_t start_member(void)
{
	int ready[2];
	char c;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct region_map m = { 0 };
		struct process_id me = process_id_self();
		struct ledger l = { 0 };

		if (region_map_file(temp_path("s/alloc/7/usage/region"), &m, NULL) < 0 || !slot_claim(m.r, &me, &l) ||
		    ledger_reserve(&l, 0, 1 << 20, BYTES) != LEDGER_OK || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_member(pid_t pid)
{
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void link_to(const char *name, const char *target)
{
	assert_int_equal(symlink(target, temp_path(name)), 0);
}

/* A /proc that has `pid`, seen through links to the real one, and a process of another namespace. */
static void make_proc(pid_t pid, bool others)
{
	char target[64];

	mkdir(temp_path("proc"), 0755);
	mkdir(temp_path("proc/100"), 0755);
	mkdir(temp_path("proc/100/ns"), 0755);
	mkdir(temp_path("proc/self"), 0755);
	mkdir(temp_path("proc/self/ns"), 0755);
	link_to("proc/self/ns/pid", "/proc/self/ns/pid");
	snprintf(target, sizeof target, "/proc/%d/ns/pid", (int)pid);
	link_to("proc/100/ns/pid", target);
	snprintf(target, sizeof target, "/proc/%d/status", (int)pid);
	link_to("proc/100/status", target);
	snprintf(target, sizeof target, "/proc/%d/stat", (int)pid);
	link_to("proc/100/stat", target);
	if (!others)
		return;
	mkdir(temp_path("proc/200"), 0755);
	mkdir(temp_path("proc/200/ns"), 0755);
	temp_write("proc/200/ns/pid", "another namespace");
}

static uint64_t used(void)
{
	struct region_snapshot s = { 0 };
	struct hm_err e;

	if (region_snapshot(temp_path("s/alloc/7/usage/region"), &s, &e) < 0)
		fail_msg("%s", e.msg);
	return s.cards[0].used_bytes;
}

static void the_charge_of_a_killed_process_comes_back(void **state)
{
	pid_t pid = start_member();

	(void)state;
	make_proc(pid, true);
	assert_int_equal(sweep_round(sweep), 0);
	assert_int_equal(used(), BYTES);
	end_member(pid);
	assert_int_equal(sweep_round(sweep), 1);
	assert_int_equal(used(), 0);
}

static void it_runs_by_itself(void **state)
{
	pid_t pid = start_member();
	struct hm_err e;

	(void)state;
	make_proc(pid, true);
	end_member(pid);
	for (uint64_t end = loop_now_ms(loop) + 3 * SWEEP_EVERY_MS; used() > 0 && loop_now_ms(loop) < end;)
		assert_int_equal(loop_run_once(loop, 50, &e), 0);
	assert_int_equal(used(), 0);
}

static void without_a_view_of_containers_nobody_is_dead(void **state)
{
	pid_t pid = start_member();

	(void)state;
	make_proc(pid, false);
	end_member(pid);
	assert_int_equal(sweep_round(sweep), 0);
	assert_int_equal(used(), BYTES);
}

/* A container may hold the region's lock for ever: it costs one wait, not one a second. */
static void a_region_that_resists_is_left_alone_for_a_while(void **state)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	pid_t pid = start_member(), holder;
	int ready[2];
	uint64_t start;
	char c;

	(void)state;
	make_proc(pid, true);
	end_member(pid);
	assert_int_equal(pipe(ready), 0);
	holder = fork();
	if (holder == 0) {
		int fd = open(temp_path("s/alloc/7/usage/region"), O_RDWR);

		if (fcntl(fd, F_SETLK, &lock) < 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(sweep_round(sweep), 0);
	start = loop_now_ms(loop);
	for (int i = 0; i < 20; i++)
		assert_int_equal(sweep_round(sweep), 0);
	assert_true(loop_now_ms(loop) - start < 90); /* region_reap waits 100 ms for the lock */
	end_member(holder);
	for (int i = 0; used() > 0 && i < SWEEP_STUBBORN_ROUNDS + 1; i++)
		sweep_round(sweep);
	assert_int_equal(used(), 0);
	close(ready[0]);
	close(ready[1]);
}

/* A container that invents dead processes each second, and one that kills its workers now and then. */
static void a_region_with_new_dead_each_round_is_looked_at_less_often(void **state)
{
	size_t given_back = 0;

	(void)state;
	make_proc(getpid(), true);
	for (int i = 0; i < 1 + SWEEP_IN_A_ROW + 2 * SWEEP_PAUSE_ROUNDS; i++) {
		end_member(start_member());
		given_back += sweep_round(sweep) > 0;
	}
	assert_int_equal(given_back, SWEEP_IN_A_ROW + 1 + 2);
}

static void a_container_that_loses_a_process_now_and_then_is_served(void **state)
{
	(void)state;
	make_proc(getpid(), true);
	for (int i = 0; i < 3 * SWEEP_IN_A_ROW; i++) {
		end_member(start_member());
		assert_int_equal(sweep_round(sweep), 1);
		assert_int_equal(sweep_round(sweep), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_charge_of_a_killed_process_comes_back, setup, teardown),
		cmocka_unit_test_setup_teardown(it_runs_by_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_view_of_containers_nobody_is_dead, setup, teardown),
		cmocka_unit_test_setup_teardown(a_region_that_resists_is_left_alone_for_a_while, setup, teardown),
		cmocka_unit_test_setup_teardown(a_region_with_new_dead_each_round_is_looked_at_less_often, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_container_that_loses_a_process_now_and_then_is_served, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
