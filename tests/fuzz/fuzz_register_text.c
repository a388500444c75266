/* Whatever is taken can be written and read back, and comes out as the same bytes. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "core/check.h"
#include "hami/register_text.h"
#include "io/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_node_register reg = { 0 };
	hm_auto_node_register again = { 0 };
	hm_auto_str text = { 0 };
	hm_auto_str first = { 0 };
	hm_auto_str second = { 0 };
	struct hm_err e;

	str_add_n(&text, data, n);
	if (!json_can_say(str_text(&text))) /* an annotation always is UTF-8; other bytes are replaced */
		return 0;
	if (register_text_parse(str_text(&text), &reg, &e) < 0)
		return 0;
	register_text_write(&reg, &first);
	if (first.n > REGISTER_TEXT_MAX_BYTES)
		return 0;
	CHECK(register_text_parse(str_text(&first), &again, &e) == 0);
	register_text_write(&again, &second);
	CHECK(strcmp(str_text(&first), str_text(&second)) == 0);
	CHECK(reg.device_count == again.device_count && reg.profile_count == again.profile_count &&
	      reg.placement_count == again.placement_count);
	return 0;
}
