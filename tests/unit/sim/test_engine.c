/* The ledger and the engine on a state of the test's own: no daemon, no time but what is passed in. */
#include "sim/lib/engine.h"

#include <string.h>
#include <sys/mman.h>

#include "core/macros.h"
#include "harness/unit.h"

#define MS 1000000ULL
#define TOTAL 1000ULL
#define RESERVED 100ULL

static struct sim_node *node;
static struct sim_card *card;

static int setup(void **state)
{
	(void)state;
	node = mmap(NULL, sizeof *node, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_ptr_not_equal(node, MAP_FAILED);
	node->card_count = 1;
	node->clock = SIM_CLOCK_VIRTUAL;
	card = &node->cards[0];
	card->info.memory_bytes = TOTAL;
	card->info.reserved_bytes = RESERVED;
	card->epoch = 1;
	card->used_bytes = card->peak_bytes = RESERVED;
	card->current = SIM_MAX_PROCESSES - 1;
	for (unsigned i = 0; i < SIM_MAX_PROCESSES; i++)
		node->processes[i].pid = 1000 + i;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return munmap(node, sizeof *node);
}

static uint64_t done(unsigned process)
{
	return card->shares[process].done_ns;
}

/* ---- Ledger */

static void charges_stop_at_the_card(void **state)
{
	(void)state;
	assert_int_equal(sim_ledger_charge(card, 0, SIM_MEM_DATA, 900), SIM_OK);
	assert_int_equal(sim_ledger_charge(card, 1, SIM_MEM_CONTEXT, 1), SIM_NO_MEMORY);
	assert_int_equal(sim_ledger_charge(card, 1, SIM_MEM_DATA, UINT64_MAX), SIM_NO_MEMORY);
	assert_int_equal(card->used_bytes, TOTAL);
	assert_int_equal(sim_ledger_release(card, 0, SIM_MEM_DATA, 901), SIM_NOT_FOUND);
	assert_int_equal(sim_ledger_release(card, 1, SIM_MEM_DATA, 1), SIM_NOT_FOUND);
	assert_int_equal(sim_ledger_release(card, 0, SIM_MEM_DATA, 300), SIM_OK);
	assert_int_equal(sim_ledger_charge(card, 1, SIM_MEM_CONTEXT, 200), SIM_OK);
	assert_int_equal(card->used_bytes, 900);
	assert_int_equal(card->peak_bytes, TOTAL);
}

static void clearing_a_share_sums_anew(void **state)
{
	(void)state;
	assert_int_equal(sim_ledger_charge(card, 0, SIM_MEM_DATA, 300), SIM_OK);
	assert_int_equal(sim_ledger_charge(card, 7, SIM_MEM_CONTEXT, 50), SIM_OK);
	card->used_bytes += 123; /* as a process leaves it that dies between its two stores */
	sim_share_clear(card, 0);
	assert_int_equal(card->used_bytes, RESERVED + 50);
	assert_int_equal(card->shares[0].data_bytes, 0);
}

static void what_was_on_a_lost_card_is_gone(void **state)
{
	(void)state;
	assert_int_equal(sim_ledger_charge(card, 0, SIM_MEM_DATA, 10), SIM_OK);
	card->lost = 1;
	assert_int_equal(sim_ledger_charge(card, 1, SIM_MEM_DATA, 10), SIM_LOST);
	card->epoch = 2;
	card->lost = 0;
	assert_int_equal(sim_ledger_charge(card, 0, SIM_MEM_DATA, 10), SIM_LOST);
	assert_int_equal(sim_ledger_release(card, 0, SIM_MEM_DATA, 10), SIM_LOST);
	assert_int_equal(sim_ledger_charge(card, 2, SIM_MEM_DATA, 10), SIM_OK);
}

/* ---- Engine */

static void one_process_runs_from_when_it_came(void **state)
{
	uint64_t ticket, ns = 0;

	(void)state;
	sim_engine_advance(node, 0, 5 * MS);
	ticket = sim_engine_submit(card, 3, 10 * MS);
	assert_int_equal(ticket, 10 * MS);
	assert_int_equal(sim_engine_submit(card, 3, 1 * MS), 11 * MS);
	sim_engine_advance(node, 0, 9 * MS);
	assert_int_equal(done(3), 4 * MS);
	assert_false(sim_engine_end_of(node, 0, 3, ticket, &ns));
	sim_engine_advance(node, 0, 100 * MS);
	assert_int_equal(done(3), 11 * MS);
	assert_int_equal(card->busy_ns, 11 * MS);
	assert_true(sim_engine_end_of(node, 0, 3, ticket, &ns));
	assert_int_equal(ns, 15 * MS);
	/* An earlier time does nothing. */
	sim_engine_advance(node, 0, 1 * MS);
	assert_int_equal(card->engine_ns, 100 * MS);
}

/* Turns of 2 ms: 0 1 2 0 1 2 ..., whatever the order of submission. */
static void processes_take_turns(void **state)
{
	static const struct {
		uint64_t at, done[3];
	} steps[] = {
		{ 1 * MS, { 1 * MS, 0, 0 } },
		{ 2 * MS, { 2 * MS, 0, 0 } },
		{ 3 * MS, { 2 * MS, 1 * MS, 0 } },
		{ 6 * MS, { 2 * MS, 2 * MS, 2 * MS } },
		{ 9 * MS, { 4 * MS, 3 * MS, 2 * MS } }, /* 1 has 3 ms: done at 9, its turn is over */
		{ 11 * MS, { 4 * MS, 3 * MS, 4 * MS } },
		{ 13 * MS, { 6 * MS, 3 * MS, 4 * MS } },
		{ 15 * MS, { 6 * MS, 3 * MS, 6 * MS } },
	};

	(void)state;
	sim_engine_submit(card, 2, 100 * MS);
	sim_engine_submit(card, 0, 100 * MS);
	sim_engine_submit(card, 1, 3 * MS);
	for (size_t i = 0; i < HM_COUNT(steps); i++) {
		sim_engine_advance(node, 0, steps[i].at);
		for (unsigned p = 0; p < 3; p++)
			assert_int_equal(done(p), steps[i].done[p]);
	}
}

static void two_equal_ones_get_half_each(void **state)
{
	uint64_t a, b;

	(void)state;
	sim_engine_submit(card, 0, 1000 * MS);
	sim_engine_submit(card, 200, 1000 * MS);
	sim_engine_advance(node, 0, 1000 * MS);
	assert_int_equal(done(0), 500 * MS);
	assert_int_equal(done(200), 500 * MS);
	sim_engine_advance(node, 0, 3000 * MS);
	assert_true(sim_engine_end_of(node, 0, 0, 1000 * MS, &a));
	assert_true(sim_engine_end_of(node, 0, 200, 1000 * MS, &b));
	assert_int_equal(a, 1998 * MS); /* the first one's last turn ends one turn earlier */
	assert_int_equal(b, 2000 * MS);
	assert_int_equal(card->busy_ns, 2000 * MS);
}

/* Advancing in any steps gives the same result as at once. */
static void steps_do_not_matter(void **state)
{
	uint64_t step = 1, at = 0, coarse[3];

	(void)state;
	for (unsigned round = 0; round < 2; round++) {
		for (unsigned p = 0; p < 3; p++)
			sim_engine_submit(card, p, (p + 1) * 7 * MS + p);
		if (round == 0)
			sim_engine_advance(node, 0, 30 * MS);
		while (round == 1 && at < 30 * MS) {
			step = step * 1103515245 % 700001 + 1;
			at = HM_MIN(at + step, 30 * MS);
			sim_engine_advance(node, 0, at);
		}
		for (unsigned p = 0; p < 3; p++) {
			if (round == 0)
				coarse[p] = done(p);
			else
				assert_int_equal(done(p), coarse[p]);
		}
		if (round == 0) {
			teardown(NULL);
			setup(NULL);
		}
	}
}

static void expectation_is_exact_while_nobody_comes(void **state)
{
	(void)state;
	sim_engine_submit(card, 0, 5 * MS);
	sim_engine_submit(card, 1, 1 * MS);
	sim_engine_advance(node, 0, 0);
	assert_int_equal(sim_engine_expect(card, 0, 1 * MS), 1 * MS);
	assert_int_equal(sim_engine_expect(card, 1, 1 * MS), 3 * MS); /* behind one turn of 0 */
	sim_engine_advance(node, 0, 3 * MS);
	assert_int_equal(sim_engine_expect(card, 1, 1 * MS), 0);
	assert_int_equal(sim_engine_expect(card, 0, 4 * MS), 5 * MS);
	assert_int_equal(sim_engine_expect(card, 0, 2 * MS), 0);
}

static void end_times_are_remembered_for_a_while(void **state)
{
	uint64_t ns;

	(void)state;
	for (unsigned i = 0; i < SIM_RUN_LOG + 10; i++) {
		sim_engine_submit(card, 0, 10);
		sim_engine_advance(node, 0, (i + 1) * 100); /* 90 idle between each two */
	}
	assert_true(sim_engine_end_of(node, 0, 0, 10 * (SIM_RUN_LOG + 10), &ns));
	assert_int_equal(ns, (SIM_RUN_LOG + 9) * 100 + 10);
	assert_true(sim_engine_end_of(node, 0, 0, 10 * 13 + 5, &ns));
	assert_int_equal(ns, 1305);
	assert_false(sim_engine_end_of(node, 0, 0, 10, &ns));
	assert_false(sim_engine_end_of(node, 0, 1, 0, &ns));
}

static void samples_split_busy_time_by_process(void **state)
{
	const struct sim_sample *s = &card->samples[0];

	(void)state;
	sim_engine_advance(node, 0, SIM_SAMPLE_NS / 2);
	sim_engine_submit(card, 0, 1000 * MS);
	sim_engine_submit(card, 9, 20 * MS);
	sim_engine_advance(node, 0, SIM_SAMPLE_NS + 1);
	assert_int_equal(card->sample_head, 1);
	assert_int_equal(s->end_ns, SIM_SAMPLE_NS);
	assert_int_equal(s->span_ns, SIM_SAMPLE_NS);
	assert_int_equal(s->busy_ns, SIM_SAMPLE_NS - SIM_SAMPLE_NS / 2);
	assert_int_equal(s->processes[9].pid, 1009);
	assert_int_equal(s->processes[9].busy_ns, 20 * MS);
	assert_int_equal(s->processes[0].busy_ns, s->busy_ns - 20 * MS);
	/* A long idle time costs no more than the samples that are kept. */
	sim_engine_advance(node, 0, 10000000 * MS);
	assert_in_range(card->sample_head, SIM_SAMPLES, 4 * SIM_SAMPLES);
	assert_int_equal(card->samples[(card->sample_head - 1) % SIM_SAMPLES].busy_ns, 0);
	assert_in_range(card->samples[(card->sample_head - 1) % SIM_SAMPLES].end_ns, 10000000 * MS - SIM_SAMPLE_NS,
			10000000 * MS);
}

static void work_of_the_dead_is_dropped(void **state)
{
	(void)state;
	sim_engine_submit(card, 0, 10 * MS);
	sim_engine_submit(card, 1, 10 * MS);
	sim_engine_advance(node, 0, 1 * MS);
	sim_share_clear(card, 0);
	sim_engine_advance(node, 0, 11 * MS);
	assert_int_equal(done(0), 0);
	assert_int_equal(done(1), 10 * MS);
	assert_int_equal(card->busy_ns, 11 * MS);
}

static void a_lock_excludes(void **state)
{
	(void)state;
	assert_true(sim_card_lock(card, 1));
	assert_false(sim_card_try_lock(card, SIM_LOCK_DAEMON));
	sim_card_unlock(card);
	assert_true(sim_card_try_lock(card, SIM_LOCK_DAEMON));
}

/* 1 begins 4 ms after 0, which occupies its card until then; both end 5 ms later. */
static void kernels_that_meet_wait_for_each_other(void **state)
{
	unsigned turn;

	(void)state;
	node->card_count = 2;
	node->cards[1].epoch = 1;
	node->cards[1].current = SIM_MAX_PROCESSES - 1;
	assert_true(sim_engine_meet(node, 0, 0, 77));
	sim_engine_submit(card, 0, 5 * MS);
	sim_engine_advance(node, 0, 4 * MS);
	sim_engine_advance(node, 1, 4 * MS);
	assert_true(sim_engine_spins(node, 0, 0));
	assert_int_equal(done(0), 0);
	assert_int_equal(card->shares[0].spun_ns, 4 * MS);
	assert_int_equal(card->busy_ns, 4 * MS);
	assert_true(sim_engine_meet(node, 1, 1, 77));
	sim_engine_submit(&node->cards[1], 1, 5 * MS);
	sim_engine_advance(node, 1, 4 * MS);
	assert_int_equal(sim_engine_turn_left(node, 1, &turn), 2 * MS);
	assert_false(sim_engine_spins(node, 0, 0));
	for (unsigned i = 0; i < 2; i++)
		sim_engine_advance(node, i, 8 * MS);
	assert_int_equal(done(0), 4 * MS);
	assert_int_equal(node->cards[1].shares[1].done_ns, 4 * MS);
	assert_int_equal(node->meetings[77].key, 0);
}

/* One that is never met keeps its slices, no more. */
static void who_waits_leaves_others_their_turns(void **state)
{
	(void)state;
	assert_true(sim_engine_meet(node, 0, 0, 5));
	sim_engine_submit(card, 0, 1 * MS);
	sim_engine_submit(card, 1, 10 * MS);
	sim_engine_advance(node, 0, 12 * MS);
	assert_int_equal(done(0), 0);
	assert_int_equal(done(1), 6 * MS);
	for (unsigned i = 1; i < SIM_GATES; i++)
		assert_true(sim_engine_meet(node, 0, 0, 5 + i));
	assert_false(sim_engine_meet(node, 0, 0, 1));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kernels_that_meet_wait_for_each_other),
		TEST(who_waits_leaves_others_their_turns),
		TEST(charges_stop_at_the_card),
		TEST(clearing_a_share_sums_anew),
		TEST(what_was_on_a_lost_card_is_gone),
		TEST(one_process_runs_from_when_it_came),
		TEST(processes_take_turns),
		TEST(two_equal_ones_get_half_each),
		TEST(steps_do_not_matter),
		TEST(expectation_is_exact_while_nobody_comes),
		TEST(end_times_are_remembered_for_a_while),
		TEST(samples_split_busy_time_by_process),
		TEST(work_of_the_dead_is_dropped),
		TEST(a_lock_excludes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
