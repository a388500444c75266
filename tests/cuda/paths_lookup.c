/* The ways to a driver function: each ends at the same limit. */
#include <dlfcn.h>
#include <string.h>

#include "fill.h"
#include "paths.h"

static void by_handle(void *handle)
{
	fill_by_addresses(dlsym(handle, "cuMemAlloc_v2"), dlsym(handle, "cuMemFree_v2"));
}

static void run_handle(void)
{
	by_handle(dlopen("libcuda.so.1", RTLD_NOW));
}
static void run_deepbind(void)
{
	by_handle(dlopen("libcuda.so.1", RTLD_NOW | RTLD_DEEPBIND));
}
static void run_default(void)
{
	by_handle(RTLD_DEFAULT);
}
static void run_next(void)
{
	by_handle(RTLD_NEXT);
}
/* dlsym itself looked up, as some runtimes do to get around wrappers. */
static void run_dlsym_of_dlsym(void)
{
	void *(*look)(void *, const char *);
	void *address = dlsym(RTLD_NEXT, "dlsym"), *handle = dlopen("libcuda.so.1", RTLD_NOW);

	memcpy(&look, &address, sizeof look);
	fill_by_addresses(look(handle, "cuMemAlloc_v2"), look(handle, "cuMemFree_v2"));
}

static void *found(const char *name, int version, cuuint64_t flags, bool second)
{
	CUdriverProcAddressQueryResult status = 0;
	void *out = NULL;

	if (second)
		OK(cuGetProcAddress_v2(name, &out, version, flags, &status));
	else
		OK(cuGetProcAddress(name, &out, version, flags));
	return out;
}

static void by_address(cuuint64_t flags, bool second)
{
	OK(cuInit(0));
	fill_by_addresses(found("cuMemAlloc", 3020, flags, second), found("cuMemFree", 3020, flags, second));
}

static void run_address(void)
{
	NEED(cuGetProcAddress);
	by_address(CU_GET_PROC_ADDRESS_DEFAULT, false);
}
static void run_address_2(void)
{
	NEED(cuGetProcAddress_v2);
	by_address(CU_GET_PROC_ADDRESS_DEFAULT, true);
}
static void run_address_legacy(void)
{
	NEED(cuGetProcAddress_v2);
	by_address(CU_GET_PROC_ADDRESS_LEGACY_STREAM, true);
}

/* With the flag of per-thread streams the asynchronous calls are other functions. */
static __typeof__(&cuMemAllocAsync) alloc_async;
static __typeof__(&cuMemFreeAsync) free_async;

static CUresult take_async(uint64_t *out, size_t bytes)
{
	return alloc_async((CUdeviceptr *)out, bytes, NULL);
}
static CUresult give_async(uint64_t what)
{
	return free_async(what, NULL);
}

static void run_address_per_thread(void)
{
	NEED(cuGetProcAddress_v2);
	OK(cuInit(0));
	void *a = found("cuMemAllocAsync", 11020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, true);
	void *f = found("cuMemFreeAsync", 11020, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, true);

	if (a == NULL || f == NULL)
		check_not_available("this driver has no cuMemAllocAsync");
	memcpy(&alloc_async, &a, sizeof a);
	memcpy(&free_async, &f, sizeof f);
	fill_and_empty(&(struct way) { .take = take_async, .give = give_async, .step = 32 * MIB });
}

/* The lookup function, looked up by itself, as the CUDA runtime does. */
static void run_address_of_address(void)
{
	__typeof__(&cuGetProcAddress_v2) get;
	CUdriverProcAddressQueryResult status = 0;
	void *a = NULL, *f = NULL;

	NEED(cuGetProcAddress_v2);
	OK(cuInit(0));
	void *address = found("cuGetProcAddress", 12000, CU_GET_PROC_ADDRESS_DEFAULT, true);

	memcpy(&get, &address, sizeof get);
	OK(get("cuMemAlloc", &a, 3020, 0, &status));
	OK(get("cuMemFree", &f, 3020, 0, &status));
	fill_by_addresses(a, f);
}

const struct path paths_lookup[] = {
	{ "lookup-dlsym", run_handle, BARE_BREAKS },
	{ "lookup-deepbind", run_deepbind, BARE_BREAKS },
	{ "lookup-default", run_default, BARE_BREAKS },
	{ "lookup-next", run_next, BARE_BREAKS },
	{ "lookup-dlsym-of-dlsym", run_dlsym_of_dlsym, BARE_BREAKS },
	{ "lookup-address", run_address, BARE_BREAKS },
	{ "lookup-address-2", run_address_2, BARE_BREAKS },
	{ "lookup-address-legacy", run_address_legacy, BARE_BREAKS },
	{ "lookup-address-per-thread", run_address_per_thread, BARE_BREAKS },
	{ "lookup-address-of-address", run_address_of_address, BARE_BREAKS },
	{ 0 },
};
