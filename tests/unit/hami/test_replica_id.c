#include "hami/replica_id.h"

#include "harness/unit.h"

#define UUID "GPU-03f69c50-207a-2038-9b45-23cac89cb67a"

static void test_card(void **state)
{
	static const struct {
		const char *id, *card;
	} cases[] = {
		{ UUID "-10", UUID },
		{ UUID "-0", UUID },
		{ UUID, UUID },
		{ "GPU-03f69c50-207a-2038-9b45-23cac89cb123", "GPU-03f69c50-207a-2038-9b45-23cac89cb123" },
		{ UUID "-x", UUID "-x" },
		{ UUID "-", UUID "-" },
		{ UUID "-1-2", UUID "-1-2" },
		{ "U::1", "U" },
		{ UUID "::3", UUID },
		{ "MIG-03f69c50-207a-2038-9b45-23cac89cb67a", "MIG-03f69c50-207a-2038-9b45-23cac89cb67a" },
		{ "", "" },
	};
	char card[64];

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_true(replica_id_card(cases[i].id, card, sizeof card));
		assert_string_equal(card, cases[i].card);
	}
	assert_true(replica_id_card("abc::1", card, 4));
	assert_false(replica_id_card("abcd::1", card, 4));
}

static void test_write(void **state)
{
	char id[64];

	(void)state;
	assert_true(replica_id_write(UUID, 10, id, sizeof id));
	assert_string_equal(id, UUID "-10");
	assert_true(replica_id_write("abc", 1, id, 6));
	assert_false(replica_id_write("abc", 10, id, 6));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_card),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
