#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/str.h"
#include "harness/unit.h"

static struct str seen; /* what was logged, a '\n' behind each line */
static uint64_t now_ms;

static void keep(const char *line, size_t n, void *arg)
{
	assert_ptr_equal(arg, &seen);
	assert_int_equal(strlen(line), n);
	str_add_n(&seen, line, n);
	str_addc(&seen, '\n');
}

static uint64_t read_now(void)
{
	return now_ms;
}

static int start(void **state)
{
	(void)state;
	str_clear(&seen);
	log_set_sink(keep, &seen);
	log_set_clock(NULL);
	log_set_level(LOG_INFO);
	log_set_verbosity(0);
	return 0;
}

static int end(void **state)
{
	(void)state;
	str_fini(&seen);
	log_set_sink(NULL, NULL);
	return 0;
}

static void a_line_has_level_message_and_pairs(void **state)
{
	struct hm_err e;

	(void)state;
	hm_err_set(&e, HM_EIO, "no luck");
	log_info("registered", KV("resource", "hami.com/vgpu"), KV_U64("devices", 8), KV_I64("left", -1));
	log_error("cannot register", KV_ERR(&e));
	log_warn("bare");
	assert_string_equal(str_text(&seen), "INFO  registered resource=hami.com/vgpu devices=8 left=-1\n"
					     "ERROR cannot register err=\"no luck\"\n"
					     "WARN  bare\n");
}

static void hostile_text_stays_on_its_line_and_in_its_quotes(void **state)
{
	static const struct {
		const char *value, *want;
	} cases[] = {
		{ "plain-1.2/x:y,z", "plain-1.2/x:y,z" },
		{ "", "\"\"" },
		{ NULL, "\"\"" },
		{ "two words", "\"two words\"" },
		{ "a\nINFO  forged", "\"a\\nINFO  forged\"" },
		{ "say \"x\" level=ERROR", "\"say \\\"x\\\" level=ERROR\"" },
		{ "k=v", "\"k=v\"" },
		{ "\x1b[31mred", "\"\\x1b[31mred\"" },
		{ "gr\xc3\xbc\xc3\x9f", "\"gr\\xc3\\xbc\\xc3\\x9f\"" },
		{ "back\\slash", "\"back\\\\slash\"" },
	};
	char want[128];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		str_clear(&seen);
		log_info("x", KV("v", cases[i].value));
		snprintf(want, sizeof want, "INFO  x v=%s\n", cases[i].want);
		assert_string_equal(str_text(&seen), want);
	}
	str_clear(&seen);
	log_info("a message\nof two lines");
	assert_string_equal(str_text(&seen), "INFO  a message\\nof two lines\n");
}

static void levels_and_verbosity_decide_what_shows(void **state)
{
	static const struct {
		enum log_level level;
		int v;
		const char *want;
	} cases[] = {
		{ LOG_ERROR, 0, "E" },    { LOG_WARN, 0, "EW" },      { LOG_INFO, 0, "EWI0" },
		{ LOG_INFO, 3, "EWI03" }, { LOG_INFO, 6, "EWI036D" }, { LOG_ERROR, 6, "E" },
	};
	char have[16];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		size_t n = 0;

		str_clear(&seen);
		log_set_level(cases[i].level);
		log_set_verbosity(cases[i].v);
		log_error("E");
		log_warn("W");
		log_info("I");
		log_v(0, "0");
		log_v(3, "3");
		log_v(6, "6");
		log_debug("D");
		for (const char *line = str_text(&seen); *line != '\0'; line = strchr(line, '\n') + 1)
			have[n++] = line[6];
		have[n] = '\0';
		assert_string_equal(have, cases[i].want);
	}
}

static void a_level_is_known_by_name(void **state)
{
	struct hm_err e;

	(void)state;
	assert_int_equal(log_set_level_name("warn", &e), 0);
	assert_true(log_enabled(LOG_WARN, 0));
	assert_false(log_enabled(LOG_INFO, 0));
	assert_int_equal(log_set_level_name("DEBUG", &e), 0);
	assert_true(log_enabled(LOG_DEBUG, 4));
	assert_false(log_enabled(LOG_DEBUG, 5));
	log_set_verbosity(6);
	assert_int_equal(log_set_level_name("debug", &e), 0);
	assert_true(log_enabled(LOG_DEBUG, 6));
	assert_int_equal(log_set_level_name("loud", &e), -HM_EINVAL);
	assert_string_equal(e.msg, "log level: \"loud\" is none of DEBUG, INFO, WARN, ERROR");
}

/* The date is reckoned by our own arithmetic: gmtime of the C library is the judge. */
static void the_time_stamp_is_right_on_every_day(void **state)
{
	(void)state;
	log_set_clock(read_now);
	for (uint64_t day = 0; day < 200 * 366; day += 13) {
		time_t sec = (time_t)(day * 86400 + (day * 7919) % 86400);
		struct tm tm;
		char want[64];

		now_ms = (uint64_t)sec * 1000 + day % 1000;
		assert_non_null(gmtime_r(&sec, &tm));
		snprintf(want, sizeof want, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ INFO  x\n", tm.tm_year + 1900,
			 tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (int)(day % 1000));
		str_clear(&seen);
		log_info("x");
		assert_string_equal(str_text(&seen), want);
	}
}

static void without_a_sink_lines_go_to_stderr(void **state)
{
	int keep_fd = dup(STDERR_FILENO), fds[2];
	char buf[128];
	ssize_t n;

	(void)state;
	assert_int_equal(pipe(fds), 0);
	log_set_sink(NULL, NULL);
	dup2(fds[1], STDERR_FILENO);
	log_info("hello", KV_U64("n", 1));
	dup2(keep_fd, STDERR_FILENO);
	close(keep_fd);
	close(fds[1]);
	n = read(fds[0], buf, sizeof buf - 1);
	close(fds[0]);
	assert_true(n > 0);
	buf[n] = '\0';
	assert_string_equal(buf, "INFO  hello n=1\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_has_level_message_and_pairs, start, end),
		cmocka_unit_test_setup_teardown(hostile_text_stays_on_its_line_and_in_its_quotes, start, end),
		cmocka_unit_test_setup_teardown(levels_and_verbosity_decide_what_shows, start, end),
		cmocka_unit_test_setup_teardown(a_level_is_known_by_name, start, end),
		cmocka_unit_test_setup_teardown(the_time_stamp_is_right_on_every_day, start, end),
		cmocka_unit_test_setup_teardown(without_a_sink_lines_go_to_stderr, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
