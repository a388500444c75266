#include "sched/serve/token.h"

#include <openssl/crypto.h>
#include <string.h>
#include <strings.h>

int token_read(const struct str *text, struct str *out, struct hm_err *e)
{
	size_t n = text->n;

	while (n > 0 && strchr(" \t\r\n", text->p[n - 1]) != NULL && text->p[n - 1] != '\0')
		n--;
	if (n == 0 || memchr(text->p, '\0', n) != NULL)
		return hm_err_set(e, HM_EINVAL, "the token's file holds none");
	str_add_n(out, text->p, n);
	return str_failed(out) ? hm_err_set(e, HM_ENOMEM, "the token") : 0;
}

bool token_is_shown(const struct str *token, const char *authorization)
{
	static const char bearer[] = "Bearer ";

	if (authorization == NULL || strncasecmp(authorization, bearer, sizeof bearer - 1) != 0)
		return false;
	authorization += sizeof bearer - 1;
	return strlen(authorization) == token->n && CRYPTO_memcmp(authorization, token->p, token->n) == 0;
}
