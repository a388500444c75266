/* When cards are looked at and asked, and what becomes of errors of the looking itself. */
#include "agent/cards/card_watch.h"

#include <stdlib.h>

#include "harness/fast_loop.h"
#include "unit/model/make_inventory.h"

struct fixture {
	struct loop *loop;
	struct worker *worker;
	struct card_health *health;
	struct card_watch *watch;
	struct inventory *cards;
};

/* What the driver answers, for the first card; the others are well and have no events. Set while no look is under way,
 * or good at any time. */
static struct {
	int taken; /* a code */
	unsigned xid;
	enum gpu_answer answer;
	bool no_driver;
} tell;
static size_t takes, asks, scans, looks, turns; /* of the first card */

struct gpu_driver *__wrap_driver_gpu(const struct driver *d);
void __wrap_driver_scan_soon(struct driver *d);
int __wrap_gpu_events_take(struct gpu_driver *d, const char *uuid, struct gpu_event *out, size_t cap, size_t *count,
			   struct hm_err *e);
void __wrap_gpu_vitals_read(struct gpu_driver *d, const char *uuid, struct gpu_vitals *out);

struct gpu_driver *__wrap_driver_gpu(const struct driver *d)
{
	return tell.no_driver ? NULL : (struct gpu_driver *)(uintptr_t)d;
}

void __wrap_driver_scan_soon(struct driver *d)
{
	(void)d;
	scans++;
}

static bool is_first(const char *uuid)
{
	return uuid[strlen(uuid) - 1] == '0';
}

int __wrap_gpu_events_take(struct gpu_driver *d, const char *uuid, struct gpu_event *out, size_t cap, size_t *count,
			   struct hm_err *e)
{
	(void)d, (void)cap;
	*count = 0;
	if (!is_first(uuid))
		return 0;
	__atomic_add_fetch(&takes, 1, __ATOMIC_RELAXED);
	if (tell.xid != 0)
		out[(*count)++] = (struct gpu_event) { .kind = GPU_EVENT_XID, .xid = tell.xid, .count = 1 };
	tell.xid = 0;
	return tell.taken == 0 ? 0 : hm_err_set(e, tell.taken, "nvmlEventSetWait");
}

void __wrap_gpu_vitals_read(struct gpu_driver *d, const char *uuid, struct gpu_vitals *out)
{
	(void)d;
	*out = (struct gpu_vitals) { .action = GPU_ACTION_UNKNOWN };
	if (!is_first(uuid))
		return;
	out->answer = tell.answer;
	__atomic_add_fetch(&asks, 1, __ATOMIC_RELAXED);
}

static void on_turned(void *arg, const struct card_state *s)
{
	(void)arg, (void)s;
	turns++;
}

static void on_looked(void *arg)
{
	(void)arg;
	looks++;
}

static int setup(void **state)
{
	const struct card_listener listener = { on_turned, on_turned, NULL };
	struct fixture *f = test_calloc(1, sizeof *f);
	struct card_watch_config config = { .driver = (struct driver *)f, .looked = on_looked };
	struct health_policy policy;
	struct hm_err e;

	*state = f;
	memset(&tell, 0, sizeof tell);
	takes = asks = scans = looks = turns = 0;
	fast = 20;
	fast_moved_ms = 100000;
	fast_forget_log();
	log_set_sink(fast_keep_line, NULL);
	health_policy_init(&policy, NULL, NULL, NULL, NULL);
	f->cards = make_inventory(2, 1000);
	if (loop_new(&f->loop, &e) < 0 || worker_new(f->loop, &f->worker, &e) < 0 ||
	    card_health_new(&policy, 3000, &listener, &f->health, &e) < 0)
		return -1;
	config.worker = f->worker;
	config.health = f->health;
	card_health_scanned(f->health, f->cards, (struct card_now) { 1, 1 });
	return card_watch_new(f->loop, &config, &f->watch, &e);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_true(worker_free(f->worker, 5000));
	card_watch_free(f->watch);
	card_health_free(f->health);
	inventory_free(f->cards);
	loop_free(f->loop);
	test_free(f);
	log_set_sink(NULL, NULL);
	return 0;
}

static void run_until_looks(struct fixture *f, size_t count)
{
	struct hm_err e;

	for (unsigned i = 0; i < 2000 && looks < count; i++)
		assert_int_equal(loop_run_once(f->loop, 10, &e), 0);
	assert_true(looks >= count);
}

static bool is_sick(const struct fixture *f)
{
	return card_health_is_sick(f->health, f->cards->cards[0].uuid);
}

static void a_card_is_asked_now_and_then_and_when_something_comes(void **state)
{
	struct fixture *f = *state;

	run_until_looks(f, 4);
	assert_int_equal(takes, 4);
	assert_int_equal(asks, 2);
	tell.xid = 74;
	run_until_looks(f, 5);
	assert_true(is_sick(f));
	assert_int_equal(turns, 1);
	tell.xid = 31;
	run_until_looks(f, 6);
	assert_int_equal(asks, 4);
	assert_int_equal(fast_said("xid=74"), 1);
	/* 3 s, in looks of half a second, and it is asked with each second one. */
	run_until_looks(f, 30);
	assert_false(is_sick(f));
}

/* 11.27 of the reference: an error of the waiting neither spins nor takes the other cards along. */
static void events_that_fail_are_tried_less_and_less_often(void **state)
{
	struct fixture *f = *state;

	tell.taken = HM_EIO;
	run_until_looks(f, 40); /* 20 s: after 1, 2, 4, 8 s */
	assert_in_range(takes, 4, 6);
	assert_int_equal(fast_said("cannot be had"), 1);
	assert_false(is_sick(f));
	tell.taken = 0;
	fast_moved_ms += 60000;
	run_until_looks(f, 44);
	assert_in_range(takes, 6, 10);
}

static void a_driver_that_is_gone_is_scanned_for(void **state)
{
	struct fixture *f = *state;

	tell.answer = GPU_DRIVER_GONE;
	run_until_looks(f, 2);
	assert_true(scans > 0);
	assert_false(is_sick(f));
	tell.no_driver = true;
	run_until_looks(f, 3);
	takes = 0;
	run_until_looks(f, 6);
	assert_int_equal(takes, 0);
}

static void a_storm_of_errors_is_not_a_storm_of_lines(void **state)
{
	struct fixture *f = *state;

	for (unsigned i = 0; i < 50; i++) {
		tell.xid = 31;
		run_until_looks(f, i + 1);
	}
	assert_in_range(fast_said("xid=31"), 15, 30);
	assert_int_equal(card_health_at(f->health, 0)->xids[0].count, 50);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_card_is_asked_now_and_then_and_when_something_comes),
		TEST(events_that_fail_are_tried_less_and_less_often),
		TEST(a_driver_that_is_gone_is_scanned_for),
		TEST(a_storm_of_errors_is_not_a_storm_of_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
