/* The limit file: whatever is accepted can be written, and reads back the same. */
#include <assert.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "region/limit_file.h"

static int same(const struct limits *a, const struct limits *b)
{
	for (size_t i = 0; i < a->count; i++) {
		if (strcmp(a->cards[i].uuid, b->cards[i].uuid) != 0 ||
		    a->cards[i].memory_bytes != b->cards[i].memory_bytes || a->cards[i].cores != b->cards[i].cores)
			return 0;
	}
	return a->count == b->count && a->priority == b->priority && a->policy == b->policy &&
	       a->oversubscribe == b->oversubscribe;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static char text[LIMIT_FILE_MAX_BYTES];
	struct limits a, b;
	struct hm_err e = { 0 };
	size_t length;

	if (limits_parse((const char *)data, n, &a, &e) < 0) {
		assert(e.code != 0 && e.msg[0] != '\0');
		return 0;
	}
	length = limits_write(&a, text, sizeof text);
	assert(length > 0);
	assert(limits_parse(text, length, &b, &e) == 0 && same(&a, &b));
	return 0;
}
