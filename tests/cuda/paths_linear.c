/* Linear memory: cuMemAlloc and what is like it. */
#include <stdlib.h>

#include "fill.h"
#include "paths.h"
#include "views.h"

static CUresult take_alloc(uint64_t *out, size_t bytes)
{
	CUdeviceptr p = 0;
	CUresult rc = cuMemAlloc_v2(&p, bytes);

	*out = p;
	return rc;
}

static CUresult give(uint64_t what)
{
	return cuMemFree_v2(what);
}

static void run_alloc(void)
{
	fill_and_empty(&(struct way) { .take = take_alloc, .give = give });
}

/* Rows of 1 MiB + 1 byte: what the driver adds to each row counts. */
static CUresult take_pitch(uint64_t *out, size_t bytes)
{
	CUdeviceptr p = 0;
	size_t pitch = 0, rows = bytes / (MIB + 512);
	CUresult rc = cuMemAllocPitch_v2(&p, &pitch, MIB + 1, rows, 4);

	*out = p;
	return rc;
}

static void run_pitch(void)
{
	fill_and_empty(&(struct way) { .take = take_pitch, .give = give });
}

static bool managed(void)
{
	int there = 0, concurrent = 0;

	OK(cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 0));
	OK(cuDeviceGetAttribute(&concurrent, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 0));
	return there != 0 && concurrent != 0;
}

/* Brought at once, so that its pages are on the card. */
static CUresult take_managed(uint64_t *out, size_t bytes)
{
	CUdeviceptr p = 0;
	CUresult rc = cuMemAllocManaged(&p, bytes, CU_MEM_ATTACH_GLOBAL);

	if (rc == CUDA_SUCCESS)
		OK(cuMemPrefetchAsync(p, bytes, 0, NULL));
	*out = p;
	return rc;
}

static void run_managed(void)
{
	check_use(0);
	if (!managed())
		check_not_available("this card cannot page managed memory");
	fill_and_empty_here(0, &(struct way) { .take = take_managed, .give = give });
}

/* 4096 pieces of 1 KiB, then a free of every second: pages are shared, and each is charged once. */
static void run_small(void)
{
	static CUdeviceptr p[4096];

	check_use(0);
	OK(cuMemAlloc_v2(&p[0], 1024));
	OK(cuMemFree_v2(p[0]));
	size_t start = views_match_books(0);

	for (size_t i = 0; i < HM_COUNT(p); i++)
		OK(cuMemAlloc_v2(&p[i], 1024));
	size_t full = views_match_books(0);

	HOLDS(full >= start + 4 * MIB && full <= start + 16 * MIB, "4 MiB in pieces of 1 KiB take %zu KiB",
	      (full - start) / 1024);
	for (size_t i = 0; i < HM_COUNT(p); i += 2)
		OK(cuMemFree_v2(p[i]));
	views_match_books(0);
	for (size_t i = 1; i < HM_COUNT(p); i += 2)
		OK(cuMemFree_v2(p[i]));
	HOLDS(check_same(views_match_books(0), start), "after all is freed the views are not where they were");
	CUresult rc = cuMemAlloc_v2(&p[0], check_limit());

	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "the whole limit beside a context: %d", rc);
}

/* The interface of CUDA 2 with 32-bit sizes: never more than the limit, and never a wrong error. */
static CUresult take_cuda2(uint64_t *out, size_t bytes)
{
	CUdeviceptr_v1 p = 0;
	CUresult rc = cuMemAlloc(&p, (unsigned)bytes);

	*out = p;
	return rc;
}

static CUresult give_cuda2(uint64_t what)
{
	return cuMemFree((CUdeviceptr_v1)what);
}

static void run_cuda2(void)
{
	NEED(cuMemAlloc);
	fill_and_empty(&(struct way) { .take = take_cuda2, .give = give_cuda2 });
}

static CUresult take_cuda2_pitch(uint64_t *out, size_t bytes)
{
	CUdeviceptr_v1 p = 0;
	unsigned pitch = 0;
	CUresult rc = cuMemAllocPitch(&p, &pitch, (unsigned)MIB, (unsigned)(bytes / MIB), 4);

	*out = p;
	return rc;
}

static void run_cuda2_pitch(void)
{
	NEED(cuMemAllocPitch);
	fill_and_empty(&(struct way) { .take = take_cuda2_pitch, .give = give_cuda2 });
}

/* Mistakes are answered as the driver answers them, and cost nothing. */
static void run_mistakes(void)
{
	CUdeviceptr p = 0;
	size_t pitch = 0;

	check_use(0);
	size_t start = views_match_books(0);
	const struct {
		const char *what;
		CUresult got, wanted;
	} calls[] = {
		{ "cuMemAlloc of nothing", cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE },
		{ "cuMemAlloc to nowhere", cuMemAlloc_v2(NULL, MIB), CUDA_ERROR_INVALID_VALUE },
		{ "cuMemAllocPitch of nothing", cuMemAllocPitch_v2(&p, &pitch, 0, 1, 4), CUDA_ERROR_INVALID_VALUE },
		{ "cuMemAllocManaged without flags", cuMemAllocManaged(&p, MIB, 0), CUDA_ERROR_INVALID_VALUE },
		{ "cuMemFree of what never was", cuMemFree_v2(0x1234), CUDA_ERROR_INVALID_VALUE },
		{ "cuMemFree of nothing", cuMemFree_v2(0), CUDA_SUCCESS },
	};

	for (size_t i = 0; i < HM_COUNT(calls); i++)
		HOLDS(calls[i].got == calls[i].wanted, "%s: %d, the driver says %d", calls[i].what, calls[i].got,
		      calls[i].wanted);
	OK(cuMemAlloc_v2(&p, 4 * MIB));
	OK(cuMemFree_v2(p));
	CUresult rc = cuMemFree_v2(p);

	HOLDS(rc == CUDA_ERROR_INVALID_VALUE, "cuMemFree a second time: %d", rc);
	HOLDS(check_same(views_match_books(0), start), "mistakes cost %zu", views_used(0) - start);
	/* Drivers differ in what they say; none ends the program. */
	(void)cuMemGetInfo_v2(NULL, &pitch);
	(void)cuMemGetInfo_v2(&pitch, NULL);
	OK(cuCtxSetCurrent(NULL));
	rc = cuMemAlloc_v2(&p, MIB);
	HOLDS(rc == CUDA_ERROR_INVALID_CONTEXT, "cuMemAlloc without a context: %d", rc);
}

/* 32-bit queries saturate. */
static void run_cuda2_views(void)
{
	unsigned free_bytes = 0, total = 0, device_total = 0;
	uint64_t limit = check_limit(), cap = limit < UINT32_MAX ? limit : UINT32_MAX;

	NEED(cuMemGetInfo);
	NEED(cuDeviceTotalMem);
	check_use(0);
	SUPPORTED(cuMemGetInfo(&free_bytes, &total));
	SUPPORTED(cuDeviceTotalMem(&device_total, 0));
	HOLDS(total == cap, "cuMemGetInfo shows %u, the limit is %zu", total, check_limit());
	HOLDS(device_total == cap, "cuDeviceTotalMem shows %u, the limit is %zu", device_total, check_limit());
	HOLDS(free_bytes <= cap, "cuMemGetInfo shows %u free, the limit is %zu", free_bytes, check_limit());
}

/* A limit above what the card has (only where the environment asks for it): sixteenths of it, but for what the context
 * takes. Those that the card cannot hold can be used and freed as the others. */
static void run_oversubscribe(void)
{
	enum { SOME_BYTES = 64 << 20 };
	static CUdeviceptr p[17];
	CUresult rc = CUDA_SUCCESS;
	unsigned char last = 0;
	size_t n = 0;

	if (getenv("CUDA_OVERSUBSCRIBE") == NULL)
		check_not_available("it is run with a limit above the card's memory alone");
	check_use(0);
	if (!managed())
		check_not_available("this card cannot page managed memory");
	size_t start = views_used(0);

	while (n < HM_COUNT(p) && rc == CUDA_SUCCESS) {
		rc = cuMemAlloc_v2(&p[n], fill_piece());
		n += rc == CUDA_SUCCESS;
	}
	HOLDS(n == 15 || n == 16, "%zu sixteenths of the limit can be had", n);
	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "the answer beyond is %d", rc);
	if (n == 0)
		return;
	OK(cuMemsetD8_v2(p[n - 1], 7, SOME_BYTES));
	OK(cuMemcpyDtoH_v2(&last, p[n - 1] + SOME_BYTES - 1, 1));
	HOLDS(last == 7, "the last byte written is %d", last);
	rc = cuMemFreeAsync(p[--n], NULL);
	HOLDS(rc == CUDA_SUCCESS, "cuMemFreeAsync of what the card has no room for: %d", rc);
	OK(cuCtxSynchronize());
	while (n > 0)
		OK(cuMemFree_v2(p[--n]));
	HOLDS(views_used(0) == start, "%zu are in use after, %zu were before", views_used(0), start);
}

const struct path paths_linear[] = {
	{ "alloc", run_alloc, BARE_BREAKS },
	{ "alloc-small", run_small, BARE_BREAKS },
	{ "alloc-pitch", run_pitch, BARE_BREAKS },
	{ "managed", run_managed, BARE_BREAKS },
	{ "cuda2-alloc", run_cuda2, BARE_BREAKS },
	{ "cuda2-alloc-pitch", run_cuda2_pitch, BARE_BREAKS },
	{ "mistakes", run_mistakes, BARE_PASSES },
	{ "cuda2-views", run_cuda2_views, BARE_BREAKS },
	{ "oversubscribe", run_oversubscribe, BARE_BREAKS },
	{ 0 },
};
