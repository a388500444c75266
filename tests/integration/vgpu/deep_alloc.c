/* A library that the tests open with RTLD_DEEPBIND: it allocates by each kind of reference to the driver. Built to be
 * bound lazily, and at once with all its slots read-only. */
#include <dlfcn.h>
#include <stddef.h>

int cuMemAlloc_v2(unsigned long long *out, size_t bytes);
int by_call(size_t bytes);
int by_table(size_t bytes);
int by_dlsym(size_t bytes);
int by_next(size_t bytes);

typedef int alloc_function(unsigned long long *out, size_t bytes);

static struct {
	int number;
	alloc_function *function;
} table = { 1, cuMemAlloc_v2 };

static int try(alloc_function *function, size_t bytes)
{
	unsigned long long ptr = 0;

	return function != NULL ? function(&ptr, bytes) : -1;
}

int by_call(size_t bytes)
{
	unsigned long long ptr = 0;

	return cuMemAlloc_v2(&ptr, bytes);
}

int by_table(size_t bytes)
{
	return try(table.function, bytes);
}

int by_dlsym(size_t bytes)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	return try(driver != NULL ? (alloc_function *)dlsym(driver, "cuMemAlloc_v2") : NULL, bytes);
}

int by_next(size_t bytes)
{
	return try((alloc_function *)dlsym(RTLD_NEXT, "cuMemAlloc_v2"), bytes);
}
