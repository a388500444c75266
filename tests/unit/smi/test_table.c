#include "smi/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/macros.h"

static const struct column columns[] = { { "A", 3, true }, { "Name", 6, false } };

static void test_table(void **state)
{
	static const char want[] = "+-----+--------+\n"
				   "|   A | Name   |\n"
				   "+=====+========+\n"
				   "|   1 | abc    |\n"
				   "| 123 | abcdef |\n"
				   "| 123 | abcdef |\n"
				   "|  45 | ghijkl |\n"
				   "|     | m      |\n"
				   "|     |        |\n"
				   "| whole width  |\n"
				   "| more than th |\n"
				   "| at           |\n"
				   "+--------------+\n";
	static const char *const rows[][2] = {
		{ "1", "abc" },
		{ "123", "abcdef" },
		{ "12345", "abcdefghijklm" },
		{ NULL, "" },
	};
	hm_auto_str out = { 0 };

	(void)state;
	table_titles(&out, columns, HM_COUNT(columns));
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		table_row(&out, columns, HM_COUNT(columns), rows[i]);
	table_line(&out, columns, HM_COUNT(columns), "whole width");
	table_line(&out, columns, HM_COUNT(columns), "more than that");
	table_line_rule(&out, columns, HM_COUNT(columns));
	assert_string_equal(str_text(&out), want);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_table) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
