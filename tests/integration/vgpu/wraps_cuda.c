/* A preload library behind libvgpu that stands in front of the driver, and asks for the next one as such libraries do.
 */
#include <dlfcn.h>

int cuMemAlloc_v2(void);
void *next_of_wrapper(void);

int cuMemAlloc_v2(void)
{
	return 4712;
}

void *next_of_wrapper(void)
{
	return dlsym(RTLD_NEXT, "cuMemAlloc_v2");
}
