/* lookup-probe: prints the addresses that the ways to a driver's function lead to, one "WAY LIBRARY" a line, the
 * library by the name the linker knows it by. Linked against libcuda. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int cuMemAlloc_v2(void);

static const char *library_of(void *address)
{
	Dl_info info;
	const char *slash;

	if (address == NULL)
		return "none";
	if (dladdr(address, &info) == 0)
		return "unknown";
	slash = strrchr(info.dli_fname, '/');
	return slash != NULL ? slash + 1 : info.dli_fname;
}

static void say(const char *way, void *address)
{
	printf("%s %s\n", way, library_of(address));
}

static void through_library(const char *way, int flags)
{
	void *handle = dlopen("libuses_cuda.so", flags);
	void *(*linked)(void) = handle != NULL ? (void *(*)(void))dlsym(handle, "linked_address") : NULL;
	void *(*looked_up)(void) = handle != NULL ? (void *(*)(void))dlsym(handle, "looked_up_address") : NULL;
	char name[64];

	snprintf(name, sizeof name, "%s-linked", way);
	say(name, linked != NULL ? linked() : NULL);
	snprintf(name, sizeof name, "%s-dlsym", way);
	say(name, looked_up != NULL ? looked_up() : NULL);
	if (handle != NULL)
		dlclose(handle);
}

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	void *own = dlopen("libown_cuda.so", RTLD_NOW | RTLD_LOCAL);
	void *(*next_of_wrapper)(void) = (void *(*)(void))dlsym(RTLD_DEFAULT, "next_of_wrapper");
	void *(*by_version)(void *, const char *, const char *);

	errno = 4711;
	say("linked", (void *)cuMemAlloc_v2);
	say("handle", dlsym(driver, "cuMemAlloc_v2"));
	say("default", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	say("next", dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
	say("self", dlsym(dlopen(NULL, RTLD_NOW), "cuMemAlloc_v2"));
	say("passed", dlsym(driver, "cuMemcpy"));
	say("absent", dlsym(driver, "cuMemAlloc_v99"));
	say("own", own != NULL ? dlsym(own, "cuMemAlloc_v2") : NULL);
	say("next-of-wrapper", next_of_wrapper != NULL ? next_of_wrapper() : NULL);
	by_version = (void *(*)(void *, const char *, const char *))dlsym(RTLD_DEFAULT, "dlvsym");
	say("dlvsym", (void *)by_version);
	say("dlsym-by-dlvsym", by_version(RTLD_DEFAULT, "dlsym", "GLIBC_2.2.5"));
	say("dlsym-by-dlvsym-234", by_version(RTLD_DEFAULT, "dlsym", "GLIBC_2.34"));
	say("dlsym-by-next", dlsym(RTLD_NEXT, "dlsym"));
	say("dlopen-by-next", dlsym(RTLD_NEXT, "dlopen"));
	say("dlopen-by-handle", dlsym(dlopen("libc.so.6", RTLD_NOW), "dlopen"));
	printf("no-handle-error %s\n", dlsym(driver, "nonsense") == NULL && dlerror() != NULL ? "set" : "unset");
	through_library("plain", RTLD_NOW);
	through_library("deepbind", RTLD_NOW | RTLD_DEEPBIND);
	return 0;
}
