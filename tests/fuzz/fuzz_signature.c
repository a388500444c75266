/* The first line is a signature, the next ones a placement. No key is known: none is ever accepted. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "hami/signature.h"

/* An empty folder's keys, made once. */
static struct signature_keys *no_keys(void)
{
	static struct signature_keys *keys;
	char dir[] = "/tmp/hami-fuzz.XXXXXX";
	struct hm_err e;

	if (keys == NULL) {
		CHECK(mkdtemp(dir) != NULL && signature_keys_open(dir, &keys, &e) == 0);
		CHECK(rmdir(dir) == 0);
	}
	return keys;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_str text = { 0 };
	hm_auto_str signed_text = { 0 };
	const char *line[6] = { NULL };
	struct placement p;
	struct hm_err e;
	char *rest;

	str_add_n(&text, data, n);
	rest = text.p;
	for (size_t i = 0; i < HM_COUNT(line) && rest != NULL; i++)
		line[i] = i + 1 < HM_COUNT(line) ? strsep(&rest, "\n") : rest;
	p = (struct placement) { line[1], line[2], line[3], line[4], line[5] };
	if (signature_text(&p, &signed_text, &e) == 0)
		CHECK(signed_text.p[signed_text.n - 1] == '\n');
	CHECK(signature_verify(no_keys(), &p, line[0], &e) < 0);
	return 0;
}
