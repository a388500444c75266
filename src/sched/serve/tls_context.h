/* A TLS server's context (OpenSSL) from PEM texts: TLS 1.2 at least, no renegotiation, buffers given back while a
 * connection is idle. */
#ifndef HM_SCHED_SERVE_TLS_CONTEXT_H
#define HM_SCHED_SERVE_TLS_CONTEXT_H

#include <openssl/ssl.h>

#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"

HM_DEFINE_AUTO(ssl_ctx_st, SSL_CTX_free);

/* client_ca "" : clients are not asked for a certificate. Else they may show one, which must then be good. A key with a
 * passphrase is refused. -HM_EINVAL says which of the three is bad, and how. */
int tls_context_new(const struct str *cert, const struct str *key, const struct str *client_ca, SSL_CTX **out,
		    struct hm_err *e) HM_MUST_USE;

#endif
