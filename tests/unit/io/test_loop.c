#include "io/loop.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "harness/sweep.h"
#include "harness/unit.h"

/* What the callbacks of one test share. */
struct world {
	struct loop *loop;
	struct loop_timer *a, *b;
	struct loop_fd *fd, *other;
	struct loop_signal *sig;
	char order[32];
	int calls, events;
	int pipe[2];
};

static struct world w;

static int start(void **state)
{
	struct hm_err e;

	(void)state;
	memset(&w, 0, sizeof w);
	assert_int_equal(pipe(w.pipe), 0);
	return loop_new(&w.loop, &e);
}

static int end(void **state)
{
	(void)state;
	loop_timer_free(w.a);
	loop_timer_free(w.b);
	loop_fd_free(w.fd);
	loop_fd_free(w.other);
	loop_signal_free(w.sig);
	loop_free(w.loop);
	close(w.pipe[0]);
	close(w.pipe[1]);
	return 0;
}

static void turn(uint32_t ms)
{
	struct hm_err e;

	assert_int_equal(loop_run_once(w.loop, ms, &e), 0);
}

static void note(void *arg)
{
	const char *name = arg;

	w.order[w.calls++] = *name;
}

static void note_and_stop(void *arg)
{
	note(arg);
	loop_stop(w.loop);
}

#define LETTER(c) ((void *)(uintptr_t)(c))

static void timers_fire_in_order_and_once(void **state)
{
	struct hm_err e;
	uint64_t before = loop_now_ms(w.loop);

	(void)state;
	assert_int_equal(loop_timer_new(w.loop, note_and_stop, LETTER("b"), &w.b, &e), 0);
	assert_int_equal(loop_timer_new(w.loop, note, LETTER("a"), &w.a, &e), 0);
	loop_timer_arm(w.b, 30);
	loop_timer_arm(w.a, 10);
	assert_int_equal(loop_run(w.loop, &e), 0);
	assert_string_equal(w.order, "ab");
	assert_true(loop_now_ms(w.loop) - before >= 30);
	turn(20);
	assert_int_equal(w.calls, 2);
}

static void a_timer_is_made_disarmed_moves_and_can_be_disarmed(void **state)
{
	struct hm_err e;
	uint64_t before;

	(void)state;
	assert_int_equal(loop_timer_new(w.loop, note_and_stop, LETTER("a"), &w.a, &e), 0);
	assert_int_equal(loop_timer_new(w.loop, note, LETTER("b"), &w.b, &e), 0);
	turn(10);
	assert_int_equal(w.calls, 0);
	loop_timer_arm(w.b, 5);
	loop_timer_disarm(w.b);
	loop_timer_arm(w.a, 1);
	loop_timer_arm(w.a, 40);
	before = loop_now_ms(w.loop);
	assert_int_equal(loop_run(w.loop, &e), 0);
	assert_true(loop_now_ms(w.loop) - before >= 40);
	assert_string_equal(w.order, "a");
}

static void a_timer_of_zero_fires_at_the_next_turn(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_timer_new(w.loop, note, LETTER("a"), &w.a, &e), 0);
	loop_timer_arm(w.a, 0);
	assert_int_equal(w.calls, 0);
	turn(100);
	assert_int_equal(w.calls, 1);
}

static void free_both(void *arg)
{
	note(arg);
	loop_timer_free(HM_STEAL(w.a));
	loop_timer_free(HM_STEAL(w.b));
}

/* Both are due at once; whichever comes first frees itself and the other, which must not fire then. */
static void timers_may_be_freed_inside_a_callback(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_timer_new(w.loop, free_both, LETTER("a"), &w.a, &e), 0);
	assert_int_equal(loop_timer_new(w.loop, free_both, LETTER("b"), &w.b, &e), 0);
	loop_timer_arm(w.a, 1);
	loop_timer_arm(w.b, 1);
	usleep(3000);
	turn(20);
	turn(20);
	assert_int_equal(w.calls, 1);
}

static void on_fd(void *arg, int events)
{
	char c;

	w.calls++;
	w.events |= events;
	if (events & LOOP_READ)
		assert_int_equal(read(w.pipe[0], &c, 1), 1);
	assert_ptr_equal(arg, &w);
}

static void a_readable_descriptor_calls_back_until_it_is_drained(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_fd_new(w.loop, w.pipe[0], LOOP_READ, on_fd, &w, &w.fd, &e), 0);
	turn(5);
	assert_int_equal(w.calls, 0);
	assert_int_equal(write(w.pipe[1], "xy", 2), 2);
	turn(100);
	turn(100);
	assert_int_equal(w.calls, 2);
	assert_int_equal(w.events, LOOP_READ);
	turn(5);
	assert_int_equal(w.calls, 2);
}

static void events_can_be_changed_and_switched_off(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_fd_new(w.loop, w.pipe[1], 0, on_fd, &w, &w.fd, &e), 0);
	turn(5);
	assert_int_equal(w.calls, 0);
	assert_int_equal(loop_fd_set(w.fd, LOOP_WRITE), 0);
	turn(100);
	assert_int_equal(w.events, LOOP_WRITE);
	assert_true(w.calls > 0);
	w.calls = 0;
	assert_int_equal(loop_fd_set(w.fd, 0), 0);
	turn(5);
	assert_int_equal(w.calls, 0);
}

static void free_both_fds(void *arg, int events)
{
	(void)arg, (void)events;
	w.calls++;
	loop_fd_free(HM_STEAL(w.fd));
	loop_fd_free(HM_STEAL(w.other));
}

static void descriptors_may_be_freed_inside_a_callback(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(write(w.pipe[1], "x", 1), 1);
	assert_int_equal(loop_fd_new(w.loop, w.pipe[0], LOOP_READ, free_both_fds, NULL, &w.fd, &e), 0);
	assert_int_equal(loop_fd_new(w.loop, w.pipe[1], LOOP_WRITE, free_both_fds, NULL, &w.other, &e), 0);
	turn(100);
	turn(5);
	assert_int_equal(w.calls, 1);
}

static void set_inside(void *arg, int events)
{
	(void)arg, (void)events;
	w.calls++;
	assert_int_equal(loop_fd_set(w.fd, 0), 0);
}

static void events_may_be_changed_inside_the_callback(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(loop_fd_new(w.loop, w.pipe[1], LOOP_WRITE, set_inside, NULL, &w.fd, &e), 0);
	turn(100);
	turn(5);
	turn(5);
	assert_int_equal(w.calls, 1);
}

static void a_descriptor_that_cannot_be_watched_is_refused(void **state)
{
	struct hm_err e;
	struct loop_fd *f = NULL;

	(void)state;
	assert_int_equal(loop_fd_new(w.loop, 100000, LOOP_READ, on_fd, &w, &f, &e), -HM_EIO);
	assert_null(f);
}

static void free_signal(void *arg)
{
	note(arg);
	loop_signal_free(HM_STEAL(w.sig));
}

static void signals_arrive_in_the_loop(void **state)
{
	struct hm_err e;
	struct sigaction before, after;

	(void)state;
	sigaction(SIGUSR1, NULL, &before);
	assert_int_equal(loop_signal_new(w.loop, SIGUSR1, note, LETTER("s"), &w.sig, &e), 0);
	raise(SIGUSR1);
	assert_int_equal(w.calls, 0);
	turn(100);
	assert_string_equal(w.order, "s");
	loop_signal_free(HM_STEAL(w.sig));
	sigaction(SIGUSR1, NULL, &after);
	assert_ptr_equal(after.sa_handler, before.sa_handler);
	assert_int_equal(loop_signal_new(w.loop, SIGUSR1, free_signal, LETTER("t"), &w.sig, &e), 0);
	raise(SIGUSR1);
	turn(100);
	assert_string_equal(w.order, "st");
	assert_null(w.sig);
}

static void run_once_waits_no_longer_than_it_was_told(void **state)
{
	uint64_t before = loop_now_us(w.loop), took;

	(void)state;
	turn(20);
	took = loop_now_us(w.loop) - before;
	assert_in_range(took, 19000, 2000000);
	before = loop_now_us(w.loop);
	turn(0);
	assert_true(loop_now_us(w.loop) - before < 1000000);
}

/* A wait that ended early leaves no timer behind that would end a later one early too. */
static void an_early_end_does_not_shorten_the_next_wait(void **state)
{
	struct hm_err e;
	uint64_t before;

	(void)state;
	assert_int_equal(loop_timer_new(w.loop, note, LETTER("a"), &w.a, &e), 0);
	for (int i = 0; i < 3; i++) {
		loop_timer_arm(w.a, 1);
		turn(25);
	}
	assert_int_equal(w.calls, 3);
	before = loop_now_ms(w.loop);
	turn(200);
	assert_true(loop_now_ms(w.loop) - before >= 199);
}

static void clocks_run_forward(void **state)
{
	uint64_t a = loop_now_us(w.loop), b = loop_now_ms(w.loop);

	(void)state;
	assert_true(b >= a / 1000);
	assert_true(clock_wall_ms() > 1700000000000u);
}

static void nothing(void *arg)
{
	(void)arg;
}

static void nothing_fd(void *arg, int events)
{
	(void)arg, (void)events;
}

static int all_objects(void *arg)
{
	int *p = arg, r;
	struct hm_err e = { 0 };
	hm_auto(loop) *l = NULL;
	hm_auto(loop_fd) *f = NULL;
	hm_auto(loop_timer) *t = NULL;
	hm_auto(loop_signal) *s = NULL;

	r = loop_new(&l, &e);
	if (r == 0)
		r = loop_fd_new(l, p[0], LOOP_READ, nothing_fd, NULL, &f, &e);
	if (r == 0)
		r = loop_timer_new(l, nothing, NULL, &t, &e);
	if (r == 0)
		r = loop_signal_new(l, SIGUSR2, nothing, NULL, &s, &e);
	assert_int_equal(r == 0, e.code == 0);
	return r;
}

static void survives_every_failed_allocation(void **state)
{
	(void)state;
	sweep_check("loop", all_objects, w.pipe);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(timers_fire_in_order_and_once),
		TEST(a_timer_is_made_disarmed_moves_and_can_be_disarmed),
		TEST(a_timer_of_zero_fires_at_the_next_turn),
		TEST(timers_may_be_freed_inside_a_callback),
		TEST(a_readable_descriptor_calls_back_until_it_is_drained),
		TEST(events_can_be_changed_and_switched_off),
		TEST(descriptors_may_be_freed_inside_a_callback),
		TEST(events_may_be_changed_inside_the_callback),
		TEST(a_descriptor_that_cannot_be_watched_is_refused),
		TEST(signals_arrive_in_the_loop),
		TEST(run_once_waits_no_longer_than_it_was_told),
		TEST(an_early_end_does_not_shorten_the_next_wait),
		TEST(clocks_run_forward),
		TEST(survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
