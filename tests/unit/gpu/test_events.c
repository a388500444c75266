#include "gpu/events.h"

#include "abi/nvml.h"
#include "core/macros.h"
#include "gpu/scan.h"
#include "harness/unit.h"
#include "unit/gpu/fake_setup.h"

enum { CAP = 4 };

static struct fake *fake;
static struct gpu_driver *gpu;
static struct gpu_event events[CAP];
static size_t count;

static int setup(void **state)
{
	struct hm_err e;

	(void)state;
	fake = fake_load(FAKE_NVML);
	fake_node(fake, 3);
	return gpu_driver_open(FAKE_NVML, &gpu, &e);
}

static int teardown(void **state)
{
	(void)state;
	gpu_driver_close(HM_STEAL(gpu));
	return fake->event_sets;
}

static int take(unsigned card)
{
	struct hm_err e;

	return gpu_events_take(gpu, fake->cards[card].uuid, events, CAP, &count, &e);
}

static void post(unsigned card, unsigned long long type, unsigned long long data, unsigned gpu_instance)
{
	struct fake_card *c = &fake->cards[card];

	c->events[c->event_count].type = type;
	c->events[c->event_count].data = data;
	c->events[c->event_count].gpu_instance = gpu_instance;
	c->events[c->event_count].compute_instance = gpu_instance;
	c->event_count++;
}

static void events_are_each_cards_own(void **state)
{
	(void)state;
	post(0, NVML_EVENT_XID_CRITICAL, 31, NVML_NO_INSTANCE);
	post(0, NVML_EVENT_XID_CRITICAL, 79, 3);
	post(0, NVML_EVENT_XID_CRITICAL, 31, NVML_NO_INSTANCE);
	post(0, NVML_EVENT_DOUBLE_BIT_ECC, 0, NVML_NO_INSTANCE);
	post(0, NVML_EVENT_SINGLE_BIT_ECC, 0, NVML_NO_INSTANCE);
	assert_int_equal(take(1), 0);
	assert_int_equal(count, 0);
	assert_int_equal(take(0), 0);
	assert_int_equal(count, 3);
	assert_int_equal(events[0].xid, 31);
	assert_int_equal(events[0].count, 2);
	assert_int_equal(events[0].gpu_instance, NVML_NO_INSTANCE);
	assert_int_equal(events[1].xid, 79);
	assert_int_equal(events[1].gpu_instance, 3);
	assert_int_equal(events[2].kind, GPU_EVENT_DOUBLE_BIT);
	assert_int_equal(take(0), 0);
	assert_int_equal(count, 0);
	assert_int_equal(fake->event_sets, 2);
}

static void more_kinds_than_room(void **state)
{
	(void)state;
	for (unsigned i = 0; i < FAKE_EVENTS; i++)
		post(2, NVML_EVENT_XID_CRITICAL, 100 + i, NVML_NO_INSTANCE);
	for (unsigned seen = 0; seen < FAKE_EVENTS; seen += (unsigned)count) {
		assert_int_equal(take(2), 0);
		assert_int_equal(count, HM_MIN((unsigned)CAP, FAKE_EVENTS - seen));
		assert_int_equal(events[count - 1].xid, 99 + seen + count);
	}
	assert_int_equal(take(2), 0);
	assert_int_equal(count, 0);
}

static void a_card_without_events_is_not_asked_again(void **state)
{
	(void)state;
	fake->cards[0].event_types = NVML_EVENT_SINGLE_BIT_ECC;
	fake_fault(fake, "nvmlDeviceRegisterEvents", 1, NVML_ERROR_NOT_SUPPORTED);
	fake_fault(fake, "nvmlDeviceGetSupportedEventTypes", 2, NVML_ERROR_NOT_SUPPORTED);
	for (unsigned card = 0; card < 3; card++)
		assert_int_equal(take(card), -HM_EUNSUPPORTED);
	fake_node(fake, 3);
	for (unsigned card = 0; card < 3; card++)
		assert_int_equal(take(card), -HM_EUNSUPPORTED);
	assert_int_equal(fake->event_waits, 0);
	assert_int_equal(fake->event_sets, 0);
}

/* 11.27 of the reference: one card's error is not the others', and is not for ever. */
static void an_error_is_the_cards_and_registers_it_anew(void **state)
{
	(void)state;
	assert_int_equal(take(0), 0);
	assert_int_equal(take(1), 0);
	fake_fault(fake, "nvmlEventSetWait_v2", 0, NVML_ERROR_GPU_IS_LOST);
	assert_int_equal(take(0), -HM_EIO);
	assert_int_equal(take(1), 0);
	assert_int_equal(fake->event_sets, 1);
	fake->faults[0].call = NULL;
	post(0, NVML_EVENT_XID_CRITICAL, 48, NVML_NO_INSTANCE);
	assert_int_equal(take(0), 0);
	assert_int_equal(count, 1);
	assert_int_equal(fake->event_sets, 2);
}

static void what_cannot_be_registered_leaves_nothing(void **state)
{
	static const char *const calls[] = { "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetSupportedEventTypes",
					     "nvmlEventSetCreate", "nvmlDeviceRegisterEvents" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(calls); i++) {
		fake_node(fake, 3);
		fake_fault(fake, calls[i], -1, NVML_ERROR_UNKNOWN);
		assert_int_equal(take(0), -HM_EIO);
		assert_int_equal(fake->event_sets, 0);
		assert_int_equal(count, 0);
	}
}

static void a_released_card_is_registered_by_the_next_take(void **state)
{
	(void)state;
	assert_int_equal(take(0), 0);
	assert_int_equal(take(1), 0);
	gpu_events_release(gpu, fake->cards[0].uuid);
	gpu_events_release(gpu, "GPU-none");
	assert_int_equal(fake->event_sets, 1);
	post(0, NVML_EVENT_XID_CRITICAL, 31, NVML_NO_INSTANCE);
	assert_int_equal(take(0), 0);
	assert_int_equal(count, 1);
	assert_int_equal(fake->event_sets, 2);
}

static void an_old_library_has_none(void **state)
{
	struct gpu_driver *old = NULL;
	struct fake *fake_old = fake_load(FAKE_NVML_OLD);
	struct hm_err e;

	(void)state;
	fake_node(fake_old, 1);
	assert_int_equal(gpu_driver_open(FAKE_NVML_OLD, &old, &e), 0);
	assert_int_equal(gpu_events_take(old, fake_old->cards[0].uuid, events, CAP, &count, &e), -HM_EUNSUPPORTED);
	gpu_driver_close(old);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(events_are_each_cards_own),
		TEST(more_kinds_than_room),
		TEST(a_card_without_events_is_not_asked_again),
		TEST(an_error_is_the_cards_and_registers_it_anew),
		TEST(what_cannot_be_registered_leaves_nothing),
		TEST(a_released_card_is_registered_by_the_next_take),
		TEST(an_old_library_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
