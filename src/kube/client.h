/* Requests to the API server: who we are, how often we ask, and what to do when it says "not now".
 *
 *  - 401: the token's file is read again, and the request tried once more.
 *  - 429: tried again after Retry-After (at most KUBE_MAX_RETRY_AFTER_S; without one, after the back-off), up to
 *    KUBE_MAX_THROTTLED_TRIES times.
 *  - no answer or 5xx: a GET is tried again with back-off and jitter, `tries` in all. Others are not: they may have
 *    been done. (But libcurl sends any request again, but one that is `once`, whose kept connection turns out to be
 *    closed before a byte of an answer: a change may so be done twice, and is to have a precondition or a name of its
 *    own.)
 *
 * Callbacks come from the loop, never from inside a call of this module; they may start and cancel calls and free the
 * client. */
#ifndef HM_KUBE_CLIENT_H
#define HM_KUBE_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "kube/config.h"
#include "kube/stats.h"
#include "kube/status.h"

enum {
	KUBE_MAX_RETRY_AFTER_S = 60,
	KUBE_MAX_THROTTLED_TRIES = 10,
	KUBE_MAX_ANSWER_BYTES = 16 << 20, /* the default */
};

struct kube_client;
struct kube_call;

/* 0 is the default. */
struct kube_client_options {
	const char *user_agent;     /* "hami-vgpu" */
	uint32_t connect_ms;        /* 5,000 */
	uint32_t request_ms;        /* 30,000; of each try */
	uint32_t backoff_ms;        /* 500, doubled to */
	uint32_t backoff_max_ms;    /* 30,000 */
	unsigned tries;             /* 4; of a GET */
	unsigned max_connections;   /* 16 */
	size_t max_bytes;           /* KUBE_MAX_ANSWER_BYTES */
	uint32_t per_second, burst; /* our own rate; 0: none. burst: 2 * per_second */
};

/* The config moves in, whether this succeeds or not. A token file must hold a token now. */
int kube_client_new(struct loop *l, struct kube_config *take_config, const struct kube_client_options *options,
		    struct kube_client **out, struct hm_err *e) HM_MUST_USE;
/* Calls end without their callbacks; whoever holds the client (reflectors, events) is freed before. */
void kube_client_free(struct kube_client *c);
HM_DEFINE_AUTO(kube_client, kube_client_free);

const struct kube_stats *kube_client_stats(const struct kube_client *c);
struct loop *kube_client_loop(const struct kube_client *c);
size_t kube_client_max_bytes(const struct kube_client *c); /* of an answer */

#define KUBE_JSON "application/json"
#define KUBE_MERGE_PATCH "application/merge-patch+json"
#define KUBE_STRATEGIC_PATCH "application/strategic-merge-patch+json"

struct kube_request {
	enum kube_verb verb;
	const char *path;         /* kube/url.h makes it */
	const char *content_type; /* of the body; NULL: no body */
	const char *body;
	size_t n;
	uint32_t timeout_ms; /* of each try; 0: the client's. Of a watch: of all, 0: no limit */
	uint32_t stall_ms;   /* of a watch: silence that ends it; 0: no limit */
	unsigned tries;      /* of a GET; 0: the client's */
	/* The caller decides about each send. A call that is taken is on its way at once, before those that wait for
	 * our own rate; where that has no room, -HM_EAGAIN. A 401 (the token was read again by then) and a 429 are
	 * answered and not tried again: what was answered so was not done. The body leaves once: a kept connection
	 * that breaks before an answer is no answer. */
	bool once;
};

struct kube_answer {
	struct kube_status status; /* outcome KUBE_DONE: http and body count */
	struct hm_err err;         /* code 0 when done; else what a log line should say, with method and path */
	const char *body;          /* good until the callback returns; NUL-terminated */
	size_t n;
	uint32_t retry_after_ms; /* what the server asked for with a 429 or 5xx that was not tried again */
};

struct kube_events_of_call {
	void (*data)(void *arg, const char *bytes, size_t n);      /* KUBE_WATCH only: what a 2xx answer says */
	void (*done)(void *arg, const struct kube_answer *answer); /* exactly once; the call is gone by then */
	void *arg;
};

/* All is copied. *out (may be NULL) can be cancelled until done was called. On failure no callback comes. A KUBE_WATCH
 * is a GET whose answer is handed over as it comes; it is tried again only for a 401. */
int kube_client_call(struct kube_client *c, const struct kube_request *request,
		     const struct kube_events_of_call *events, struct kube_call **out, struct hm_err *e) HM_MUST_USE;
/* No callback comes any more. NULL does nothing. */
void kube_call_cancel(struct kube_call *k);

#endif
