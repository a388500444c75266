/* The stream of a watch, without I/O: bytes in, events out. One JSON object a line:
 *   {"type":"ADDED","object":{...}}    ADDED, MODIFIED, DELETED: a whole object
 *   {"type":"BOOKMARK","object":{...}} nothing but metadata.resourceVersion counts
 *   {"type":"ERROR","object":{Status}} the watch is over
 * Types that we do not know are skipped. After a failure the engine says the same for ever. */
#ifndef HM_KUBE_WATCH_ENGINE_H
#define HM_KUBE_WATCH_ENGINE_H

#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "kube/object.h"
#include "kube/status.h"

/* The default bound of a line: etcd's of an object is 1.5 MiB, and the API server writes '<', '>' and '&' as six bytes.
 */
enum { KUBE_MAX_WATCH_BYTES = 12 << 20 };

struct watch_engine;

enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_event {
	enum watch_type type;
	const char *resource_version; /* to resume behind this event; "" for an ERROR */
	struct kube_object object;    /* of ADDED, MODIFIED, DELETED */
	struct kube_status status;    /* of an ERROR */
};

/* max_line 0: KUBE_MAX_WATCH_BYTES. NULL where memory is short. */
struct watch_engine *watch_engine_new(size_t max_line);
void watch_engine_free(struct watch_engine *w);
HM_DEFINE_AUTO(watch_engine, watch_engine_free);

/* More of the stream; copied. -HM_ELIMIT where a line is longer than max_line, -HM_ENOMEM. Take the events that are
 * there before the next push: only what is not taken counts against memory. */
int watch_engine_push(struct watch_engine *w, const void *bytes, size_t n, struct hm_err *e) HM_MUST_USE;

/* 1: the next event, good until the next call of this engine; 0: no whole line is left. -HM_EPROTO where a line is no
 * event, -HM_ENOMEM. */
int watch_engine_next(struct watch_engine *w, struct watch_event *out, struct hm_err *e) HM_MUST_USE;

#endif
