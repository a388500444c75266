/* What files say who we are and whom we serve, a NUL between them: certificate, key, authorities, token. They are good,
 * or an error says which is not; nothing is left of OpenSSL's for the next. */
#include "fuzz/fuzz.h"

#include <openssl/err.h>
#include <string.h>

#include "core/check.h"
#include "core/cursor.h"
#include "sched/serve/tls_context.h"
#include "sched/serve/token.h"

static void try_token(const struct str *file)
{
	hm_auto_str token = { 0 }, header = { 0 };
	struct hm_err e = { 0 };

	if (token_read(file, &token, &e) < 0) {
		CHECK(e.code != 0);
		return;
	}
	CHECK(token.n > 0 && token.n <= file->n && memcmp(token.p, file->p, token.n) == 0);
	str_addf(&header, "bearer %s", str_text(&token));
	CHECK(token_is_shown(&token, str_text(&header)));
	CHECK(!token_is_shown(&token, str_text(&header) + 1));
	str_addc(&header, 'x');
	CHECK(!token_is_shown(&token, str_text(&header)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cur c = cur_of((const char *)data, n);
	struct str files[4] = { 0 };
	hm_auto(ssl_ctx_st) *ctx = NULL;
	struct hm_err e = { 0 };
	int r;

	for (size_t i = 0; i < HM_COUNT(files) && !cur_at_end(&c); i++) {
		struct piece part = i + 1 < HM_COUNT(files) ? cur_item(&c, '\0') : cur_rest(&c);

		str_add_n(&files[i], part.p, part.n);
	}
	r = tls_context_new(&files[0], &files[1], &files[2], &ctx, &e);
	CHECK((r == 0) == (ctx != NULL) && (r == 0 || e.code != 0) && ERR_peek_error() == 0);
	try_token(&files[3]);
	for (size_t i = 0; i < HM_COUNT(files); i++)
		str_fini(&files[i]);
	return 0;
}
