/* A seeded fault: LeakSanitizer must name leak_on_purpose. Built only where the sanitizers are on. */
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void leak_on_purpose(void)
{
	char *volatile p = malloc(100);

	if (p != NULL)
		memset(p, 1, 100);
	p = NULL;
}

int main(void)
{
	leak_on_purpose();
	return 0;
}
