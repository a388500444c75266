/* Launches that overlap, over a driver and a ledger that the test is: what the driver has taken for graphs must be
 * covered by charges at every moment, and the charges stay within the limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "vgpu/booking.h"
#include "vgpu/graph_memory.h"
#include "vgpu/hooks.h"

struct vgpu_real vgpu_real;

static struct vgpu state;
static uint64_t limit, charged, over, reserved, used;
static uint64_t dead; /* of `charged`: of a process that is gone */

struct vgpu_card *vgpu_card_of(struct vgpu *v, CUdevice device)
{
	return &v->cards[device];
}

bool vgpu_try_charge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	assert_ptr_equal(card, &v->cards[0]);
	if (charged + bytes > limit)
		return false;
	charged += bytes;
	return true;
}

bool booking_charge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	charged -= dead;
	if (dead > 0)
		used = 0; /* and another thread has freed its memory meanwhile */
	dead = 0;
	return vgpu_try_charge(v, card, bytes);
}

void vgpu_charge_taken(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	if (!vgpu_try_charge(v, card, bytes)) {
		over += bytes;
		charged += bytes;
	}
}

void vgpu_uncharge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	assert_ptr_equal(card, &v->cards[0]);
	assert_true(bytes <= charged);
	charged -= bytes;
}

static CUresult attribute(CUdevice device, CUgraphMem_attribute which, void *out)
{
	assert_int_equal(device, 0);
	*(cuuint64_t *)out = which == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? used : reserved;
	return CUDA_SUCCESS;
}

/* What a launch does: has `peak` in use beyond what is, and leaves `live`. */
static void take(uint64_t peak, uint64_t live)
{
	if (used + peak > reserved)
		reserved = used + peak;
	used += live;
	assert_true(reserved <= charged);
}

static void trim(void)
{
	graph_memory_trim(&state, true);
	reserved = used;
	graph_memory_trim(&state, false);
	graph_memory_refresh(&state, 0);
}

static int set_up(void **s)
{
	(void)s;
	memset(&state, 0, sizeof state);
	state.graph_devices = 1;
	vgpu_real.cuDeviceGetGraphMemAttribute = attribute;
	limit = 64;
	charged = over = reserved = used = dead = 0;
	return 0;
}

static int nothing_over(void **s)
{
	(void)s;
	assert_int_equal(over, 0);
	assert_int_equal(state.graphs[0].flights, 0);
	assert_int_equal(state.graphs[0].needed, 0);
	assert_int_equal(state.graphs[0].promised, 0);
	assert_int_equal(charged, reserved);
	return 0;
}

static bool open(struct graph_flight *f, uint64_t need)
{
	return graph_memory_open(&state, 0, need, 0, f);
}

static struct graph_seen close(struct graph_flight *f)
{
	struct graph_seen seen;

	return graph_memory_close(&state, f, &seen) ? seen : (struct graph_seen) { 0, 0 };
}

static void one_launch(void **s)
{
	struct graph_flight f;

	(void)s;
	assert_true(open(&f, 40));
	assert_int_equal(charged, 40);
	take(30, 0);
	assert_int_equal(close(&f).bytes, 30);
	assert_int_equal(charged, 30);
	assert_true(open(&f, 40)); /* 30 are free */
	assert_int_equal(charged, 40);
	close(&f); /* it failed */
	assert_int_equal(charged, 30);
	assert_false(open(&f, 70));
	assert_int_equal(charged, 30);
}

static void two_count_on_the_same_free_memory(void **s)
{
	struct graph_flight a, b;

	(void)s;
	assert_true(open(&a, 40));
	take(40, 0);
	close(&a);
	assert_true(open(&a, 40));
	assert_int_equal(charged, 40);
	assert_false(open(&b, 40)); /* the 40 that are free are another's */
	take(40, 0);
	close(&a);
	assert_true(open(&b, 40)); /* and now they are not */
	take(40, 0);
	close(&b);
	limit = 100;
	assert_true(open(&a, 40));
	assert_true(open(&b, 40));
	assert_int_equal(charged, 80);
	take(40, 40);
	take(40, 40);
	close(&b);
	assert_int_equal(charged, 80);
	close(&a);
	assert_int_equal(charged, 80);
}

static void trimmed_under_a_launch(void **s)
{
	struct graph_flight a;

	(void)s;
	assert_true(open(&a, 40));
	take(40, 0);
	close(&a);
	assert_true(open(&a, 40));
	trim();
	assert_int_equal(charged, 40); /* what it counted on is kept for it */
	assert_false(vgpu_try_charge(&state, &state.cards[0], 30));
	take(40, 0);
	close(&a);
	assert_int_equal(charged, 40);
	trim();
	assert_int_equal(charged, 0);
}

static void another_sees_the_growth_first(void **s)
{
	struct graph_flight a, b;

	(void)s;
	assert_true(open(&a, 30));
	assert_true(open(&b, 30));
	take(30, 30);
	graph_memory_refresh_all(&state);
	assert_int_equal(charged, 60);
	take(30, 30);
	close(&a);
	assert_int_equal(charged, 60);
	close(&b);
	assert_int_equal(charged, 60);
}

/* AUTO_FREE_ON_LAUNCH: it finds again what it left, unless something came between. */
static void the_same_launch_again(void **s)
{
	struct graph_flight f, other;
	struct graph_seen seen;

	(void)s;
	assert_true(open(&f, 40));
	take(40, 40);
	seen = close(&f);
	assert_int_equal(seen.bytes, 40);
	for (int i = 0; i < 3; i++) {
		assert_true(graph_memory_open(&state, 0, 40, seen.epoch, &f));
		assert_int_equal(charged, 40);
		seen = close(&f);
	}
	assert_true(open(&other, 20));
	take(20, 20);
	close(&other);
	assert_false(graph_memory_open(&state, 0, 40, seen.epoch, &f));
	used = reserved = 0;
	trim();
}

static void overlapping_launches_teach_nothing(void **s)
{
	struct graph_flight a, b;

	(void)s;
	assert_true(open(&a, 10));
	assert_true(open(&b, 10));
	take(10, 10);
	take(10, 0);
	assert_int_equal(close(&b).epoch, 0);
	assert_int_equal(close(&a).epoch, 0);
	assert_true(open(&a, 10));
	trim();
	assert_int_equal(close(&a).epoch, 0);
}

/* What the launch had is gone when it is asked for: the trim begins before or after it, ends before or after that. */
static void trims_hide_what_a_launch_took(void **s)
{
	struct graph_flight f;

	(void)s;
	assert_true(open(&f, 10));
	take(10, 10);
	close(&f);
	for (int order = 0; order < 4; order++) {
		bool before = order & 1, ended = order & 2;

		if (before)
			graph_memory_trim(&state, true);
		assert_true(open(&f, 40));
		take(40, 0);
		if (!before)
			graph_memory_trim(&state, true);
		reserved = used;
		if (ended)
			graph_memory_trim(&state, false);
		assert_int_equal(close(&f).bytes, 0);
		if (!ended)
			graph_memory_trim(&state, false);
		graph_memory_refresh(&state, 0);
	}
	assert_true(open(&f, 40));
	take(40, 0);
	assert_int_equal(close(&f).bytes, 50);
}

static void a_dead_process_makes_room(void **s)
{
	struct graph_flight f;

	(void)s;
	assert_true(open(&f, 24));
	take(24, 24);
	close(&f);
	dead = 40;
	charged += dead;
	assert_true(open(&f, 30));
	assert_int_equal(charged, 30); /* 24 are free by now */
	take(30, 0);
	close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, nothing_over)
		TEST(one_launch),
		TEST(two_count_on_the_same_free_memory),
		TEST(trimmed_under_a_launch),
		TEST(another_sees_the_growth_first),
		TEST(the_same_launch_again),
		TEST(overlapping_launches_teach_nothing),
		TEST(trims_hide_what_a_launch_took),
		TEST(a_dead_process_makes_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
