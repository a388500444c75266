/* The bearer token of a file, and whether a request shows it. */
#ifndef HM_SCHED_SERVE_TOKEN_H
#define HM_SCHED_SERVE_TOKEN_H

#include <stdbool.h>

#include "base/str.h"
#include "core/err.h"

/* The file's text without the white space behind it; appended. -HM_EINVAL where nothing is left, or a NUL is in it. */
int token_read(const struct str *text, struct str *out, struct hm_err *e) HM_MUST_USE;

/* `authorization`: the header, or NULL. In a time that does not tell how much of it is right. */
bool token_is_shown(const struct str *token, const char *authorization);

#endif
