/* The driver's scans over a fake NVML, in a worker that the test can make wait. */
#include "agent/cards/driver.h"

#include <semaphore.h>
#include <stdlib.h>

#include "gpu/scan.h"
#include "harness/fast_loop.h"
#include "harness/sweep.h"
#include "unit/gpu/fake_setup.h"

struct fixture {
	struct loop *loop;
	struct worker *worker;
	struct driver *driver;
	size_t good, bad, cards, wanted;
	int code; /* of the last scan that failed */
	bool closed;
};

static struct fake *fake;
static bool hold; /* scans wait for `go` */
static sem_t held, go;

int __real_gpu_scan(struct gpu_driver *d, struct inventory **out, struct hm_err *e);
int __wrap_gpu_scan(struct gpu_driver *d, struct inventory **out, struct hm_err *e);

int __wrap_gpu_scan(struct gpu_driver *d, struct inventory **out, struct hm_err *e)
{
	if (__atomic_load_n(&hold, __ATOMIC_ACQUIRE)) {
		sem_post(&held);
		sem_wait(&go);
	}
	return __real_gpu_scan(d, out, e);
}

static void on_scanned(void *arg, const struct inventory *inv, const struct hm_err *e)
{
	struct fixture *f = arg;

	assert_true((inv == NULL) == (e != NULL));
	if (inv != NULL) {
		f->good++;
		f->cards = inv->count;
	} else {
		f->bad++;
		f->code = e->code;
	}
}

static void on_closed(void *arg)
{
	((struct fixture *)arg)->closed = true;
}

static int make(struct fixture *f, const char *library, struct hm_err *e)
{
	const struct driver_listener listener = { on_scanned, f };

	if (loop_new(&f->loop, e) < 0 || worker_new(f->loop, &f->worker, e) < 0)
		return -e->code;
	return driver_new(f->loop, f->worker, &(struct driver_place) { library, NULL }, &listener, &f->driver, e);
}

static bool is_closed(const void *arg)
{
	return ((const struct fixture *)arg)->closed;
}

static void end(struct fixture *f)
{
	if (f->driver != NULL && !f->closed) {
		driver_stop(f->driver, on_closed, f);
		assert_true(fast_until(f->loop, is_closed, f));
	}
	if (f->worker != NULL)
		assert_true(worker_free(f->worker, 5000));
	driver_free(f->driver, true);
	loop_free(f->loop);
	assert_int_equal(fake->inits, 0);
}

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof *f);

	*state = f;
	fast = 5;
	fast_moved_ms = 0;
	fast_forget_log();
	log_set_sink(fast_keep_line, NULL);
	fake_node(fake, 2);
	hold = false;
	return sem_init(&held, 0, 0) | sem_init(&go, 0, 0);
}

static int teardown(void **state)
{
	end(*state);
	test_free(*state);
	log_set_sink(NULL, NULL);
	return 0;
}

static void start(struct fixture *f, const char *library)
{
	struct hm_err e;

	if (make(f, library, &e) < 0)
		fail_msg("%s", e.msg);
}

static bool good_enough(const void *arg)
{
	return ((const struct fixture *)arg)->good >= ((const struct fixture *)arg)->wanted;
}

static bool bad_enough(const void *arg)
{
	return ((const struct fixture *)arg)->bad >= ((const struct fixture *)arg)->wanted;
}

static void wait_good(struct fixture *f, size_t times)
{
	f->wanted = times;
	assert_true(fast_until(f->loop, good_enough, f));
}

static void wait_bad(struct fixture *f, size_t times)
{
	f->wanted = times;
	assert_true(fast_until(f->loop, bad_enough, f));
}

/* ---- */

static void it_scans_again_and_again(void **state)
{
	struct fixture *f = *state;
	uint64_t begun;

	start(f, FAKE_NVML);
	wait_good(f, 1);
	begun = __wrap_loop_now_ms(f->loop);
	assert_int_equal(f->cards, 2);
	fake->count = 5;
	wait_good(f, 2);
	assert_int_equal(f->cards, 5);
	assert_true(__wrap_loop_now_ms(f->loop) - begun >= DRIVER_RESCAN_MS - fast);
	assert_int_equal(fake->inits, 1); /* one nvmlInit for all scans */
	assert_int_equal(fast_said("NVML does not answer"), 0);
	assert_int_equal(f->bad, 0);
}

static void a_missing_library_is_told_each_time(void **state)
{
	struct fixture *f = *state;

	start(f, "/nowhere/libnvidia-ml.so.1");
	wait_bad(f, 2);
	assert_int_equal(f->code, HM_ENOTFOUND);
	assert_int_equal(f->good, 0);
	assert_int_equal(driver_hung_ms(f->driver), 0);
}

/* A reloaded driver fails every call until a new nvmlInit. */
static void a_scan_that_fails_opens_the_driver_anew(void **state)
{
	struct fixture *f = *state;

	start(f, FAKE_NVML);
	wait_good(f, 1);
	fake_fault(fake, "nvmlDeviceGetCount_v2", -1, 1);
	wait_bad(f, 2);
	assert_int_equal(fake->inits, 0);
	memset(fake->faults, 0, sizeof fake->faults);
	wait_good(f, 2);
	assert_int_equal(fake->inits, 1);
}

static void a_hang_is_said_and_ends(void **state)
{
	struct fixture *f = *state;

	__atomic_store_n(&hold, true, __ATOMIC_RELEASE);
	start(f, FAKE_NVML);
	sem_wait(&held);
	assert_int_equal(driver_hung_ms(f->driver), 0);
	fast_run(f->loop, DRIVER_HANG_MS + 500);
	assert_int_equal(fast_said("NVML does not answer"), 1);
	assert_true(driver_hung_ms(f->driver) >= DRIVER_HANG_MS);
	assert_int_equal(f->good + f->bad, 0);
	__atomic_store_n(&hold, false, __ATOMIC_RELEASE);
	sem_post(&go);
	wait_good(f, 1);
	assert_int_equal(fast_said("NVML answers again"), 1);
	assert_int_equal(driver_hung_ms(f->driver), 0);
	fast_run(f->loop, DRIVER_HANG_MS + 500);
	assert_int_equal(fast_said("NVML does not answer"), 1);
}

static void after_stop_nothing_is_told(void **state)
{
	struct fixture *f = *state;

	__atomic_store_n(&hold, true, __ATOMIC_RELEASE);
	start(f, FAKE_NVML);
	sem_wait(&held);
	driver_stop(f->driver, on_closed, f); /* a scan is under way */
	fast_run(f->loop, 200);
	assert_false(f->closed);
	sem_post(&go);
	assert_true(fast_until(f->loop, is_closed, f));
	fast_run(f->loop, DRIVER_RESCAN_MS + DRIVER_RETRY_MS);
	assert_int_equal(f->good + f->bad, 0);
	assert_int_equal(fake->inits, 0);
}

/* Whatever cannot be had once: either it says so at its making, or the cards come all the same. */
static int scenario(void *arg)
{
	struct fixture f = { .wanted = 1 };
	struct hm_err e;
	int r = make(&f, FAKE_NVML, &e);

	(void)arg;
	if (r == 0) {
		assert_true(fast_until(f.loop, good_enough, &f));
		assert_int_equal(f.cards, 2);
	}
	end(&f);
	return r;
}

static void sweep(void **state)
{
	struct sweep_result r;

	(void)state;
	fast = 50; /* nothing here must not happen yet */
	r = sweep_run(scenario, NULL);
	assert_false(r.failed);
	assert_true(r.allocations > 8);
	if (r.leaked > 0)
		fail_msg("%zu blocks leaked when allocation %zu failed", r.leaked, r.leaked_at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(it_scans_again_and_again),
		TEST(a_missing_library_is_told_each_time),
		TEST(a_scan_that_fails_opens_the_driver_anew),
		TEST(a_hang_is_said_and_ends),
		TEST(after_stop_nothing_is_told),
		TEST(sweep),
	};

	fake = fake_load(FAKE_NVML);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
