#include "region/slots.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/macros.h"
#include "region/shared.h"

void (*region_step_hook)(void);

static struct region_layout *region;

static int fresh(void **state)
{
	(void)state;
	region = calloc(1, sizeof *region);
	return 0;
}

static int done(void **state)
{
	(void)state;
	free(region);
	return 0;
}

static struct process_id process(uint32_t pid)
{
	return (struct process_id) { .pid = pid, .start_time = 1000 + pid, .pid_namespace = 0xf0000001 };
}

static bool is_pid(const struct region_slot_id *id, void *pid)
{
	return id->pid == *(uint32_t *)pid;
}

static void a_slot_says_whose_it_is(void **state)
{
	const struct process_id me = { .pid = 4194303,
				       .start_time = (UINT64_C(1) << 42) - 1,
				       .pid_namespace = UINT32_MAX };
	struct region_slot_id id;
	struct ledger l;

	(void)state;
	assert_true(slot_claim(region, &me, &l));
	id = slot_id(&region->heads[l.slot]);
	assert_int_equal(id.pid, me.pid);
	assert_int_equal(id.start_time, me.start_time);
	assert_int_equal(id.pid_namespace, me.pid_namespace);
}

static void slots_run_out_and_come_back(void **state)
{
	struct ledger l[REGION_SLOTS], more;
	uint32_t victim = 77;

	(void)state;
	for (uint32_t i = 0; i < REGION_SLOTS; i++) {
		struct process_id p = process(i + 1);

		assert_true(slot_claim(region, &p, &l[i]));
		assert_int_equal(ledger_reserve(&l[i], 0, 1000000, 3), LEDGER_OK);
	}
	assert_false(slot_claim(region, &(struct process_id) { .pid = 5000, .pid_namespace = 1 }, &more));
	assert_int_equal(slot_clear_if(region, is_pid, &victim), 1);
	assert_int_equal(ledger_used(region, 0), 3 * (REGION_SLOTS - 1));
	assert_true(slot_claim(region, &(struct process_id) { .pid = 5000, .pid_namespace = 1 }, &more));
	assert_int_equal(more.slot, l[victim - 1].slot);
	assert_int_equal(ledger_slot_used(region, more.slot, 0), 0);
	assert_int_equal(region->stats.attached, REGION_SLOTS + 1);
	assert_int_equal(region->stats.reaped, 1);
	/* The old owner, should it live after all, is told. */
	assert_int_equal(ledger_reserve(&l[victim - 1], 0, 1000000, 3), LEDGER_LOST);
}

static jmp_buf stopped;
static unsigned steps_left;

static void stop_here(void)
{
	if (steps_left-- == 0)
		longjmp(stopped, 1);
}

/* Killed before its Nth access: whatever stays behind is freed, and the slot serves the next. */
static void a_claim_may_be_killed_anywhere(void **state)
{
	struct process_id dying = process(1024), next = process(2048);
	volatile bool was_stopped = true;

	(void)state;
	for (volatile unsigned n = 0; was_stopped; n++) {
		struct ledger l;
		uint32_t victim = dying.pid;

		steps_left = n;
		region_step_hook = stop_here;
		was_stopped = setjmp(stopped) != 0;
		if (!was_stopped)
			assert_true(slot_claim(region, &dying, &l));
		region_step_hook = NULL;
		slot_clear_if(region, is_pid, &victim);
		assert_true(slot_claim(region, &next, &l));
		assert_int_equal(l.slot, 0);
		victim = next.pid;
		assert_int_equal(slot_clear_if(region, is_pid, &victim), 1);
	}
}

/* A claimant that is thought dead while it is half way starts over elsewhere. */
static void free_it_now(void)
{
	uint32_t victim = 1024;

	if (steps_left-- != 0)
		return;
	region_step_hook = NULL;
	slot_clear_if(region, is_pid, &victim);
}

static void a_living_claimant_survives_a_wrong_reaper(void **state)
{
	struct process_id me = process(1024);

	(void)state;
	for (unsigned n = 0; n < 4; n++) {
		struct ledger l;
		uint32_t victim = me.pid;

		steps_left = n;
		region_step_hook = free_it_now;
		assert_true(slot_claim(region, &me, &l));
		region_step_hook = NULL;
		assert_int_equal(ledger_reserve(&l, 0, 1000, 10), LEDGER_OK);
		assert_int_equal(slot_clear_if(region, is_pid, &victim), 1);
		assert_int_equal(ledger_used(region, 0), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_slot_says_whose_it_is, fresh, done),
		cmocka_unit_test_setup_teardown(slots_run_out_and_come_back, fresh, done),
		cmocka_unit_test_setup_teardown(a_claim_may_be_killed_anywhere, fresh, done),
		cmocka_unit_test_setup_teardown(a_living_claimant_survives_a_wrong_reaper, fresh, done),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
