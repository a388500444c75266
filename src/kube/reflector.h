/* One collection of the API, followed: listed, then watched; told what is new, changed and gone. It heals by itself
 * whatever happens to the API server, and what was told stays true meanwhile.
 *
 * LIST: page by page (limit, continue) from etcd; or `cached`, in one piece from the API server's own cache: first
 * whatever it has, later nothing older than what was seen, from etcd where the server knows nothing as new as that. 410
 * in the middle: from the first page. An answer above the client's limit of bytes: smaller pages. At the end whatever
 * was not in the list is told as deleted; then "synced", once ever, and "listed".
 *
 * WATCH: from the list's resourceVersion, with bookmarks. The stream ends (the server ends it after some minutes,
 * silence, a broken connection): watch again from the last version seen. 410, an ERROR event, bytes that are no events,
 * an object too large: LIST. 403, watching is not allowed: LIST after half of backoff_max_ms to all of it, again and
 * again.
 *
 * OPTIONAL: 403 or 404 before any list has ended well (it may not be listed, or is not there) is no failure: LIST after
 * half of backoff_max_ms to all of it, again and again.
 *
 * BACKOFF: before what follows a failure, doubling with jitter, at least the server's Retry-After. Over at the first
 * event of a watch. */
#ifndef HM_KUBE_REFLECTOR_H
#define HM_KUBE_REFLECTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "kube/client.h"
#include "kube/object.h"

struct kube_reflector;

/* 0 is the default. Texts are copied. */
struct kube_reflector_options {
	const char *path;           /* "/api/v1/pods"; required */
	const char *field_selector; /* "spec.nodeName=node1"; NULL: all */
	const char *label_selector;
	unsigned page;           /* 500 objects */
	bool cached;             /* for few objects by a selector: from etcd each such list reads all there are */
	bool optional;           /* we can do without */
	uint32_t watch_s;        /* 300; the server is asked to end the watch after that, or up to twice as long */
	uint32_t stall_ms;       /* 150,000; bookmarks come about once a minute */
	uint32_t backoff_ms;     /* 500 */
	uint32_t backoff_max_ms; /* 30,000 */
	size_t max_object_bytes; /* KUBE_MAX_WATCH_BYTES; of an event */
};

/* The objects are good until the callback returns. Any callback may free the reflector, and its client after it. */
struct kube_reflector_events {
	void (*changed)(void *arg, const struct kube_object *o); /* new, or another version than the last told */
	/* tree is NULL where a list showed that it is gone, or that another one has its name now. */
	void (*deleted)(void *arg, const struct kube_object *o);
	void (*synced)(void *arg); /* NULL: not wanted */
	void *arg;
	/* Of each list; NULL: not wanted. What was written before `lists` (a first page is about to be asked for,
	 * perhaps not for the first time) has been told by `listed`: it is new, changed, gone, or as it was told
	 * before. */
	void (*lists)(void *arg);
	void (*listed)(void *arg);
};

struct kube_reflector_state {
	bool synced;
	bool listing; /* a list is under way or comes next: what is told is in the order of its pages, not of writes */
	bool good;    /* a list or watch is under way, or the last one ended well */
	uint64_t good_at_ms;     /* when the server last said something of use; 0: never */
	bool refused;            /* OPTIONAL: the last list was refused, and none has ended well yet */
	uint64_t lists, watches; /* begun */
	uint64_t events, failures;
	size_t objects;
	struct hm_err last; /* the last failure; code 0: none yet */
};

/* Begins at once, in the loop. The client outlives it. */
int kube_reflector_new(struct kube_client *c, const struct kube_reflector_options *options,
		       const struct kube_reflector_events *events, struct kube_reflector **out,
		       struct hm_err *e) HM_MUST_USE;
void kube_reflector_free(struct kube_reflector *r);
HM_DEFINE_AUTO(kube_reflector, kube_reflector_free);

/* Lists anew, from etcd, a list under way from its first page; all objects are told once more, also those that have not
 * changed. For who must know that nothing written earlier is still to come, or could not take what was told. Not from
 * inside a callback of this reflector. */
void kube_reflector_relist(struct kube_reflector *r);

void kube_reflector_state(const struct kube_reflector *r, struct kube_reflector_state *out);

#endif
