#include "sched/serve/head.h"

#include <event2/buffer.h>

#include "core/macros.h"

/* A line that is empty, or holds but '\r', ends the header. */
static bool ends_in(struct head *h, const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] == '\n') {
			if (h->line_ended)
				return true;
			h->line_ended = true;
			h->lines++;
		} else if (p[i] != '\r') {
			h->line_ended = false;
		}
	}
	return false;
}

bool head_ends(struct head *h, struct evbuffer *buf, size_t n)
{
	struct evbuffer_iovec v[8];
	struct evbuffer_ptr at;

	if (evbuffer_ptr_set(buf, &at, evbuffer_get_length(buf) - n, EVBUFFER_PTR_SET) < 0)
		return false;
	while (n > 0) {
		int count = evbuffer_peek(buf, (ev_ssize_t)n, &at, v, HM_COUNT(v));
		size_t seen = 0;

		count = HM_MIN(count, (int)HM_COUNT(v));
		for (int i = 0; i < count; i++) {
			size_t part = HM_MIN(v[i].iov_len, n - seen);

			if (ends_in(h, v[i].iov_base, part))
				return true;
			seen += part;
		}
		if (seen == 0 || evbuffer_ptr_set(buf, &at, seen, EVBUFFER_PTR_ADD) < 0)
			return false;
		n -= HM_MIN(seen, n);
	}
	return false;
}
