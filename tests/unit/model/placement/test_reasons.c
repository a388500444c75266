/* Refusals as HAMi words and sorts them. */
#include "model/placement/reasons.h"

#include "harness/unit.h"

static void written(void **state)
{
	static const struct {
		struct refusal why;
		const char *text;
	} cases[] = {
		{ { .too_few_cards = true }, "NodeInsufficientDevice" },
		{ { .cards = 4, .counts = { [REASON_QUOTA] = 3, [REASON_CARDS_TOO_FEW] = 1 } },
		  "1/4 AllocatedCardsInsufficientRequest, 3/4 ResourceQuotaNotFit" },
		/* By the text, not by the number. */
		{ { .cards = 16, .counts = { [REASON_MEMORY] = 3, [REASON_NUMA] = 10, [REASON_TYPE] = 3 } },
		  "10/16 NumaNotFit, 3/16 CardInsufficientMemory, 3/16 CardTypeMismatch" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str got = { 0 };

		refusal_write(&cases[i].why, &got);
		assert_string_equal(str_text(&got), cases[i].text);
	}
}

static void every_reason_has_a_word(void **state)
{
	(void)state;
	for (int i = 0; i < REASON_COUNT; i++)
		assert_non_null(card_reason_word((enum card_reason)i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written),
		cmocka_unit_test(every_reason_has_a_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
