#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "harness/sweep.h"
#include "rpc/send_queue.h"

static bool push(struct send_queue *q, const char *text)
{
	return send_queue_push(q, (const uint8_t *)text, strlen(text));
}

static bool push_latest(struct send_queue *q, const char *text)
{
	return send_queue_push_latest(q, (const uint8_t *)text, strlen(text));
}

static void expect(struct send_queue *q, const char *wire, size_t n)
{
	uint8_t out[64];

	assert_int_equal(send_queue_read(q, out, sizeof out), n);
	assert_memory_equal(out, wire, n);
}

static void test_order_and_prefix(void **state)
{
	static const char wire[] = "\0\0\0\0\x03one\0\0\0\0\0\0\0\0\0\x05three";

	(void)state;
	for (size_t step = 1; step < sizeof wire; step++) {
		struct send_queue q;
		uint8_t out[64];
		size_t n = 0, k;

		send_queue_init(&q);
		assert_true(push(&q, "one") && push(&q, "") && push(&q, "three"));
		assert_int_equal(q.bytes, sizeof wire - 1);
		while ((k = send_queue_read(&q, out + n, step)) > 0)
			n += k;
		assert_int_equal(n, sizeof wire - 1);
		assert_memory_equal(out, wire, n);
		assert_true(send_queue_empty(&q));
		assert_int_equal(q.bytes, 0);
	}
}

static void test_latest_drops_what_is_not_started(void **state)
{
	struct send_queue q;
	uint8_t out[8];

	(void)state;
	send_queue_init(&q);
	assert_true(push(&q, "aa") && push(&q, "bb") && push_latest(&q, "cc"));
	expect(&q,
	       "\0\0\0\0\x02"
	       "cc",
	       7);
	assert_true(push(&q, "aa") && push(&q, "bb"));
	assert_int_equal(send_queue_read(&q, out, 1), 1);
	assert_true(push_latest(&q, "cc") && push_latest(&q, "dd"));
	expect(&q,
	       "\0\0\0\x02"
	       "aa\0\0\0\0\x02"
	       "dd",
	       13);
	assert_true(push(&q, "aa"));
	assert_int_equal(send_queue_read(&q, out, 3), 3);
	send_queue_clear(&q);
	assert_int_equal(q.bytes, 0);
	assert_true(push(&q, "e"));
	expect(&q,
	       "\0\0\0\0\x01"
	       "e",
	       6);
}

static int scenario(void *arg)
{
	struct send_queue q;
	uint8_t out[32];
	bool good;

	(void)arg;
	send_queue_init(&q);
	good = push(&q, "aa");
	send_queue_read(&q, out, 3);
	good = good && push(&q, "bb");
	if (good && !push_latest(&q, "cc")) {
		good = false;
		/* a failed push changes nothing: what was to be replaced is still there */
		assert_int_equal(send_queue_read(&q, out, sizeof out), 11);
	}
	send_queue_clear(&q);
	return good ? 0 : -1;
}

static void test_memory(void **state)
{
	(void)state;
	sweep_check("send_queue", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_and_prefix),
		cmocka_unit_test(test_latest_drops_what_is_not_started),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
