#include "hami/entry_order.h"

#include <string.h>

#include "harness/unit.h"

/* Containers as "i2 a0 a1": init or app, and how many cards each asks for. `want`: the container of each filled entry.
 */
static void which_container(void **state)
{
	static const struct {
		const char *containers, *text, *want;
		bool fits;
	} rows[] = {
		/* As v2.9 and ours write it: an entry for each. */
		{ "a1", "G,NVIDIA,1,0:;", "0", true },
		{ "a0 a1", ";G,NVIDIA,1,0:;", "1", true },
		{ "a1 a0", "G,NVIDIA,1,0:;;", "0", true },
		{ "i0 a1 a1", ";G,NVIDIA,1,0:;H,NVIDIA,1,0:;", "12", true },
		{ "i1 a1", "G,NVIDIA,1,0:;G,NVIDIA,1,0:;", "01", true },
		{ "a2", "G,NVIDIA,1,0:H,NVIDIA,1,0:;", "0", true },
		/* v2.10.0: the empty ones are left out. */
		{ "a0 a1", "G,NVIDIA,1,0:;", "1", true },
		{ "i0 a1 a0 a1", "G,NVIDIA,1,0:;H,NVIDIA,1,0:;", "13", true },
		{ "i1 a0 a1", "G,NVIDIA,1,0:;H,NVIDIA,1,0:;", "02", true },
		/* As many entries as containers, but not theirs. */
		{ "a0 a1", "G,NVIDIA,1,0:;;", "1", true },
		/* v2.8: none for init containers. */
		{ "i1 a1 a1", "G,NVIDIA,1,0:;H,NVIDIA,1,0:;", "12", true },
		{ "i1 a0 a1", ";H,NVIDIA,1,0:;", "2", true },
		{ "i1 a0 a0 a1", "H,NVIDIA,1,0:;", "3", true },
		/* Placeholders, and what an agent has appended. */
		{ "a0 a1", ",,0,0:;G,NVIDIA,1,0:;", "1", true },
		{ "a1", "G,NVIDIA,1,0:;;;", "0", true },
		/* No container is known: together, behind the last. */
		{ "a1", "G,NVIDIA,1,0:;H,NVIDIA,1,0:;", "12", false },
		{ "a0", "G,NVIDIA,1,0:;", "1", false },
		{ "", "G,NVIDIA,1,0:;", "0", false },
		{ "a1 a1", "G,NVIDIA,1,0:;", "2", false },
	};
	(void)state;
	for (size_t r = 0; r < HM_COUNT(rows); r++) {
		hm_auto_pod_devices d = { 0 };
		uint32_t cards[8] = { 0 };
		size_t count = 0, init = 0, filled = 0, container_of[8];

		for (const char *p = rows[r].containers; *p != '\0'; p += p[2] == '\0' ? 2 : 3) {
			init += p[0] == 'i';
			cards[count++] = (uint32_t)(p[1] - '0');
		}
		assert_int_equal(devices_text_parse(rows[r].text, &d, NULL), 0);
		if (entry_order(&d, cards, count, init, container_of) != rows[r].fits)
			fail_msg("row %zu", r);
		for (size_t i = 0; i < d.entry_count; i++)
			if (entry_is_filled(&d, i) && container_of[i] != (size_t)(rows[r].want[filled++] - '0'))
				fail_msg("row %zu: entry %zu is container %zu's", r, i, container_of[i]);
		assert_int_equal(filled, strlen(rows[r].want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(which_container) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
