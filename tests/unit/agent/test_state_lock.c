#include "agent/claims/state_lock.h"

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "harness/temp.h"
#include "harness/unit.h"

static void quiet(const char *line, size_t n, void *arg)
{
	(void)line, (void)n, (void)arg;
}

static void one_at_a_time_and_free_again_with_the_process(void **state)
{
	char want[512];
	struct hm_err e;
	int fd = -1, second = -1, status;
	pid_t child;

	(void)state;
	log_set_sink(quiet, NULL);
	assert_int_equal(state_lock(temp_path("s"), 0, &fd, &e), 0);
	assert_int_equal(state_lock(temp_path("s"), 100, &second, &e), -HM_EEXIST);
	snprintf(want, sizeof want,
		 "another hami-device-plugin runs with the state folder %s: end it, or use another --state-dir",
		 temp_path("s"));
	assert_string_equal(e.msg, want);
	close(fd);
	child = fork();
	if (child == 0)
		_exit(state_lock(temp_path("s"), 0, &fd, &e) == 0 ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(state_lock(temp_path("s"), 0, &fd, &e), 0);
	close(fd);
	log_set_sink(NULL, NULL);
}

static void asked_to_end_while_it_waits(void **state)
{
	struct hm_err e;
	int fd = -1, status = -1;
	pid_t child;

	(void)state;
	log_set_sink(quiet, NULL);
	assert_int_equal(state_lock(temp_path("s"), 0, &fd, &e), 0);
	child = fork();
	if (child == 0) {
		sigset_t ending;
		int mine;

		state_lock_signals(&ending);
		sigprocmask(SIG_BLOCK, &ending, NULL);
		kill(getpid(), SIGTERM);
		_exit(state_lock(temp_path("s"), 5000, &mine, &e) == 1 ? 7 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	close(fd);
	log_set_sink(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_at_a_time_and_free_again_with_the_process, temp_setup,
						temp_teardown),
		cmocka_unit_test_setup_teardown(asked_to_end_while_it_waits, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
