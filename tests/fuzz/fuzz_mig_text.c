/* Whatever is taken can be written and read back, comes out as the same bytes, and says the same to be signed. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "core/check.h"
#include "hami/mig_text.h"
#include "io/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_mig_allocations m = { 0 };
	hm_auto_mig_allocations again = { 0 };
	hm_auto_str text = { 0 };
	hm_auto_str first = { 0 };
	hm_auto_str second = { 0 };
	hm_auto_str signed_first = { 0 };
	hm_auto_str signed_second = { 0 };
	struct hm_err e;

	str_add_n(&text, data, n);
	if (!json_can_say(str_text(&text))) /* an annotation always is UTF-8; other bytes are replaced */
		return 0;
	if (mig_text_parse(str_text(&text), &m, &e) < 0)
		return 0;
	mig_text_write(&m, &first);
	mig_text_write_canonical(&m, &signed_first);
	CHECK(strchr(str_text(&signed_first), '\n') == NULL);
	CHECK(mig_text_parse(str_text(&first), &again, &e) == 0);
	mig_text_write(&again, &second);
	mig_text_write_canonical(&again, &signed_second);
	CHECK(strcmp(str_text(&first), str_text(&second)) == 0);
	CHECK(strcmp(str_text(&signed_first), str_text(&signed_second)) == 0);
	return 0;
}
