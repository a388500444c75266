/* A seeded fault: sprintf() in a comment and "strcpy(" in a string are fine, the call below is not. */
#include <stdio.h>

void bad_call(char *out);
void bad_call(char *out)
{
	puts("strcpy(a, b)");
	sprintf(out, "x");
}

/* docs/nowhere.md */
