/* A value agrees with its kind. */
#include "fuzz/fuzz.h"

#include "core/check.h"
#include "hami/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct quantity q;
	struct hm_err e;

	if (quantity_parse((const char *)data, n, &q, &e) < 0)
		return 0;
	if (q.kind == QUANTITY_HUGE)
		CHECK(q.value == INT64_MAX || q.value == INT64_MIN);
	if (q.kind == QUANTITY_FRACTION)
		CHECK(q.value != 0);
	return 0;
}
