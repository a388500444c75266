#include "sim/cuda/host_mem.h"

#include <stdlib.h>

#include "sim/cuda/capture.h"
#include "sim/cuda/space.h"

/* All of them, sorted by address. */
static struct cu_host **hosts;
static size_t count, capacity;

/* The place of the first that starts above ptr. */
static size_t place(uintptr_t ptr)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t mid = (low + high) / 2;

		if (hosts[mid]->base <= ptr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

struct cu_host *cu_host_at(uintptr_t ptr)
{
	size_t at = place(ptr);

	return at > 0 && ptr - hosts[at - 1]->base < hosts[at - 1]->bytes ? hosts[at - 1] : NULL;
}

bool cu_host_covers(uintptr_t ptr, uint64_t n)
{
	const struct cu_host *h = cu_host_at(ptr);

	return h != NULL && n <= h->bytes - (ptr - h->base);
}

static bool add(struct cu_host *h)
{
	size_t at = place(h->base);

	if (count == capacity) {
		size_t bigger = capacity > 0 ? 2 * capacity : 16;
		struct cu_host **grown = realloc(hosts, bigger * sizeof *hosts);

		if (grown == NULL)
			return false;
		hosts = grown;
		capacity = bigger;
	}
	for (size_t i = count; i > at; i--)
		hosts[i] = hosts[i - 1];
	hosts[at] = h;
	count++;
	link_append(&h->ctx->hosts, &h->link);
	return true;
}

static void drop(struct cu_host *h)
{
	for (size_t i = place(h->base); i < count; i++)
		hosts[i - 1] = hosts[i];
	count--;
	link_remove(&h->link);
	if (!h->registered)
		cu_backing_free((void *)h->base, h->bytes);
	free(h);
}

void cu_hosts_drop(struct CUctx_st *ctx)
{
	LIST_FOR_EACH (&ctx->hosts, it)
		drop(HM_CONTAINER(it, struct cu_host, link));
}

static CUresult host_alloc(void **out, size_t bytes, unsigned flags)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || bytes == 0 || flags > 7)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	struct cu_host *h = calloc(1, sizeof *h);
	void *p = h != NULL && bytes < SIZE_MAX / 2 ? cu_backing_new(cu_round(bytes, 4096)) : NULL;

	if (p == NULL) {
		free(h);
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*h = (struct cu_host) { .ctx = ctx, .base = (uintptr_t)p, .bytes = cu_round(bytes, 4096), .flags = flags };
	if (!add(h)) {
		cu_backing_free(p, h->bytes);
		free(h);
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	*out = p;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemAllocHost_v2(void **out, size_t bytes)
{
	return host_alloc(out, bytes, 0);
}

CU_EXPORT CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
	return host_alloc(out, bytes, flags);
}

CU_EXPORT CUresult cuMemFreeHost(void *ptr)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_host *h = cu_host_at((uintptr_t)ptr);

	if (h == NULL || h->registered || h->base != (uintptr_t)ptr)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	drop(h);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (ptr == NULL || bytes == 0 || bytes > SIZE_MAX - (uintptr_t)ptr || flags > 15)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	size_t next = place((uintptr_t)ptr);

	if (cu_host_at((uintptr_t)ptr) != NULL || (next < count && hosts[next]->base - (uintptr_t)ptr < bytes))
		return cu_leave(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	struct cu_host *h = calloc(1, sizeof *h);

	if (h == NULL)
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	*h = (struct cu_host) {
		.ctx = ctx, .base = (uintptr_t)ptr, .bytes = bytes, .flags = flags, .registered = true
	};
	if (!add(h)) {
		free(h);
		return cu_leave(CUDA_ERROR_OUT_OF_MEMORY);
	}
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemHostUnregister(void *ptr)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_unsafe(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	struct cu_host *h = cu_host_at((uintptr_t)ptr);

	if (h == NULL || !h->registered || h->base != (uintptr_t)ptr)
		return cu_leave(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	drop(h);
	return cu_leave(CUDA_SUCCESS);
}

/* With unified addressing the device uses the host's address. */
CU_EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *ptr, unsigned flags)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || flags != 0 || cu_host_at((uintptr_t)ptr) == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	*out = (uintptr_t)ptr;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemHostGetFlags(unsigned *out, void *ptr)
{
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	const struct cu_host *h = cu_host_at((uintptr_t)ptr);

	if (out == NULL || h == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	*out = h->flags;
	return cu_leave(CUDA_SUCCESS);
}
