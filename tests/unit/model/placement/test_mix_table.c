/* Rooms of a few cards, their fragmentation counted by hand. */
#include "model/placement/mix_table.h"

#include "core/macros.h"
#include "harness/unit.h"

enum { CARD_MIB = 1000 }; /* a MiB is a milli */

static struct mix_shape shape(uint32_t cards, int32_t milli, int64_t cpu_milli)
{
	return (struct mix_shape) { .cards = cards, .each = { .memory_mib = milli }, .cpu_milli = cpu_milli };
}

static void add(struct pod_mix *m, struct mix_shape s, uint64_t weight)
{
	struct hm_err e;

	assert_int_equal(pod_mix_add(m, &s, weight, &e), 0);
}

/* In milli of a card; must come out whole. */
static int64_t measured(const struct pod_mix *m, const struct node_room *room, const struct fgd_weights *w)
{
	hm_auto(mix_table) *t = mix_table_new(m, "NVIDIA-A100", CARD_MIB);
	int64_t all;

	assert_non_null(t);
	all = mix_table_measure(t, room, w);
	assert_int_equal(all % MEASURE_MILLI, 0);
	return all / MEASURE_MILLI;
}

/* Two shapes, equally often, against some cards (0 ends) and so much CPU. */
struct by_hand {
	const char *what;
	struct mix_shape a, b;
	uint16_t cards[4];
	int64_t cpu_milli;
	int64_t fragment, copies;
};

/* clang-format off: a table */
#define OF(milli)                                                                                                      \
	{                                                                                                              \
		1,                                                                                                     \
		{                                                                                                      \
			.memory_mib = (milli)                                                                          \
		}                                                                                                      \
	}
#define MANY(n, milli)                                                                                                 \
	{                                                                                                              \
		(n),                                                                                                   \
		{                                                                                                      \
			.memory_mib = (milli)                                                                          \
		}                                                                                                      \
	}
#define CPU(milli, cpu)                                                                                                \
	{                                                                                                              \
		1, { .memory_mib = (milli) }, .cpu_milli = (cpu)                                                       \
	}
#define CORES(percent)                                                                                                 \
	{                                                                                                              \
		1,                                                                                                     \
		{                                                                                                      \
			.memory_mib = 1, .cores = (percent)                                                            \
		}                                                                                                      \
	}
#define USES(types)                                                                                                    \
	{                                                                                                              \
		1, { .memory_mib = 1000 }, .use_types = (types)                                                        \
	}
#define NOT(types)                                                                                                     \
	{                                                                                                              \
		1, { .memory_mib = 1000 }, .no_types = (types)                                                         \
	}
static const struct by_hand cases[] = {
	{ "whole cards only", OF(1000), OF(1000), { 1000, 400 }, -1, 400, 400 },
	{ "halves and wholes", OF(500), OF(1000), { 600 }, -1, 300, 350 },
	{ "cores count", CORES(50), CORES(100), { 600 }, -1, 300, 350 },
	{ "pairs of cards", MANY(2, 1000), MANY(2, 1000), { 1000, 1000, 1000 }, -1, 0, 1000 },
	{ "too few cards", MANY(4, 1000), MANY(2, 1000), { 1000, 1000, 1000 }, -1, 1500, 2000 },
	{ "enough CPU for one", CPU(500, 4000), CPU(500, 4000), { 1000 }, 5000, 0, 500 },
	{ "CPU for half of the pods", CPU(500, 6000), OF(500), { 1000 }, 5000, 500, 500 },
	{ "CPU that is not known", CPU(500, 6000), OF(500), { 1000 }, -1, 0, 0 },
	{ "a pod without cards", { 0 }, OF(1000), { 1000 }, -1, 0, 0 },
	{ "another type", USES("T4, V100"), USES("V100,a100"), { 1000 }, -1, 500, 500 },
	{ "not this type", NOT("a100"), NOT(""), { 1000 }, -1, 500, 500 },
	{ "larger than any", OF(1001), OF(1000), { 1000 }, -1, 500, 500 },
};
/* clang-format on */

static void by_hand(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		const struct by_hand *c = &cases[i];
		struct node_room room = { c->cards, HM_COUNT(c->cards), c->cpu_milli, -1 };
		hm_auto_pod_mix m = { 0 };
		int64_t fragment, copies;

		add(&m, c->a, 3);
		add(&m, c->b, 3);
		fragment = measured(&m, &room, &(struct fgd_weights) { .fragment = 1000 });
		copies = measured(&m, &room, &(struct fgd_weights) { .copies = 1000 });
		if (fragment != c->fragment || copies != c->copies)
			fail_msg("%s: %lld and %lld", c->what, (long long)fragment, (long long)copies);
	}
}

static void memory_of_the_node(void **state)
{
	static const uint16_t whole[] = { 1000 };
	hm_auto_pod_mix m = { 0 };
	struct mix_shape s = shape(1, 250, 0);

	(void)state;
	s.host_mib = 100;
	add(&m, s, 1);
	assert_int_equal(
		measured(&m, &(struct node_room) { whole, 1, -1, 300 }, &(struct fgd_weights) { .copies = 1000 }), 250);
	assert_int_equal(
		measured(&m, &(struct node_room) { whole, 1, -1, 99 }, &(struct fgd_weights) { .fragment = 1000 }),
		1000);
}

static void other_parts(void **state)
{
	static const uint16_t cards[] = { 1000, 500, 1000 };
	hm_auto_pod_mix m = { 0 };
	struct node_room room = { cards, 3, 8000, -1 };

	(void)state;
	add(&m, shape(1, 500, 0), 1);
	/* 2.5 cards times 8 cores */
	assert_int_equal(measured(&m, &room, &(struct fgd_weights) { .balance = 1000 }), 20);
	assert_int_equal(measured(&m, &room, &(struct fgd_weights) { .empty = -5000 }), -10);
	room.cpu_milli = -1;
	assert_int_equal(measured(&m, &room, &(struct fgd_weights) { .balance = 1000 }), 0);
}

static void an_empty_mix_is_a_whole_card(void **state)
{
	static const uint16_t cards[] = { 1000, 999 };
	hm_auto_pod_mix m = { 0 };

	(void)state;
	assert_int_equal(
		measured(&m, &(struct node_room) { cards, 2, -1, -1 }, &(struct fgd_weights) { .fragment = 1000 }),
		999);
}

static void what_an_ask_needs(void **state)
{
	static const struct {
		struct card_ask ask;
		int32_t card_mib;
		uint16_t milli;
	} asks[] = {
		{ { .memory_mib = 8000 }, 16000, 500 },
		{ { .memory_mib = 1 }, 16000, 1 },
		{ { .memory_mib = 8001 }, 16000, 501 },
		{ { .memory_mib = 8000, .cores = 60 }, 16000, 600 },
		{ { .memory_mib = 8000, .cores = 100 }, 16000, 1000 },
		{ { .percent = 30, .cores = 10 }, 16000, 300 },
		{ { .memory_mib = 16001 }, 16000, 1001 },
		{ { .memory_mib = 16001, .cores = 100 }, 16000, 1001 },
		{ { .percent = 100 }, 16000, 1000 },
		{ { .percent = 0 }, 16000, 1 },
		{ { .percent = 50 }, 0, 1001 },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(asks); i++)
		if (card_ask_milli(&asks[i].ask, asks[i].card_mib) != asks[i].milli)
			fail_msg("%zu: %u", i, card_ask_milli(&asks[i].ask, asks[i].card_mib));
}

/* The division by multiplication, for all that may come. */
static void every_share_of_every_card(void **state)
{
	(void)state;
	for (int32_t need = 1; need <= CARD_MILLI; need++) {
		hm_auto_pod_mix m = { 0 };

		add(&m, shape(1, need, 0), 1);
		for (uint16_t room = (uint16_t)(need % 7); room <= CARD_MILLI; room = (uint16_t)(room + 7)) {
			int64_t left = measured(&m, &(struct node_room) { &room, 1, -1, -1 },
						&(struct fgd_weights) { .copies = 1000 });

			if (left != room % need)
				fail_msg("%d of %u leaves %lld", need, room, (long long)left);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),           cmocka_unit_test(memory_of_the_node),
		cmocka_unit_test(other_parts),       cmocka_unit_test(an_empty_mix_is_a_whole_card),
		cmocka_unit_test(what_an_ask_needs), cmocka_unit_test(every_share_of_every_card),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
