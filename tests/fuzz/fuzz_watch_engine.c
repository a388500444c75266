/* A watch's stream in pieces: the first byte says how long they are. However it is cut, the same events come, and the
 * same end. */
#include "kube/watch_engine.h"

#include <string.h>

#include "base/str.h"
#include "core/check.h"
#include "fuzz/fuzz.h"

enum { MAX_LINE = 4096 };

static void take(const struct watch_event *event, struct str *log)
{
	CHECK(event->type == WATCH_ERROR || event->resource_version[0] != '\0');
	CHECK(strlen(event->resource_version) < KUBE_VERSION_BYTES);
	str_addf(log, "%d %s", (int)event->type, event->resource_version);
	if (event->type <= WATCH_DELETED) {
		CHECK(event->object.name[0] != '\0' && event->object.uid[0] != '\0');
		str_addf(log, " %s", event->object.key);
	}
	str_addc(log, '\n');
}

/* How it ended: 0 or what the engine said. */
static int run(const char *p, size_t n, size_t piece, struct str *log)
{
	hm_auto(watch_engine) *w = watch_engine_new(MAX_LINE);
	struct watch_event event;
	struct hm_err e = { 0 };
	int end = 0;

	CHECK(w != NULL);
	for (size_t at = 0; end == 0 && at < n; at += piece) {
		end = watch_engine_push(w, p + at, HM_MIN(piece, n - at), &e);
		while (end == 0 && (end = watch_engine_next(w, &event, &e)) > 0) {
			take(&event, log);
			end = 0;
		}
	}
	CHECK(end <= 0 && (end == 0) == (e.code == 0));
	return end;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_str whole = { 0 }, cut = { 0 };
	int a, b;

	if (n == 0)
		return 0;
	a = run((const char *)data + 1, n - 1, n, &whole);
	b = run((const char *)data + 1, n - 1, (size_t)data[0] + 1, &cut);
	/* A line that is too long is noticed when its piece comes: events before it may come first or not. */
	if (a == -HM_ELIMIT || b == -HM_ELIMIT)
		return 0;
	CHECK(a == b && strcmp(str_text(&whole), str_text(&cut)) == 0);
	return 0;
}
