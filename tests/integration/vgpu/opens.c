/* A library with an RPATH: what it opens by a bare name is searched for there first. */
#include <dlfcn.h>

void *open_it(const char *name, int flags);

void *open_it(const char *name, int flags)
{
	return dlopen(name, flags);
}
