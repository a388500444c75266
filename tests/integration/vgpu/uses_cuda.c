/* A library linked against the driver; loaded with RTLD_DEEPBIND by the probe. */
#include <dlfcn.h>
#include <stddef.h>

int cuMemAlloc_v2(void);
void *linked_address(void);
void *looked_up_address(void);

void *linked_address(void)
{
	return (void *)cuMemAlloc_v2;
}

void *looked_up_address(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);

	return driver != NULL ? dlsym(driver, "cuMemAlloc_v2") : NULL;
}
