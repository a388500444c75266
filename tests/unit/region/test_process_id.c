#include "region/process_id.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/macros.h"

/* Fields 3 to 22 of a stat line, `threads` and `start` at 20 and 22. */
#define REST(state, threads, start)                                                                                    \
	" " state " 1 2 3 0 -1 4194560 5 0 0 0 1 2 0 0 20 0 " threads " 0 " start " 1000 200 18446744073709551615\n"

static const struct line {
	const char *text;
	bool good, dead;
	uint64_t start;
} lines[] = {
	{ "12 (cat)" REST("R", "1", "77"), true, false, 77 },
	{ "12 (foo Zed)" REST("S", "1", "78"), true, false, 78 },
	{ "12 () Z 1 (x))" REST("S", "3", "79"), true, false, 79 },
	{ "12 (cat)" REST("Z", "1", "80"), true, true, 80 },
	{ "12 (cat)" REST("X", "0", "80"), true, true, 80 },
	{ "12 (cat)" REST("Z", "4", "81"), true, false, 81 },
	{ "12 (a\n(b)" REST("S", "1", "82"), true, false, 82 },
	{ "", false, false, 0 },
	{ ")", false, false, 0 },
	{ "12 (cat)", false, false, 0 },
	{ "12 (cat) R 1 2 3", false, false, 0 },
	{ "12 (cat)" REST("R", "1", "-7"), false, false, 0 },
	{ "12 (cat)" REST("R", "x", "7"), false, false, 0 },
	{ "12 (cat)" REST("RR", "1", "7"), false, false, 0 },
};

static void parses_stat(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(lines); i++) {
		uint64_t start = 0;
		bool dead = false;
		bool good = process_stat_parse(lines[i].text, strlen(lines[i].text), &start, &dead);

		if (good != lines[i].good || dead != lines[i].dead || start != lines[i].start)
			fail_msg("line %zu: good %d dead %d start %lu", i, good, dead, (unsigned long)start);
	}
}

static const struct {
	const char *text;
	bool good;
	uint64_t pid;
} statuses[] = {
	{ "Name:\tx\nNSpid:\t100\t7\nNSpgid:\t9\n", true, 7 },
	{ "NSpid:\t100\n", true, 100 },
	{ "NSpid:\t1\t2\t3", true, 3 }, /* cut behind the number */
	{ "Name:\tNSpid:\t5\nNSpid:\t6\n", true, 6 },
	{ "Name:\tx\nNSpgid:\t9\n", false, 0 },
	{ "NSpid:\t100\t\n", false, 0 },
	{ "NSpid:\t100\t-7\n", false, 0 },
	{ "NSpid:\t4294967296\n", false, 0 },
	{ "NSpid:", false, 0 },
	{ "", false, 0 },
};

static void parses_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(statuses); i++) {
		uint64_t pid = 0;
		bool good = process_status_inner_pid(statuses[i].text, strlen(statuses[i].text), &pid);

		if (good != statuses[i].good || (good && pid != statuses[i].pid))
			fail_msg("status %zu: good %d pid %lu", i, good, (unsigned long)pid);
	}
}

static void knows_itself(void **state)
{
	struct process_id me;
	struct stat st;

	(void)state;
	errno = 4711;
	me = process_id_self();
	assert_int_equal(errno, 4711);
	assert_int_equal(me.pid, getpid());
	assert_true(me.start_time > 0);
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	assert_int_equal(me.pid_namespace, st.st_ino);
	assert_true(process_id_alive(me.pid, me.start_time));
	assert_false(process_id_alive(me.pid, me.start_time + 1)); /* a reused pid */
}

static void sees_death(void **state)
{
	pid_t child = fork();
	int status;

	(void)state;
	if (child == 0)
		pause();
	assert_true(process_id_alive((uint32_t)child, 0));
	kill(child, SIGKILL);
	for (int i = 0; i < 10000 && process_id_alive((uint32_t)child, 0); i++)
		usleep(1000);
	assert_false(process_id_alive((uint32_t)child, 0)); /* a zombie */
	waitpid(child, &status, 0);
	errno = 4711;
	assert_false(process_id_alive((uint32_t)child, 0));
	assert_int_equal(errno, 4711);
}

static void *stays(void *arg)
{
	pause();
	return arg;
}

/* The main thread of a process may end before the others do: a zombie that lives. */
static void a_process_outlives_its_main_thread(void **state)
{
	pid_t child = fork();
	char path[32], text[512] = "";
	bool zombie = false;

	(void)state;
	if (child == 0) {
		pthread_t t;

		pthread_create(&t, NULL, stays, NULL);
		pthread_exit(NULL);
	}
	snprintf(path, sizeof path, "/proc/%d/stat", child);
	for (int i = 0; i < 10000 && !zombie; i++) {
		FILE *f = fopen(path, "r");

		zombie = fgets(text, sizeof text, f) != NULL && strstr(text, ") Z ") != NULL;
		fclose(f);
		usleep(1000);
	}
	assert_true(zombie);
	assert_true(process_id_alive((uint32_t)child, 0));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_stat),
		cmocka_unit_test(parses_status),
		cmocka_unit_test(knows_itself),
		cmocka_unit_test(sees_death),
		cmocka_unit_test(a_process_outlives_its_main_thread),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
