/* The files that say who we are and whom we serve: certificate, key, clients' authorities, bearer token. They are
 * looked at anew when their folders change and every SECRETS_LOOK_MS. What cannot be used leaves the former in force,
 * with a warning; connections keep the context that they began with. */
#ifndef HM_SCHED_SERVE_SECRETS_H
#define HM_SCHED_SERVE_SECRETS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

enum {
	SECRETS_LOOK_MS = 10000,
	SECRETS_SETTLE_MS = 100, /* after a change: several files may be on their way */
	SECRETS_MAX_BYTES = 1 << 20,
};

/* Paths; NULL or "" is absent. Both of cert and key, or neither. */
struct secrets_files {
	const char *cert, *key, *client_ca, *token;
};

struct secrets;

/* The paths are borrowed. What is named must be good now. */
int secrets_new(struct loop *l, const struct secrets_files *files, struct secrets **out, struct hm_err *e) HM_MUST_USE;
void secrets_free(struct secrets *s);
HM_DEFINE_AUTO(secrets, secrets_free);

SSL_CTX *secrets_context(const struct secrets *s); /* NULL: plain HTTP */
uint64_t secrets_changes(const struct secrets *s); /* times that something new came into force */
uint64_t secrets_refusals(const struct secrets *s);

/* Must clients show something? Not where neither authorities nor a token are named. */
bool secrets_wanted(const struct secrets *s);
/* Has this client shown what is wanted now? `ssl`: its connection, NULL where plain; `authorization`: the header, or
 * NULL. A certificate counts as long as those authorities vouch for it that are in force, however old the connection.
 */
bool secrets_admit(const struct secrets *s, SSL *ssl, const char *authorization);

#endif
