/* The bearer token: fixed, or in a file that the kubelet renews (about hourly) by a rename. Reads no clock. */
#ifndef HM_KUBE_TOKEN_H
#define HM_KUBE_TOKEN_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/str.h"
#include "core/err.h"

enum { KUBE_MAX_TOKEN_BYTES = 16384 };

struct kube_token {
	const char *file; /* borrowed; NULL: fixed */
	struct str text;  /* "" where there is none */
	struct stat seen; /* the file as it was when the text was read */
};

/* One of file and text, or neither (both borrowed; the text is copied). A file is not read yet. -HM_ENOMEM. */
int kube_token_init(struct kube_token *t, const char *file, const char *text, struct hm_err *e) HM_MUST_USE;
void kube_token_fini(struct kube_token *t); /* overwrites it */

/* Reads the file again where it is another than before, or where `force` says so. *changed: the text is another.
 * On failure the text is what it was: an old token is better than none. -HM_EINVAL where the file holds no token. */
int kube_token_refresh(struct kube_token *t, bool force, bool *changed, struct hm_err *e) HM_MUST_USE;

#endif
