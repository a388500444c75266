#include "base/array.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

bool array_reserve(void *items, size_t *cap, size_t want, size_t size)
{
	size_t n = *cap > 0 ? *cap : 4;
	void *p;

	if (want <= *cap)
		return true;
	if (want > SIZE_MAX / 4 / size) /* so that no doubling overflows */
		return false;
	while (n < want)
		n *= 2;
	memcpy(&p, items, sizeof p);
	p = realloc(p, n * size);
	if (p == NULL)
		return false;
	memcpy(items, &p, sizeof p);
	*cap = n;
	return true;
}
