#include "model/placement/recall.h"

#include <stdlib.h>

#include "core/check.h"

struct recall *recall_new(unsigned bits)
{
	enum { LINE = sizeof(struct recall_set) };
	hm_auto(recall) *r = calloc(1, sizeof *r);

	CHECK(bits > 0 && bits <= 32);
	if (r == NULL)
		return NULL;
	r->bits = bits;
	r->memory = calloc(((size_t)1 << bits) + 1, LINE);
	if (r->memory == NULL)
		return NULL;
	r->sets = (struct recall_set *)(((uintptr_t)r->memory + LINE - 1) / LINE * LINE);
	return HM_STEAL(r);
}

void recall_free(struct recall *r)
{
	if (r == NULL)
		return;
	free(r->memory);
	free(r);
}
