#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "sim/cuda/ptx.h"

/* What is read is within its bounds, whatever the text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct ptx p;

	if (ptx_read((const char *)data, n, &p) != PTX_OK)
		return 0;
	if (p.count > PTX_ENTRIES || p.target == 0)
		abort();
	for (unsigned i = 0; i < p.count; i++)
		if (p.entries[i].params > PTX_PARAMS || memchr(p.entries[i].name, 0, PTX_NAME_BYTES) == NULL)
			abort();
	ptx_clear(&p);
	return 0;
}
