#include "sched/serve/secrets.h"

#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <stdint.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "core/fmt.h"
#include "io/dir_watch.h"
#include "io/file.h"
#include "sched/serve/tls_context.h"
#include "sched/serve/token.h"

enum { CERT, KEY, CLIENT_CA, TOKEN, FILE_COUNT };

struct text_set {
	struct str of[FILE_COUNT];
};

struct secrets {
	struct loop *loop;
	const char *paths[FILE_COUNT]; /* NULL: not named */
	struct text_set texts;         /* as read last, good or not */
	struct dir_watch *watches[FILE_COUNT];
	struct loop_timer *look;
	SSL_CTX *ctx;
	struct str token; /* in force */
	uint64_t changes, refusals;
	bool unreadable_said;
};

static void text_set_fini(struct text_set *t)
{
	for (size_t i = 0; i < FILE_COUNT; i++)
		str_wipe(&t->of[i]);
}

static int read_all(const struct secrets *s, struct text_set *out, struct hm_err *e)
{
	for (size_t i = 0; i < FILE_COUNT; i++)
		if (s->paths[i] != NULL && file_read(s->paths[i], SECRETS_MAX_BYTES, &out->of[i], e) < 0)
			return -e->code;
	return 0;
}

static bool same(const struct str *a, const struct str *b)
{
	return a->n == b->n && memcmp(str_text(a), str_text(b), a->n) == 0;
}

/* All of them or none. */
static int put_in_force(struct secrets *s, const struct text_set *t, struct hm_err *e)
{
	hm_auto(ssl_ctx_st) *ctx = NULL;
	hm_auto_secret token = { 0 };

	if (s->paths[CERT] != NULL && tls_context_new(&t->of[CERT], &t->of[KEY], &t->of[CLIENT_CA], &ctx, e) < 0)
		return -e->code;
	if (s->paths[TOKEN] != NULL && token_read(&t->of[TOKEN], &token, e) < 0)
		return -e->code;
	SSL_CTX_free(s->ctx);
	s->ctx = HM_STEAL(ctx);
	str_wipe(&s->token);
	s->token = token;
	token = (struct str) { 0 };
	s->changes++;
	return 0;
}

static void refuse(struct secrets *s, const struct hm_err *why)
{
	s->refusals++;
	log_warn("a changed certificate, key or token is not used; the former stays in force", KV_ERR(why));
}

static bool changed(const struct secrets *s, const struct text_set *fresh)
{
	for (size_t i = 0; i < FILE_COUNT; i++)
		if (!same(&s->texts.of[i], &fresh->of[i]))
			return true;
	return false;
}

static void look(struct secrets *s)
{
	struct text_set fresh = { 0 };
	struct hm_err e;

	if (read_all(s, &fresh, &e) < 0) {
		/* Gone for a moment while it is replaced, or for good: then this is said once. */
		if (!s->unreadable_said)
			refuse(s, &e);
		s->unreadable_said = true;
	} else if (s->unreadable_said = false, changed(s, &fresh)) {
		const struct text_set old = s->texts;

		s->texts = fresh;
		fresh = old;
		if (put_in_force(s, &s->texts, &e) < 0)
			refuse(s, &e);
		else
			log_info("new certificate, key or token in force");
	}
	text_set_fini(&fresh);
}

static void on_dir(void *arg, enum dir_event event, const char *name);

static void watch_folders(struct secrets *s)
{
	for (size_t i = 0; i < FILE_COUNT; i++) {
		const char *slash = s->paths[i] != NULL ? strrchr(s->paths[i], '/') : NULL;
		char folder[4096];
		struct hm_err e;

		if (s->paths[i] == NULL || s->watches[i] != NULL)
			continue;
		hm_fmt(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash - s->paths[i]) : 1,
		       slash != NULL ? s->paths[i] : ".");
		/* Without a watch there is still the slow look. */
		if (dir_watch_new_writes(s->loop, *folder != '\0' ? folder : "/", on_dir, s, &s->watches[i], &e) < 0)
			log_v(2, "a certificate's folder is not watched", KV_ERR(&e));
	}
}

static void on_dir(void *arg, enum dir_event event, const char *name)
{
	struct secrets *s = arg;

	(void)name;
	if (event == DIR_GONE) {
		for (size_t i = 0; i < FILE_COUNT; i++)
			dir_watch_free(HM_STEAL(s->watches[i]));
	}
	loop_timer_arm(s->look, SECRETS_SETTLE_MS);
}

static void on_look(void *arg)
{
	struct secrets *s = arg;

	watch_folders(s);
	look(s);
	loop_timer_arm(s->look, SECRETS_LOOK_MS);
}

int secrets_new(struct loop *l, const struct secrets_files *files, struct secrets **out, struct hm_err *e)
{
	const char *const paths[FILE_COUNT] = { files->cert, files->key, files->client_ca, files->token };
	hm_auto(secrets) *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "certificates");
	s->loop = l;
	for (size_t i = 0; i < FILE_COUNT; i++)
		s->paths[i] = paths[i] != NULL && *paths[i] != '\0' ? paths[i] : NULL;
	if (read_all(s, &s->texts, e) < 0 || loop_timer_new(l, on_look, s, &s->look, e) < 0)
		return -e->code;
	if (put_in_force(s, &s->texts, e) < 0)
		return hm_err_wrap(e, "%s", s->paths[CERT] != NULL ? s->paths[CERT] : s->paths[TOKEN]);
	s->changes = 0;
	watch_folders(s);
	loop_timer_arm(s->look, SECRETS_LOOK_MS);
	*out = HM_STEAL(s);
	return 0;
}

void secrets_free(struct secrets *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < FILE_COUNT; i++)
		dir_watch_free(s->watches[i]);
	loop_timer_free(s->look);
	text_set_fini(&s->texts);
	str_wipe(&s->token);
	SSL_CTX_free(s->ctx);
	free(s);
}

SSL_CTX *secrets_context(const struct secrets *s)
{
	return s->ctx;
}

uint64_t secrets_changes(const struct secrets *s)
{
	return s->changes;
}

uint64_t secrets_refusals(const struct secrets *s)
{
	return s->refusals;
}

HM_DEFINE_AUTO(x509_store_ctx_st, X509_STORE_CTX_free);

/* A connection keeps the authorities that it began with: those in force now are asked, once for each change. */
static bool is_good_now(const struct secrets *s, SSL *ssl, X509 *shown)
{
	void *version = (void *)(uintptr_t)(s->changes + 1);
	hm_auto(x509_store_ctx_st) *check = NULL;

	if (SSL_get_SSL_CTX(ssl) == s->ctx || SSL_get_app_data(ssl) == version)
		return true;
	check = X509_STORE_CTX_new();
	if (check == NULL ||
	    X509_STORE_CTX_init(check, SSL_CTX_get_cert_store(s->ctx), shown, SSL_get_peer_cert_chain(ssl)) != 1 ||
	    X509_STORE_CTX_set_default(check, "ssl_client") != 1 || X509_verify_cert(check) != 1) {
		ERR_clear_error();
		return false;
	}
	SSL_set_app_data(ssl, version);
	return true;
}

static bool has_certificate(const struct secrets *s, SSL *ssl)
{
	X509 *shown = ssl != NULL ? SSL_get0_peer_certificate(ssl) : NULL;

	return shown != NULL && SSL_get_verify_result(ssl) == X509_V_OK && is_good_now(s, ssl, shown);
}

bool secrets_wanted(const struct secrets *s)
{
	return s->paths[CLIENT_CA] != NULL || s->paths[TOKEN] != NULL;
}

bool secrets_admit(const struct secrets *s, SSL *ssl, const char *authorization)
{
	return (s->paths[CLIENT_CA] != NULL && has_certificate(s, ssl)) ||
	       (s->paths[TOKEN] != NULL && token_is_shown(&s->token, authorization));
}
