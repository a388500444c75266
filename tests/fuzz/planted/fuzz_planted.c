/* A seeded fault: an input that starts with BOOM ends the program in planted_fault(). */
#include <stdlib.h>

#include "fuzz/fuzz.h"

__attribute__((noinline)) static void planted_fault(void)
{
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	if (n > 3 && data[0] == 'B' && data[1] == 'O' && data[2] == 'O' && data[3] == 'M')
		planted_fault();
	return 0;
}
