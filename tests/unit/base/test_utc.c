#include "base/utc.h"

#include <string.h>

#include "core/macros.h"
#include "harness/unit.h"

/* By date -d TEXT +%s.%N. */
static void times(void **state)
{
	static const struct {
		const char *text;
		int64_t seconds;
		unsigned ms;
	} rows[] = {
		{ "2026-08-21T06:20:39Z", 1787293239, 0 },          { "2026-08-21T08:20:39+02:00", 1787293239, 0 },
		{ "2026-08-21T06:20:39.123456Z", 1787293239, 123 }, { "2026-08-21T06:20:39.9Z", 1787293239, 900 },
		{ "2026-08-21T06:20:39.0009Z", 1787293239, 0 },     { "1969-12-31T23:59:59.5Z", -1, 500 },
		{ "2024-02-29T00:00:00Z", 1709164800, 0 },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		int64_t seconds;
		unsigned ms;

		if (!utc_read(rows[i].text, strlen(rows[i].text), &seconds, &ms) || seconds != rows[i].seconds ||
		    ms != rows[i].ms)
			fail_msg("%s: %lld.%03u", rows[i].text, (long long)seconds, ms);
	}
}

static void no_times(void **state)
{
	static const char *const rows[] = {
		"",
		"1",
		"2026-08-21",
		"2026-08-21T06:20:39",
		"2026-08-21T06:20:39.Z",
		"2026-13-21T06:20:39Z",
		"2023-02-29T00:00:00Z",
		"2026-08-21T24:00:00Z",
		"2026-08-21T06:20:39Zx",
		"2026-08-21 06:20:39Z",
	};
	int64_t seconds;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++)
		if (utc_read(rows[i], strlen(rows[i]), &seconds, NULL))
			fail_msg("%s", rows[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times),
		cmocka_unit_test(no_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
