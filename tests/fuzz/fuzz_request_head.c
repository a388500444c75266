/* A request's header as it comes, in pieces that the first bytes say: its end is where it is for the whole at once. */
#include "fuzz/fuzz.h"

#include <event2/buffer.h>

#include "core/check.h"
#include "core/macros.h"
#include "sched/serve/head.h"

enum { MAX_PIECES = 64 };

/* The bytes up to the end of the first line that has nothing but '\r' in it, but for the very first line; 0: none. */
static size_t end_of(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t k = i + 1;

		if (p[i] != '\n')
			continue;
		while (k < n && p[k] == '\r')
			k++;
		if (k < n && p[k] == '\n')
			return k + 1;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t pieces = n > 0 ? data[0] % MAX_PIECES : 0, at = HM_MIN(pieces + 1, n), want = end_of(data + at, n - at);
	const uint8_t *text = data + at;
	struct evbuffer *buf = evbuffer_new();
	struct head h = { 0 };
	size_t left = n - at, seen = 0;
	bool ended = false;

	CHECK(buf != NULL);
	for (size_t i = 0; left > 0 && !ended; i++) {
		size_t size = i < pieces && i + 1 < n ? HM_MIN((size_t)data[1 + i], left) : left, half = size / 2;

		/* Two of them: what is new may lie in several places. */
		CHECK(evbuffer_add_reference(buf, text, half, NULL, NULL) == 0);
		CHECK(evbuffer_add_reference(buf, text + half, size - half, NULL, NULL) == 0);
		ended = head_ends(&h, buf, size);
		text += size;
		left -= size;
		seen += size;
		CHECK(ended == (want > 0 && seen >= want));
	}
	CHECK(h.lines <= seen);
	evbuffer_free(buf);
	return 0;
}
