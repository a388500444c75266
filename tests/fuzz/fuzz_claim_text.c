/* Whatever is taken can be written and read back, and comes out as the same bytes. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "core/check.h"
#include "model/claim_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_str first = { 0 };
	hm_auto_str second = { 0 };
	struct claim claim, again;
	struct hm_err e;

	if (claim_parse((const char *)data, n, &claim, &e) < 0)
		return 0;
	claim_write(&claim, &first);
	CHECK(claim_parse(str_text(&first), first.n, &again, &e) == 0);
	claim_write(&again, &second);
	CHECK(strcmp(str_text(&first), str_text(&second)) == 0);
	CHECK(claim.device_count == again.device_count && claim.card_count == again.card_count);
	claim_fini(&claim);
	claim_fini(&again);
	return 0;
}
