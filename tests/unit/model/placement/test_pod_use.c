/* What a pod has of its cards over its life; the first case is HAMi's own worked one. */
#include "model/placement/pod_use.h"

#include <string.h>

#include "harness/unit.h"

enum { A = 7, B = 9 };

static const struct {
	const char *what;
	enum ask_kind kinds[4];
	size_t kind_count;
	struct card_share shares[6]; /* container, card, memory, cores */
	size_t count;
	struct card_use use[2]; /* of A and B */
} cases[] = {
	{ "init beside two apps",
	  { ASK_INIT, ASK_APP, ASK_APP },
	  3,
	  { { 0, A, 8000, 0 }, { 1, A, 5000, 30 }, { 2, A, 2000, 10 }, { 2, B, 2000, 10 } },
	  4,
	  { { 2, 8000, 40 }, { 1, 2000, 10 } } },
	{ "init containers take turns",
	  { ASK_INIT, ASK_INIT, ASK_APP },
	  3,
	  { { 0, A, 3000, 50 }, { 1, A, 4000, 20 }, { 1, B, 100, 1 }, { 2, A, 10, 1 } },
	  4,
	  { { 1, 4000, 50 }, { 1, 100, 1 } } },
	{ "a sidecar adds to the apps and to the init containers after it",
	  { ASK_INIT, ASK_SIDECAR, ASK_INIT, ASK_APP },
	  4,
	  { { 0, A, 5000, 5 }, { 1, A, 2000, 10 }, { 2, A, 4000, 0 }, { 3, A, 3000, 20 } },
	  4,
	  { { 2, 6000, 30 }, { 0, 0, 0 } } },
	{ "two instances of one card add up, in an init container as well",
	  { ASK_INIT, ASK_APP },
	  2,
	  { { 0, A, 9984, 29 }, { 0, A, 9984, 29 }, { 1, A, 9984, 29 } },
	  3,
	  { { 2, 19968, 58 }, { 0, 0, 0 } } },
	{ "more entries than containers: apps",
	  { ASK_INIT },
	  1,
	  { { 0, B, 1, 1 }, { 1, A, 10, 1 }, { 2, A, 10, 1 } },
	  3,
	  { { 2, 20, 2 }, { 1, 1, 1 } } },
};

static void check(const char *what, const struct card_hold *got, size_t n, const struct card_use want[2])
{
	size_t k = 0;

	for (size_t i = 0; i < 2; i++) {
		if (want[i].slots == 0)
			continue;
		if (k >= n || got[k].card != (i == 0 ? A : B) || got[k].use.slots != want[i].slots ||
		    got[k].use.memory_mib != want[i].memory_mib || got[k].use.cores != want[i].cores)
			fail_msg("%s: of %zu: card %u has %lld slots, %lld MiB, %lld %%", what, n, got[k].card,
				 (long long)got[k].use.slots, (long long)got[k].use.memory_mib,
				 (long long)got[k].use.cores);
		k++;
	}
	assert_int_equal(k, n);
}

static void by_card(void **state)
{
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct card_hold out[6];

		memset(out, 0, sizeof out);
		check(cases[i].what, out,
		      pod_use_by_card(cases[i].shares, cases[i].count, cases[i].kinds, cases[i].kind_count, out),
		      cases[i].use);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(by_card) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
