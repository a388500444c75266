/* For musl (Alpine): looks symbols up in every way, says what came of it. With -DDRIVER: a driver of one function. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef DRIVER
int cuMemAlloc_v2(unsigned long long *out, size_t bytes)
{
	*out = bytes;
	return 0;
}

int cuCtxGetDevice(int *out)
{
	*out = 0;
	return 0;
}
#else
static void tell(const char *what, void *p)
{
	Dl_info info;

	printf("%s: %s\n", what,
	       p == NULL               ? "nothing"
	       : dladdr(p, &info) == 0 ? "?"
				       : strrchr(info.dli_fname, '/') + 1);
}

int main(int argc, char **argv)
{
	void *lib = dlopen(argv[argc - 1], RTLD_NOW);
	int (*alloc)(unsigned long long *, size_t) = lib == NULL ? NULL : dlsym(lib, "cuMemAlloc_v2");
	unsigned long long p = 0;

	errno = 7;
	tell("in the library", (void *)alloc);
	tell("strlen", dlsym(RTLD_DEFAULT, "strlen"));
	tell("getpid, next", dlsym(RTLD_NEXT, "getpid"));
	tell("no such", dlsym(RTLD_DEFAULT, "no_such_function"));
	printf("why: %d\n", dlerror() != NULL);
	printf("no such library: %d %d\n", dlopen("/no/such/library.so", RTLD_NOW) != NULL, dlerror() != NULL);
	if (alloc != NULL)
		printf("80 MiB: %d\n", alloc(&p, (size_t)80 << 20));
	return 0;
}
#endif
