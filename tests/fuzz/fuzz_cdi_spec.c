/* Whatever is taken can be written as a spec of ours (if it has edits), read back, and comes out as the same bytes. */
#include "fuzz/fuzz.h"
#include <string.h>

#include "cdi/spec.h"
#include "core/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(cdi_spec) *s = NULL, *again = NULL;
	hm_auto_str first = { 0 }, second = { 0 };
	struct hm_err e;

	if (cdi_spec_parse((const char *)data, n, &s, &e) < 0)
		return 0;
	for (size_t i = 0; i < s->device_count; i++)
		CHECK(cdi_spec_device(s, s->devices[i].name) == &s->devices[i]);
	if (cdi_edits_append(&s->edits, &s->devices[0].edits) < 0 ||
	    cdi_spec_write(s->kind, s->devices[0].name, &s->edits, &first, &e) < 0)
		return 0;
	CHECK(cdi_spec_parse(str_text(&first), first.n, &again, &e) == 0);
	CHECK(cdi_spec_write(again->kind, again->devices[0].name, &again->devices[0].edits, &second, &e) == 0);
	CHECK(strcmp(str_text(&first), str_text(&second)) == 0);
	return 0;
}
