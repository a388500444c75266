/* Lookups that libraries make for themselves. */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "fill.h"
#include "paths.h"

/* dlsym of a named version, as its address differs from the plain one's in no libc. */
static void run_dlvsym(void)
{
	static const char *const versions[] = { "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34" };
	void *handle = dlopen("libcuda.so.1", RTLD_NOW), *address = NULL;
	void *(*look)(void *, const char *);

	for (size_t i = 0; address == NULL && i < HM_COUNT(versions); i++)
		address = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	if (address == NULL)
		check_not_available("this libc has no dlsym of a version known here");
	memcpy(&look, &address, sizeof look);
	fill_by_addresses(look(handle, "cuMemAlloc_v2"), look(handle, "cuMemFree_v2"));
}

/* A library whose own references go to what it brings along before anything that was preloaded. */
static void run_deep_library(void)
{
	char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "/libcuda-deep.so");
	char *slash;
	void *handle;

	if (n < 0)
		check_not_available("/proc does not say where this program is");
	path[n] = '\0';
	slash = strrchr(path, '/');
	snprintf(slash, sizeof "/libcuda-deep.so", "/libcuda-deep.so");
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	if (handle == NULL)
		check_not_available("%s", dlerror());
	fill_by_addresses(dlsym(handle, "deep_alloc"), dlsym(handle, "deep_free"));
}

const struct path paths_loader[] = {
	{ "lookup-dlvsym-of-dlsym", run_dlvsym, BARE_BREAKS },
	{ "lookup-deep-library", run_deep_library, BARE_BREAKS },
	{ 0 },
};
