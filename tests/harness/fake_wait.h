/* For tests that have both the API server (fake_kube.h) and the loop's time (fast_loop.h) in hand. */
#ifndef HM_TESTS_HARNESS_FAKE_WAIT_H
#define HM_TESTS_HARNESS_FAKE_WAIT_H

#include "harness/fake_kube.h"
#include "harness/fast_loop.h"

static inline bool fake_has_asked(const void *arg)
{
	return fake_count >= *(const size_t *)arg;
}

/* Until so many requests have been made, and no more of them. */
static inline void wait_requests(size_t count)
{
	if (!fast_until(fake_loop, fake_has_asked, &count))
		fail_msg("%zu requests, not %zu", fake_count, count);
	assert_int_equal(fake_count, count);
}

#endif
