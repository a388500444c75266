#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "harness/sweep.h"
#include "rpc/grpc_frame.h"
#include "rpc/status.h"

enum { MAX = 4096 };

/* Feeds in pieces of `step` and notes each message as "<length>:<first bytes>;" and the end as the edge. */
static enum grpc_next feed_all(struct grpc_deframer *d, const uint8_t *in, size_t n, size_t step, struct str *log)
{
	enum grpc_next last = GRPC_MORE;

	for (size_t at = 0, used; at < n && last != GRPC_BAD; at += used) {
		last = grpc_feed(d, in + at, n - at < step ? n - at : step, &used);
		if (last == GRPC_MESSAGE)
			str_addf(log, "%zu:%.*s;", d->length, (int)(d->length < 8 ? d->length : 8),
				 (const char *)grpc_message(d));
		if (last != GRPC_BAD)
			assert_int_not_equal(used, 0);
	}
	str_add(log, grpc_deframer_at_edge(d) ? "edge" : "within");
	return last;
}

static void add_message(struct str *wire, const char *text, size_t n)
{
	uint8_t prefix[GRPC_PREFIX];

	grpc_write_prefix(prefix, n);
	str_add_n(wire, prefix, sizeof prefix);
	str_add_n(wire, text, n);
}

static void test_every_step_size(void **state)
{
	char long_text[3000];
	hm_auto_str wire = { 0 };

	(void)state;
	memset(long_text, 'z', sizeof long_text);
	add_message(&wire, "hello", 5);
	add_message(&wire, "", 0);
	add_message(&wire, long_text, sizeof long_text);
	add_message(&wire, "", 0);
	add_message(&wire, "end", 3);
	for (size_t step = 1; step <= wire.n; step++) {
		struct grpc_deframer d;
		hm_auto_str log = { 0 };

		grpc_deframer_init(&d, MAX);
		feed_all(&d, (const uint8_t *)wire.p, wire.n, step, &log);
		assert_string_equal(str_text(&log), "5:hello;0:;3000:zzzzzzzz;0:;3:end;edge");
		grpc_deframer_fini(&d);
	}
}

static void test_bad_input(void **state)
{
	static const struct {
		const char *wire;
		size_t n;
		const char *log;
		int status;
		const char *says;
	} cases[] = {
		{ "\x01\0\0\0\x01x", 6, "within", RPC_INTERNAL, "marked compressed" },
		{ "\x02\0\0\0\x01x", 6, "within", RPC_INTERNAL, "flag 2" },
		{ "\0\0\0\x10\x01x", 6, "within", RPC_RESOURCE_EXHAUSTED,
		  "message of 4097 bytes is above the limit of 4096" },
		{ "\0\xff\xff\xff\xff", 5, "within", RPC_RESOURCE_EXHAUSTED, "4294967295" },
		{ "\0\0\0\0\x02xy\x07", 8, "2:xy;within", RPC_INTERNAL, "within a message" },
		{ "\0\0\0\0\x02xy\x07\0\0\0\0", 12, "2:xy;within", RPC_INTERNAL, "flag 7" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		for (size_t step = 1; step <= cases[i].n; step++) {
			struct grpc_deframer d;
			hm_auto_str log = { 0 };
			char text[128];

			grpc_deframer_init(&d, MAX);
			feed_all(&d, (const uint8_t *)cases[i].wire, cases[i].n, step, &log);
			assert_string_equal(str_text(&log), cases[i].log);
			assert_int_equal(grpc_deframer_status(&d, text, sizeof text), cases[i].status);
			if (strstr(text, cases[i].says) == NULL)
				fail_msg("case %zu says \"%s\"", i, text);
			grpc_deframer_fini(&d);
		}
	}
}

static void test_failure_is_sticky(void **state)
{
	struct grpc_deframer d;
	size_t used;

	(void)state;
	grpc_deframer_init(&d, MAX);
	assert_int_equal(grpc_feed(&d, (const uint8_t *)"\x09\0\0\0\0", 5, &used), GRPC_BAD);
	assert_int_equal(grpc_feed(&d, (const uint8_t *)"\0\0\0\0\0", 5, &used), GRPC_BAD);
	assert_int_equal(used, 0);
	grpc_deframer_fini(&d);
	assert_int_equal(grpc_feed(&d, (const uint8_t *)"\0\0\0\0\0", 5, &used), GRPC_MESSAGE);
	grpc_deframer_fini(&d);
}

/* The length is a claim: memory follows what came. */
static void test_memory_follows_the_bytes(void **state)
{
	struct grpc_deframer d;
	uint8_t prefix[GRPC_PREFIX], bytes[1000] = { 0 };
	size_t used;

	(void)state;
	grpc_deframer_init(&d, 16777216);
	grpc_write_prefix(prefix, 16777216);
	assert_int_equal(grpc_feed(&d, prefix, sizeof prefix, &used), GRPC_MORE);
	assert_int_equal(d.cap, 0);
	assert_int_equal(grpc_feed(&d, bytes, sizeof bytes, &used), GRPC_MORE);
	assert_in_range(d.cap, 1000, 2048);
	for (size_t i = 1; i < 16777; i++)
		assert_int_equal(grpc_feed(&d, bytes, sizeof bytes, &used), GRPC_MORE);
	assert_int_equal(grpc_feed(&d, bytes, 216, &used), GRPC_MESSAGE);
	assert_int_equal(d.cap, 16777216);
	grpc_deframer_fini(&d);
	grpc_write_prefix(prefix, 1900); /* and never more than the message needs */
	assert_int_equal(grpc_feed(&d, prefix, sizeof prefix, &used), GRPC_MORE);
	assert_int_equal(grpc_feed(&d, bytes, 950, &used), GRPC_MORE);
	assert_int_equal(grpc_feed(&d, bytes, 950, &used), GRPC_MESSAGE);
	assert_int_equal(d.cap, 1900);
	grpc_deframer_fini(&d);
}

static int scenario_feed(void *arg)
{
	const struct str *wire = arg;
	struct grpc_deframer d;
	enum grpc_next last = GRPC_MORE;

	grpc_deframer_init(&d, MAX);
	for (size_t at = 0, used; at < wire->n && last != GRPC_BAD; at += used)
		last = grpc_feed(&d, (const uint8_t *)wire->p + at, wire->n - at < 100 ? wire->n - at : 100, &used);
	grpc_deframer_fini(&d);
	return last == GRPC_BAD ? -1 : 0;
}

static void test_memory(void **state)
{
	char long_text[3000] = { 0 };
	hm_auto_str wire = { 0 };

	(void)state;
	add_message(&wire, "a", 1);
	add_message(&wire, long_text, sizeof long_text);
	sweep_check("grpc_feed", scenario_feed, &wire);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_step_size),
		cmocka_unit_test(test_bad_input),
		cmocka_unit_test(test_failure_is_sticky),
		cmocka_unit_test(test_memory_follows_the_bytes),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
