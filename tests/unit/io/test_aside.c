#include "io/aside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/unit.h"

enum { MANY = 200000 }; /* more than a pipe holds */

pid_t __real_fork(void);
pid_t __wrap_fork(void);

static bool fork_fails;

pid_t __wrap_fork(void)
{
	if (!fork_fails)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

static struct world {
	struct loop *loop;
	unsigned done;
	size_t got;
	uint8_t first, last;
} w;

static void on_done(void *arg, const uint8_t *bytes, size_t n)
{
	assert_ptr_equal(arg, &w);
	w.done++;
	w.got = n;
	if (n > 0) {
		w.first = bytes[0];
		w.last = bytes[n - 1];
	}
	loop_stop(w.loop);
}

static struct aside *start(void (*work)(void *arg, uint8_t *out, size_t n), size_t n)
{
	const struct aside_work a = { work, on_done, &w };
	struct aside *out;
	struct hm_err e;

	assert_int_equal(aside_start(w.loop, &a, n, &out, &e), 0);
	return out;
}

static void begin(void)
{
	w = (struct world) { 0 };
	assert_int_equal(loop_new(&w.loop, NULL), 0);
}

static void end(void)
{
	loop_free(w.loop);
	errno = 0;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no child is left, not even a dead one */
	assert_int_equal(errno, ECHILD);
}

static void fill(void *arg, uint8_t *out, size_t n)
{
	struct world *mine = arg;

	mine->done = 1000; /* in a memory of its own */
	memset(out, 7, n);
	out[n - 1] = 9;
}

static void what_the_child_wrote_comes_back(void **state)
{
	static const size_t sizes[] = { 1, 3, 2000, MANY };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(sizes); i++) {
		begin();
		start(fill, sizes[i]);
		assert_int_equal(loop_run(w.loop, NULL), 0);
		assert_int_equal(w.done, 1);
		assert_int_equal(w.got, sizes[i]);
		assert_int_equal(w.first, sizes[i] > 1 ? 7 : 9);
		assert_int_equal(w.last, 9);
		end();
	}
}

static void die(void *arg, uint8_t *out, size_t n)
{
	(void)arg;
	memset(out, 1, n);
	kill(getpid(), SIGKILL);
}

static void a_child_that_dies_says_nothing(void **state)
{
	(void)state;
	begin();
	start(die, 10);
	assert_int_equal(loop_run(w.loop, NULL), 0);
	assert_int_equal(w.done, 1);
	assert_int_equal(w.got, 0);
	end();
}

static void hang(void *arg, uint8_t *out, size_t n)
{
	(void)arg;
	(void)out;
	(void)n;
	for (;;)
		pause();
}

static void freed_before_its_end(void **state)
{
	(void)state;
	begin();
	aside_free(start(hang, 10));
	assert_int_equal(w.done, 0);
	end();
}

static void on_signal(int signo)
{
	(void)signo;
}

static int open_fd;

static void look(void *arg, uint8_t *out, size_t n)
{
	struct sigaction now;
	sigset_t blocked;

	(void)arg;
	(void)n;
	sigaction(SIGTERM, NULL, &now);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	out[0] = now.sa_handler == SIG_DFL;
	out[1] = fcntl(open_fd, F_GETFD) < 0;
	out[2] = !sigismember(&blocked, SIGTERM);
}

static void nothing_of_the_parents_is_kept_open(void **state)
{
	(void)state;
	begin();
	open_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	signal(SIGTERM, on_signal);
	start(look, 3);
	assert_int_equal(loop_run(w.loop, NULL), 0);
	signal(SIGTERM, SIG_DFL);
	close(open_fd);
	assert_int_equal(w.got, 3);
	assert_int_equal(w.first, 1);
	assert_int_equal(w.last, 1);
	end();
}

static void without_a_child(void **state)
{
	const struct aside_work a = { fill, on_done, &w };
	struct aside *out;
	struct hm_err e;

	(void)state;
	begin();
	fork_fails = true;
	assert_int_equal(aside_start(w.loop, &a, 3, &out, &e), -HM_EIO);
	fork_fails = false;
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_the_child_wrote_comes_back),
		cmocka_unit_test(a_child_that_dies_says_nothing),
		cmocka_unit_test(freed_before_its_end),
		cmocka_unit_test(nothing_of_the_parents_is_kept_open),
		cmocka_unit_test(without_a_child),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
