/* Every request gets one whole answer, the same whether it comes at once or byte by byte. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/macros.h"
#include "fuzz/fuzz.h"
#include "io/http_answer.h"

static int get_ok(void *arg, struct str *body)
{
	(void)arg;
	str_add(body, "ok\n");
	return 200;
}

static int get_nothing(void *arg, struct str *body)
{
	(void)arg, (void)body;
	return 503;
}

static const struct http_page pages[] = { { .path = "/healthz", .get = get_ok }, { .path = "/", .get = get_nothing } };

static bool ask(const char *in, size_t n, struct str *out)
{
	struct http_rest rest;
	bool answered = http_answer(pages, HM_COUNT(pages), NULL, in, n, out, &rest);

	CHECK(!str_failed(out) && rest.parts == NULL);
	CHECK(answered == (out->n > 0));
	return answered;
}

static void check_answer(const struct str *out, bool head)
{
	const char *text = str_text(out), *body = strstr(text, "\r\n\r\n");
	unsigned status = 0, length = 0;

	CHECK(sscanf(text, "HTTP/1.1 %3u ", &status) == 1);
	CHECK(status == 200 || status == 400 || status == 404 || status == 405 || status == 431 || status == 503);
	CHECK(body != NULL && sscanf(strstr(text, "Content-Length: "), "Content-Length: %u", &length) == 1);
	CHECK(strlen(text) == out->n);
	CHECK(strlen(body + 4) == (head ? 0 : length));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *in = (const char *)data;
	hm_auto_str whole = { 0 };
	size_t first = 0;

	if (!ask(in, n, &whole))
		return 0;
	check_answer(&whole, n >= 5 && memcmp(in, "HEAD ", 5) == 0 && strstr(str_text(&whole), "431") == NULL);
	for (bool done = false; !done; first++) {
		hm_auto_str part = { 0 };

		CHECK(first <= n);
		done = ask(in, first, &part);
		CHECK(!done || first > HTTP_MAX_REQUEST_BYTES ||
		      (part.n == whole.n && memcmp(part.p, whole.p, part.n) == 0));
	}
	return 0;
}
