/* When the sampler asks the driver, and when not; and a driver that hangs. */
#include "agent/processes/sampler.h"

#include <semaphore.h>
#include <stdlib.h>

#include "agent/container/container_dir.h"
#include "agent/processes/hami_monitor.h"
#include "agent/processes/sight.h"
#include "base/array.h"
#include "gpu/busy.h"
#include "gpu/scan.h"
#include "harness/fast_loop.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "region/map.h"
#include "unit/agent/checkpoint_text.h"

struct fixture {
	struct loop *loop;
	struct worker *worker;
	struct claims *claims;
	struct sampler *sampler;
	size_t wanted;
};

static struct agent_paths paths;
static bool sees, hold, at_work;
static int answer;
static size_t looks, asked, notes;
static sem_t held, go;

bool __wrap_sight_of_node(const char *proc, const char *kubelet_socket);
struct gpu_driver *__wrap_driver_gpu(const struct driver *d);
bool __wrap_hami_monitor_holds(const struct hami_monitor *m, uint64_t number);
void __wrap_hami_monitor_note_busy(void *monitor, uint64_t number, const char *uuid, uint64_t busy_ns);
int __wrap_gpu_busy_read(struct gpu_driver *d, const char *uuid, uint64_t since_us, struct gpu_busy_list *l,
			 struct hm_err *e);

bool __wrap_sight_of_node(const char *proc, const char *kubelet_socket)
{
	(void)proc, (void)kubelet_socket;
	looks++;
	return sees;
}

/* Not looked into: gpu_busy_read is ours too. */
struct gpu_driver *__wrap_driver_gpu(const struct driver *d)
{
	return (struct gpu_driver *)(uintptr_t)d;
}

bool __wrap_hami_monitor_holds(const struct hami_monitor *m, uint64_t number)
{
	return m != NULL && number == 7;
}

void __wrap_hami_monitor_note_busy(void *monitor, uint64_t number, const char *uuid, uint64_t busy_ns)
{
	assert_non_null(monitor);
	assert_int_equal(number, 7);
	assert_string_equal(uuid, "GPU-0");
	assert_int_equal(busy_ns, 0); /* the process at work is nobody's */
	notes++;
}

int __wrap_gpu_busy_read(struct gpu_driver *d, const char *uuid, uint64_t since_us, struct gpu_busy_list *l,
			 struct hm_err *e)
{
	(void)d, (void)since_us;
	l->count = 0;
	l->until_us = 0;
	if (at_work && array_reserve(&l->items, &l->cap, 1, sizeof *l->items))
		l->items[l->count++] = (struct gpu_busy) { 999, 50 };
	__atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&hold, __ATOMIC_ACQUIRE)) {
		sem_post(&held);
		sem_wait(&go);
	}
	return answer == 0 ? 0 : hm_err_set(e, answer, "GPU %s", uuid);
}

static int setup(void **state)
{
	static char dir[300];
	struct fixture *f = test_calloc(1, sizeof *f);
	struct option_spec table[AGENT_OPTION_COUNT];
	struct agent_options o;
	struct hm_err e;

	if (temp_setup(state) < 0)
		return -1;
	*state = f;
	agent_options_init(&o, table);
	snprintf(dir, sizeof dir, "%s", temp_path("s"));
	o.state_dir = dir;
	sees = true;
	hold = at_work = false;
	answer = 0;
	looks = asked = notes = 0;
	fast = 5;
	fast_moved_ms = 100000;
	fast_forget_log();
	log_set_sink(fast_keep_line, NULL);
	if (agent_paths_init(&paths, &o, &e) < 0 || claims_open(paths.claims.s, &f->claims, &e) < 0 ||
	    loop_new(&f->loop, &e) < 0 || worker_new(f->loop, &f->worker, &e) < 0)
		return -1;
	return sem_init(&held, 0, 0) | sem_init(&go, 0, 0);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->worker != NULL)
		assert_true(worker_free(f->worker, 5000));
	sampler_free(f->sampler);
	claims_free(f->claims);
	loop_free(f->loop);
	test_free(f);
	log_set_sink(NULL, NULL);
	return temp_teardown(state);
}

static void start(struct fixture *f, bool monitored)
{
	const struct sampler_config config = { .proc = "/proc",
					       .paths = &paths,
					       .claims = f->claims,
					       .driver = (const struct driver *)(uintptr_t)1,
					       .monitor = monitored ? (struct hami_monitor *)(uintptr_t)1 : NULL,
					       .worker = f->worker };
	struct hm_err e;

	if (sampler_new(f->loop, &config, &f->sampler, &e) < 0)
		fail_msg("%s", e.msg);
}

static void add_container(struct fixture *f, unsigned cores)
{
	struct claim c = make_claim(7, "u", "", "x", NULL);
	struct hm_err e;

	c.cards[0].cores = cores;
	if (container_dir_write(&paths, &c, false, &e) < 0)
		fail_msg("%s", e.msg);
	put_claim(f->claims, c);
}

/* What stands in the region; good until the next call. */
static const struct region_compute *words(void)
{
	static struct region_compute out;
	struct region_map m;

	assert_int_equal(region_map_file(temp_path("s/alloc/7/usage/region"), &m, NULL), 0);
	memcpy(&out, &m.r->compute[0], sizeof out);
	region_unmap(&m);
	return &out;
}

static void scribble_hold(uint64_t at)
{
	struct region_map m;

	assert_int_equal(region_map_file(temp_path("s/alloc/7/usage/region"), &m, NULL), 0);
	m.r->compute[0].hold_until_ns = at;
	region_unmap(&m);
}

static size_t times_asked(void)
{
	return __atomic_load_n(&asked, __ATOMIC_RELAXED);
}

static bool asked_enough(const void *arg)
{
	return times_asked() >= ((const struct fixture *)arg)->wanted;
}

static void wait_asked(struct fixture *f, size_t more)
{
	f->wanted = times_asked() + more;
	assert_true(fast_until(f->loop, asked_enough, f));
}

/* ---- */

static void it_asks_several_times_a_second(void **state)
{
	struct fixture *f = *state;
	uint64_t begun;

	add_container(f, 25);
	start(f, false);
	wait_asked(f, 1);
	begun = __wrap_loop_now_ms(f->loop);
	wait_asked(f, 5); /* the first of them may be due already */
	assert_true(__wrap_loop_now_ms(f->loop) - begun >= 4 * SAMPLER_IDLE_MS - 10 * fast);
	assert_true(words()->open_until_ns > 0);
	at_work = true;
	wait_asked(f, 2);
	begun = __wrap_loop_now_ms(f->loop);
	wait_asked(f, 11);
	assert_true(__wrap_loop_now_ms(f->loop) - begun >= 10 * SAMPLER_EVERY_MS - 10 * fast);
	assert_int_equal(words()->open_until_ns, 0);
}

static void without_limits_nothing_is_asked(void **state)
{
	struct fixture *f = *state;

	start(f, false);
	fast_run(f->loop, 3 * SAMPLER_REST_MS);
	assert_int_equal(looks, 0);
	add_container(f, 100);
	scribble_hold(5);
	fast_run(f->loop, 3 * SAMPLER_REST_MS);
	assert_int_equal(times_asked(), 0);
	assert_int_equal(words()->hold_until_ns, 5);
}

static void a_container_that_comes_or_goes_is_met(void **state)
{
	struct fixture *f = *state;
	struct hm_err e;
	size_t before;

	start(f, false);
	fast_run(f->loop, 2 * SAMPLER_REST_MS);
	add_container(f, 25);
	wait_asked(f, 3);
	assert_int_equal(claims_remove(f->claims, 7, &e), 0);
	fast_run(f->loop, 3 * SAMPLER_REST_MS);
	before = times_asked();
	fast_run(f->loop, 2 * SAMPLER_REST_MS);
	assert_int_equal(times_asked(), before);
}

static void limits_that_are_lifted_are_taken_back(void **state)
{
	struct fixture *f = *state;
	size_t before;

	add_container(f, 25);
	start(f, false);
	wait_asked(f, 2);
	assert_true(words()->open_until_ns > 0);
	temp_write("s/alloc/7/limits", "hami-vgpu-limits 1\ngpu=GPU-0 memory=1048576 cores=25\npolicy=disable\nend\n");
	fast_run(f->loop, 3 * SAMPLER_REST_MS);
	before = times_asked();
	fast_run(f->loop, 2 * SAMPLER_REST_MS);
	assert_int_equal(times_asked(), before);
	assert_int_equal(words()->open_until_ns, 0);
}

static void who_sees_no_pids_says_so_once(void **state)
{
	struct fixture *f = *state;

	sees = false;
	add_container(f, 25);
	start(f, false);
	fast_run(f->loop, 5 * SAMPLER_REST_MS);
	assert_int_equal(times_asked(), 0);
	assert_int_equal(looks, 1);
	assert_int_equal(fast_said("hostPID"), 1);
	fast_moved_ms += SAMPLER_SIGHT_MS;
	fast_run(f->loop, 3 * SAMPLER_REST_MS);
	assert_int_equal(looks, 2);
	assert_int_equal(fast_said("hostPID"), 1);
	sees = true;
	fast_moved_ms += SAMPLER_SIGHT_MS;
	wait_asked(f, 2);
	assert_int_equal(fast_said("hostPID"), 1);
}

static void a_driver_that_does_not_tell_is_named_once(void **state)
{
	struct fixture *f = *state;

	answer = HM_EUNSUPPORTED;
	add_container(f, 25);
	start(f, false);
	wait_asked(f, 4);
	assert_int_equal(fast_said("uuid=GPU-0"), 1);
	assert_int_equal(words()->open_until_ns, 0);
}

static void what_hamis_monitor_holds_is_held(void **state)
{
	struct fixture *f = *state;

	add_container(f, 25);
	start(f, true);
	wait_asked(f, 2);
	assert_true(words()->hold_until_ns > 0);
}

/* It wants to know of those without a limit too. */
static void hamis_monitor_is_told_who_is_at_work(void **state)
{
	struct fixture *f = *state;

	add_container(f, 100);
	start(f, true);
	at_work = true;
	wait_asked(f, 3);
	assert_true(notes >= 2);
}

/* The loop lives, nothing is asked a second time, and what was written stays what it was: it runs out. */
static void a_hang_holds_up_nobody(void **state)
{
	struct fixture *f = *state;
	uint64_t before;

	add_container(f, 25);
	start(f, false);
	wait_asked(f, 2);
	__atomic_store_n(&hold, true, __ATOMIC_RELEASE);
	wait_asked(f, 1);
	sem_wait(&held);
	before = words()->open_until_ns;
	f->wanted = times_asked();
	fast_run(f->loop, 4 * SAMPLER_REST_MS);
	assert_int_equal(times_asked(), f->wanted);
	assert_int_equal(words()->open_until_ns, before);
	__atomic_store_n(&hold, false, __ATOMIC_RELEASE);
	sem_post(&go);
	wait_asked(f, 3);
}

/* It goes on in what is left of it when the call returns after all. */
static void a_look_that_hangs_at_the_end_is_left_alone(void **state)
{
	static struct sampler *left; /* in sight of the leak check */
	struct fixture *f = *state;

	add_container(f, 25);
	start(f, false);
	__atomic_store_n(&hold, true, __ATOMIC_RELEASE);
	wait_asked(f, 1);
	sem_wait(&held);
	assert_false(worker_free(f->worker, 50));
	left = f->sampler;
	sampler_free(HM_STEAL(f->sampler));
	assert_int_equal(words()->open_until_ns, 0);
	__atomic_store_n(&hold, false, __ATOMIC_RELEASE);
	sem_post(&go);
	assert_true(worker_free(HM_STEAL(f->worker), 5000));
	assert_true(left != NULL && words()->open_until_ns > 0);
}

static int make_one(void *arg)
{
	struct fixture *f = arg;
	const struct sampler_config config = { .paths = &paths, .claims = f->claims, .worker = f->worker };
	struct sampler *s;
	struct hm_err e;

	if (sampler_new(f->loop, &config, &s, &e) < 0)
		return -1;
	sampler_free(s);
	return 0;
}

/* The worker may be at another's job that hangs: a sampler that is not among its jobs is freed all the same. */
static void nothing_is_left_of_one_at_rest(void **state)
{
	sweep_check("sampler", make_one, *state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(it_asks_several_times_a_second),
		TEST(without_limits_nothing_is_asked),
		TEST(a_container_that_comes_or_goes_is_met),
		TEST(limits_that_are_lifted_are_taken_back),
		TEST(who_sees_no_pids_says_so_once),
		TEST(a_driver_that_does_not_tell_is_named_once),
		TEST(what_hamis_monitor_holds_is_held),
		TEST(hamis_monitor_is_told_who_is_at_work),
		TEST(a_hang_holds_up_nobody),
		TEST(a_look_that_hangs_at_the_end_is_left_alone),
		TEST(nothing_is_left_of_one_at_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
