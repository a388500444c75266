#include "core/check.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/unit.h"

struct thing {
	unsigned magic;
};

/* Runs f in a child; returns how it ended and what it wrote to stderr. */
static int end_of(void (*f)(void), char *out, size_t cap)
{
	int fds[2], status = -1;
	ssize_t n, at = 0;
	pid_t child;

	assert_int_equal(pipe(fds), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		const struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		dup2(fds[1], STDERR_FILENO);
		f();
		_exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], out + at, cap - 1 - (size_t)at)) > 0)
		at += n;
	out[at] = '\0';
	close(fds[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void check_false(void)
{
	CHECK(1 + 1 == 3);
}

static void check_true(void)
{
	struct thing t = { 42 };

	CHECK(1 + 1 == 2);
	CHECK_OBJ(&t, 42);
}

static void check_dead_object(void)
{
	struct thing t = { 0 };

	CHECK_OBJ(&t, 42);
}

static void a_failed_check_says_where_and_aborts(void **state)
{
	char out[256];
	int status = end_of(check_false, out, sizeof out);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(out, "ERROR check failed file="));
	assert_non_null(strstr(out, "test_check.c"));
	assert_non_null(strstr(out, "what=\"1 + 1 == 3\""));
	status = end_of(check_dead_object, out, sizeof out);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void a_good_check_does_nothing(void **state)
{
	char out[256];

	(void)state;
	assert_int_equal(end_of(check_true, out, sizeof out), 0);
	assert_string_equal(out, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_check_says_where_and_aborts),
		cmocka_unit_test(a_good_check_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
