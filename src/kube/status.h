/* The API's answers that say no: HTTP status and a Status object, in terms that callers can act on. */
#ifndef HM_KUBE_STATUS_H
#define HM_KUBE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct cJSON;

enum kube_outcome {
	KUBE_DONE,         /* 2xx */
	KUBE_NO_ANSWER,    /* no connection, a timeout, a broken answer */
	KUBE_BAD_REQUEST,  /* 400, 405, 406, 415 and kin: our mistake, or an older server */
	KUBE_UNAUTHORIZED, /* 401 */
	KUBE_FORBIDDEN,    /* 403 */
	KUBE_NOT_FOUND,    /* 404 */
	KUBE_EXISTS,       /* 409 AlreadyExists */
	KUBE_CONFLICT,     /* another version or UID than the precondition says: 409, or 422 about metadata.uid */
	KUBE_GONE,         /* 410: the resourceVersion or the page is no longer kept */
	KUBE_INVALID,      /* 422 */
	KUBE_TOO_MANY,     /* 429 */
	KUBE_SERVER_ERROR, /* 5xx */
};

struct kube_status {
	enum kube_outcome outcome;
	int http;               /* status code; 0: no answer */
	char reason[64];        /* "Conflict", "Expired"; "" where none is given */
	char message[256];      /* printable, cut where it does not fit */
	uint32_t retry_after_s; /* of the Status; 0: not given */
};

/* What the answer with this HTTP status (not 2xx) and body says; a body that is no Status gives its first bytes as the
 * message. Never fails. */
void kube_status_of_body(int http, const char *body, size_t n, struct kube_status *out);
/* A Status object in a watch's ERROR event: its `code` is the HTTP status. */
void kube_status_of_tree(const struct cJSON *tree, struct kube_status *out);

/* The error of an outcome that is not KUBE_DONE: "409 Conflict: <message>". Returns -code. HM_EAGAIN for CONFLICT,
 * TOO_MANY and SERVER_ERROR; HM_ENOTFOUND, HM_EEXIST, HM_EPERM, HM_EINVAL by name. */
int kube_status_err(const struct kube_status *s, struct hm_err *e);

#endif
