/* A seeded fault: AddressSanitizer must name overflow_on_purpose. Built only where the sanitizers are on. */
#include <stdlib.h>

__attribute__((noinline)) static int overflow_on_purpose(const int *p, size_t i)
{
	return p[i];
}

int main(int argc, char **argv)
{
	int *p = calloc(4, sizeof *p);
	int v;

	(void)argv;
	if (p == NULL)
		return 2;
	v = overflow_on_purpose(p, 3 + (size_t)argc);
	free(p);
	return v;
}
