/* Whatever is taken can be written and read back, and comes out as the same bytes. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "core/check.h"
#include "model/node_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto_str first = { 0 };
	hm_auto_str second = { 0 };
	struct node_text node, again;
	struct hm_err e;

	if (node_text_parse((const char *)data, n, &node, &e) < 0)
		return 0;
	node_text_write(&node, &first);
	CHECK(first.n <= NODE_TEXT_MAX_BYTES);
	CHECK(node_text_parse(str_text(&first), first.n, &again, &e) == 0);
	node_text_write(&again, &second);
	CHECK(strcmp(str_text(&first), str_text(&second)) == 0);
	return 0;
}
