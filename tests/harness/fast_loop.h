/* What the tests of long-lived parts share: a loop whose time runs `fast` times as fast as the machine's
 * and can be moved on, what the log said, and waiting for something. For tests that CMakeLists.txt lists as such. */
#ifndef HM_TESTS_HARNESS_FAST_LOOP_H
#define HM_TESTS_HARNESS_FAST_LOOP_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "harness/unit.h"
#include "io/loop.h"

enum { FAST_WAIT_MS = 10000 /* of the machine's */ };

uint64_t __wrap_loop_now_ms(const struct loop *l);
void __real_loop_timer_arm(struct loop_timer *t, uint64_t after_ms);
void __wrap_loop_timer_arm(struct loop_timer *t, uint64_t after_ms);

/* Slow enough that a busy machine's pauses are short against what a test says must not happen yet. */
static uint64_t fast = 5, fast_moved_ms;
static char fast_log[65536];
static size_t fast_log_bytes;

uint64_t __wrap_loop_now_ms(const struct loop *l)
{
	return loop_now_us(l) * fast / 1000 + fast_moved_ms;
}

void __wrap_loop_timer_arm(struct loop_timer *t, uint64_t after_ms)
{
	__real_loop_timer_arm(t, (after_ms + fast - 1) / fast);
}

static inline void fast_keep_line(const char *line, size_t n, void *arg)
{
	(void)arg;
	if (fast_log_bytes + n + 2 > sizeof fast_log)
		fast_log_bytes = 0;
	memcpy(fast_log + fast_log_bytes, line, n);
	fast_log_bytes += n;
	fast_log[fast_log_bytes++] = '\n';
	fast_log[fast_log_bytes] = '\0';
}

static inline void fast_forget_log(void)
{
	fast_log_bytes = 0;
	fast_log[0] = '\0';
}

/* How often the log has said it since fast_forget_log. */
static inline size_t fast_said(const char *what)
{
	size_t times = 0;

	for (const char *at = fast_log; (at = strstr(at, what)) != NULL; at++)
		times++;
	return times;
}

static inline bool fast_until(struct loop *l, bool (*done)(const void *arg), const void *arg)
{
	uint64_t end_us = loop_now_us(l) + 1000ULL * FAST_WAIT_MS;
	struct hm_err e;

	while (!done(arg))
		if (loop_now_us(l) > end_us || loop_run_once(l, 5, &e) < 0)
			return false;
	return true;
}

/* The loop for so many of its own milliseconds. */
static inline void fast_run(struct loop *l, uint64_t ms)
{
	uint64_t end_us = loop_now_us(l) + 1000 * ms / fast;
	struct hm_err e;

	do
		assert_int_equal(loop_run_once(l, 2, &e), 0);
	while (loop_now_us(l) < end_us);
}

#endif
