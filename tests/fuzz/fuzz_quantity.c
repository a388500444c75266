/* A value agrees with its kind, and with the same in thousandths. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "hami/quantity.h"
#include "io/json.h"

static void check_milli(const char *text)
{
	const struct cJSON value = { .type = cJSON_String, .valuestring = (char *)(uintptr_t)text };
	struct quantity q;
	struct hm_err e;
	int64_t milli;
	int r = quantity_read(&value, &q, &e);

	CHECK(quantity_read_milli(&value, &milli, &e) == r);
	if (r < 0)
		return;
	CHECK((milli > 0) == (q.value > 0) && (milli < 0) == (q.value < 0));
	if (milli > 0 && milli < INT64_MAX)
		CHECK(q.value == milli / 1000 + (milli % 1000 != 0));
	else if (milli == INT64_MAX)
		CHECK(q.value >= INT64_MAX / 1000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct quantity q;
	struct hm_err e;
	char *text = strndup((const char *)data, n);

	if (text != NULL)
		check_milli(text);
	free(text);
	if (quantity_parse((const char *)data, n, &q, &e) < 0)
		return 0;
	if (q.kind == QUANTITY_HUGE)
		CHECK(q.value == INT64_MAX || q.value == INT64_MIN);
	if (q.kind == QUANTITY_FRACTION)
		CHECK(q.value != 0);
	return 0;
}
