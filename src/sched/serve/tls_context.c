#include "sched/serve/tls_context.h"

#include <limits.h>
#include <openssl/err.h>
#include <openssl/pem.h>

static int fail(struct hm_err *e, const char *what)
{
	unsigned long code = ERR_peek_last_error();
	const char *why = code != 0 ? ERR_reason_error_string(code) : NULL;

	hm_err_set(e, HM_EINVAL, "%s: %s", what, why != NULL ? why : "not good");
	ERR_clear_error();
	return -e->code;
}

static void bio_free(struct bio_st *b)
{
	BIO_free(b);
}
HM_DEFINE_AUTO(bio_st, bio_free);
HM_DEFINE_AUTO(x509_st, X509_free);
HM_DEFINE_AUTO(evp_pkey_st, EVP_PKEY_free);

static BIO *bio_of(const struct str *pem)
{
	return pem->n <= INT_MAX ? BIO_new_mem_buf(str_text(pem), (int)pem->n) : NULL;
}

/* Without this OpenSSL would ask at the terminal. */
static int no_passphrase(char *buf, int size, int writing, void *arg)
{
	(void)buf, (void)size, (void)writing, (void)arg;
	return -1;
}

/* The first certificate is ours, those behind it vouch for it. */
static int use_chain(SSL_CTX *ctx, const struct str *pem, struct hm_err *e)
{
	hm_auto(bio_st) *bio = bio_of(pem);
	hm_auto(x509_st) *own = bio != NULL ? PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL) : NULL;

	if (own == NULL || SSL_CTX_use_certificate(ctx, own) != 1)
		return fail(e, "the certificate");
	for (;;) {
		hm_auto(x509_st) *next = PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);

		if (next == NULL)
			break;
		if (SSL_CTX_add1_chain_cert(ctx, next) != 1)
			return fail(e, "the certificate's chain");
	}
	if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return fail(e, "the certificate's chain");
	ERR_clear_error();
	return 0;
}

static int use_key(SSL_CTX *ctx, const struct str *pem, struct hm_err *e)
{
	hm_auto(bio_st) *bio = bio_of(pem);
	hm_auto(evp_pkey_st) *key = bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;

	/* Refuses a key that is not the certificate's, too. */
	if (key == NULL || SSL_CTX_use_PrivateKey(ctx, key) != 1 || SSL_CTX_check_private_key(ctx) != 1)
		return fail(e, "the private key");
	return 0;
}

static int use_client_ca(SSL_CTX *ctx, const struct str *pem, struct hm_err *e)
{
	hm_auto(bio_st) *bio = bio_of(pem);
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	size_t count = 0;

	if (bio == NULL)
		return fail(e, "the clients' authorities");
	for (;; count++) {
		hm_auto(x509_st) *ca = PEM_read_bio_X509_AUX(bio, NULL, no_passphrase, NULL);

		if (ca == NULL)
			break;
		if (X509_STORE_add_cert(store, ca) != 1 || SSL_CTX_add_client_CA(ctx, ca) != 1)
			return fail(e, "the clients' authorities");
	}
	if (count == 0 || ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE)
		return fail(e, "the clients' authorities");
	ERR_clear_error();
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	return 0;
}

int tls_context_new(const struct str *cert, const struct str *key, const struct str *client_ca, SSL_CTX **out,
		    struct hm_err *e)
{
	static const unsigned char name[] = "hami-scheduler";
	hm_auto(ssl_ctx_st) *ctx = SSL_CTX_new(TLS_server_method());

	if (ctx == NULL || SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) != 1 ||
	    /* What a client may resume is told apart by name: needed where clients show certificates. */
	    SSL_CTX_set_session_id_context(ctx, name, sizeof name - 1) != 1)
		return hm_err_set(e, HM_ENOMEM, "TLS");
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS);
	if (use_chain(ctx, cert, e) < 0 || use_key(ctx, key, e) < 0)
		return -e->code;
	if (client_ca->n > 0 && use_client_ca(ctx, client_ca, e) < 0)
		return -e->code;
	*out = HM_STEAL(ctx);
	return 0;
}
