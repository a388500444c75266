/* A watch's stream in pieces: the first byte says how long they are. However it is cut, the same events come, and the
 * same end. */
#include "kube/watch_engine.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

enum { MAX_LINE = 4096 };

static void check(bool good)
{
	if (!good)
		abort();
}

struct sum {
	size_t events;
	uint64_t hash;
	int end;
};

static void add(struct sum *s, const char *text)
{
	for (; *text != '\0'; text++)
		s->hash = (s->hash ^ (unsigned char)*text) * 0x100000001b3u;
}

static struct sum run(const char *p, size_t n, size_t piece)
{
	hm_auto(watch_engine) *w = watch_engine_new(MAX_LINE);
	struct sum s = { 0, 0xcbf29ce484222325u, 0 };
	struct watch_event event;
	struct hm_err e = { 0 };

	check(w != NULL);
	for (size_t at = 0; s.end == 0 && at < n; at += piece) {
		s.end = watch_engine_push(w, p + at, HM_MIN(piece, n - at), &e);
		while (s.end == 0 && watch_engine_next(w, &event, &e) > 0) {
			s.events++;
			add(&s, event.resource_version);
			check(event.type == WATCH_ERROR || event.resource_version[0] != '\0');
			check(strlen(event.resource_version) < KUBE_VERSION_BYTES);
			if (event.type <= WATCH_DELETED) {
				check(event.object.name[0] != '\0' && event.object.uid[0] != '\0');
				add(&s, event.object.key);
			}
		}
		if (s.end == 0)
			s.end = watch_engine_next(w, &event, &e);
	}
	check(s.end <= 0 && (s.end == 0) == (e.code == 0));
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct sum a, b;

	if (n == 0)
		return 0;
	a = run((const char *)data + 1, n - 1, n);
	b = run((const char *)data + 1, n - 1, (size_t)data[0] + 1);
	/* A line that is too long is noticed when its piece comes: events before it may come first or not. */
	if (a.end == -HM_ELIMIT || b.end == -HM_ELIMIT)
		return 0;
	check(a.events == b.events && a.hash == b.hash && a.end == b.end);
	return 0;
}
