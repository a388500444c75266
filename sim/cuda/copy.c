/* Copies and fills. They move real bytes between the memory behind device addresses and the host's, at the time of the
 * call: the asynchronous forms too, whose result a program may not look at before it has synchronised. A synchronous
 * form first waits for the stream's work. Copying takes no time on the simulated card. */
#include "sim/cuda/copy.h"

#include <string.h>
#include <sys/mman.h>

#include "sim/cuda/capture.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/host_mem.h"
#include "sim/cuda/mem.h"
#include "sim/cuda/space.h"
#include "sim/cuda/stream.h"

static bool side_ok(enum cu_side side, CUdeviceptr ptr, uint64_t n, bool writes)
{
	if (ptr == 0)
		return false;
	if (cu_is_device_address(ptr)) /* wherever an address is given: addressing is unified */
		return cu_window_covers(ptr, n, writes);
	return side != CU_SIDE_DEVICE || cu_host_covers((uintptr_t)ptr, n); /* page-locked: as good as device memory */
}

/* What is at ptr for the host, and how much of n lies in one piece. */
static char *piece_at(CUdeviceptr ptr, uint64_t *n, bool writes)
{
	return cu_is_device_address(ptr) ? cu_window(ptr, n, writes) : (char *)(uintptr_t)ptr;
}

static void move(CUdeviceptr dst, CUdeviceptr src, uint64_t n)
{
	while (n > 0) {
		uint64_t here = n;
		char *out = piece_at(dst, &here, true);
		const char *in = piece_at(src, &here, false);

		memmove(out, in, here);
		dst += here;
		src += here;
		n -= here;
	}
}

static void touch_managed(CUdeviceptr ptr)
{
	struct cu_region *r = cu_region_at(ptr);

	if (r != NULL)
		cu_managed_touch(r);
}

CUresult cu_copy_run(const struct cu_copy *c)
{
	if (!side_ok(c->to, c->dst, c->bytes, true) || !side_ok(c->from, c->src, c->bytes, false))
		return CUDA_ERROR_INVALID_VALUE;
	move(c->dst, c->src, c->bytes);
	return CUDA_SUCCESS;
}

/* How a call was made. */
struct call {
	CUstream stream;
	bool per_thread, waits;
};

/* The call's stream, looked up; synchronous forms have waited for its work. Lock held on success. */
static CUresult enter_copy(struct call call, struct cu_captured *captured)
{
	struct cu_stream_ref s;
	struct CUctx_st *ctx;
	CUresult rc = cu_enter_context(&ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	*captured = (struct cu_captured) { NULL, NULL };
	rc = cu_stream_get(ctx, call.stream, call.per_thread, &s);
	if (rc == CUDA_SUCCESS)
		rc = call.waits ? cu_capture_may_wait(&s) : cu_captured_get(&s, captured);
	if (rc == CUDA_SUCCESS && call.waits)
		rc = cu_wait(s.ctx, cu_stream_ticket(&s));
	return rc == CUDA_SUCCESS ? rc : cu_leave(rc);
}

static CUresult copy(struct cu_copy c, CUstream stream, bool per_thread, bool waits)
{
	struct cu_captured captured;
	CUresult rc = enter_copy((struct call) { stream, per_thread, waits }, &captured);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (c.bytes == 0)
		return cu_leave(CUDA_SUCCESS);
	if (captured.capture == NULL)
		return cu_leave(cu_copy_run(&c));
	struct cu_work work = { .type = CU_GRAPH_NODE_TYPE_MEMCPY, .copy = c };

	return cu_leave(cu_captured_add(&captured, &work, NULL));
}

/* One family of copies: the synchronous call, the asynchronous, and both for the thread's default stream. */
#define COPY(sync, sync_thread, async, async_thread, dst_type, src_type, to_side, from_side)                           \
	static struct cu_copy copy_of_##sync(dst_type dst, src_type src, size_t bytes)                                 \
	{                                                                                                              \
		return (struct cu_copy) { to_side, from_side, (uintptr_t)dst, (uintptr_t)src, bytes };                 \
	}                                                                                                              \
	CU_EXPORT CUresult sync(dst_type dst, src_type src, size_t bytes)                                              \
	{                                                                                                              \
		return copy(copy_of_##sync(dst, src, bytes), NULL, false, true);                                       \
	}                                                                                                              \
	CU_EXPORT CUresult sync_thread(dst_type dst, src_type src, size_t bytes)                                       \
	{                                                                                                              \
		return copy(copy_of_##sync(dst, src, bytes), NULL, true, true);                                        \
	}                                                                                                              \
	CU_EXPORT CUresult async(dst_type dst, src_type src, size_t bytes, CUstream stream)                            \
	{                                                                                                              \
		return copy(copy_of_##sync(dst, src, bytes), stream, false, false);                                    \
	}                                                                                                              \
	CU_EXPORT CUresult async_thread(dst_type dst, src_type src, size_t bytes, CUstream stream)                     \
	{                                                                                                              \
		return copy(copy_of_##sync(dst, src, bytes), stream, true, false);                                     \
	}
COPY(cuMemcpy, cuMemcpy_ptds, cuMemcpyAsync, cuMemcpyAsync_ptsz, CUdeviceptr, CUdeviceptr, CU_SIDE_ANY, CU_SIDE_ANY)
COPY(cuMemcpyHtoD_v2, cuMemcpyHtoD_v2_ptds, cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync_v2_ptsz, CUdeviceptr, const void *,
     CU_SIDE_DEVICE, CU_SIDE_HOST)
COPY(cuMemcpyDtoH_v2, cuMemcpyDtoH_v2_ptds, cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync_v2_ptsz, void *, CUdeviceptr,
     CU_SIDE_HOST, CU_SIDE_DEVICE)
COPY(cuMemcpyDtoD_v2, cuMemcpyDtoD_v2_ptds, cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync_v2_ptsz, CUdeviceptr, CUdeviceptr,
     CU_SIDE_DEVICE, CU_SIDE_DEVICE)

static CUresult copy_peer(struct cu_copy c, CUcontext dst_ctx, CUcontext src_ctx, CUstream stream, bool per_thread,
			  bool waits)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = cu_leave(cu_handle_is(dst_ctx, CU_CONTEXT) && cu_handle_is(src_ctx, CU_CONTEXT)
			      ? CUDA_SUCCESS
			      : CUDA_ERROR_INVALID_CONTEXT);
	return rc == CUDA_SUCCESS ? copy(c, stream, per_thread, waits) : rc;
}

CU_EXPORT CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes)
{
	return copy_peer(copy_of_cuMemcpyDtoD_v2(dst, src, bytes), dst_ctx, src_ctx, NULL, false, true);
}

CU_EXPORT CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
				     size_t bytes)
{
	return copy_peer(copy_of_cuMemcpyDtoD_v2(dst, src, bytes), dst_ctx, src_ctx, NULL, true, true);
}

CU_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
				     size_t bytes, CUstream stream)
{
	return copy_peer(copy_of_cuMemcpyDtoD_v2(dst, src, bytes), dst_ctx, src_ctx, stream, false, false);
}

CU_EXPORT CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx,
					  size_t bytes, CUstream stream)
{
	return copy_peer(copy_of_cuMemcpyDtoD_v2(dst, src, bytes), dst_ctx, src_ctx, stream, true, false);
}

/* Zeroing whole pages of the host gives them back: a program that clears a large card's memory costs nothing. */
static void zero(char *p, uint64_t n)
{
	enum { PAGE = 4096 };
	uintptr_t begin = ((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
	uintptr_t end = ((uintptr_t)p + n) & ~(uintptr_t)(PAGE - 1);

	/* Pages of a memory file are others' too, and must be cut out of the file. */
	if (end <= begin || (madvise((char *)begin, end - begin, MADV_REMOVE) != 0 &&
			     madvise((char *)begin, end - begin, MADV_DONTNEED) != 0)) {
		memset(p, 0, n);
		return;
	}
	memset(p, 0, begin - (uintptr_t)p);
	memset((char *)end, 0, (uintptr_t)p + n - end);
}

static void fill_piece(char *p, uint64_t n, unsigned value, unsigned width, bool ours)
{
	if (value == 0 && ours) {
		zero(p, n);
		return;
	}
	if (width == 1) {
		memset(p, (int)value, n);
		return;
	}
	for (uint64_t i = 0; i < n; i += width)
		memcpy(p + i, &value, width); /* little endian */
}

CUresult cu_fill_run(const struct cu_fill *f)
{
	if (f->dst % f->width != 0 || f->count > SIZE_MAX / f->width ||
	    !side_ok(CU_SIDE_DEVICE, f->dst, f->count * f->width, true))
		return CUDA_ERROR_INVALID_VALUE;
	CUdeviceptr dst = f->dst;

	touch_managed(dst);
	for (uint64_t left = f->count * f->width; left > 0;) {
		uint64_t here = left;
		char *p = piece_at(dst, &here, true);

		fill_piece(p, here, f->value, f->width, cu_is_device_address(dst));
		dst += here;
		left -= here;
	}
	return CUDA_SUCCESS;
}

static CUresult fill(struct cu_fill f, CUstream stream, bool per_thread, bool waits)
{
	struct cu_captured captured;
	CUresult rc = enter_copy((struct call) { stream, per_thread, waits }, &captured);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (f.count == 0)
		return cu_leave(CUDA_SUCCESS);
	if (captured.capture == NULL)
		return cu_leave(cu_fill_run(&f));
	struct cu_work work = { .type = CU_GRAPH_NODE_TYPE_MEMSET, .fill = f };

	return cu_leave(cu_captured_add(&captured, &work, NULL));
}

#define FILL(sync, sync_thread, async, async_thread, type)                                                             \
	CU_EXPORT CUresult sync(CUdeviceptr dst, type value, size_t count)                                             \
	{                                                                                                              \
		return fill((struct cu_fill) { dst, value, sizeof(type), count }, NULL, false, true);                  \
	}                                                                                                              \
	CU_EXPORT CUresult sync_thread(CUdeviceptr dst, type value, size_t count)                                      \
	{                                                                                                              \
		return fill((struct cu_fill) { dst, value, sizeof(type), count }, NULL, true, true);                   \
	}                                                                                                              \
	CU_EXPORT CUresult async(CUdeviceptr dst, type value, size_t count, CUstream stream)                           \
	{                                                                                                              \
		return fill((struct cu_fill) { dst, value, sizeof(type), count }, stream, false, false);               \
	}                                                                                                              \
	CU_EXPORT CUresult async_thread(CUdeviceptr dst, type value, size_t count, CUstream stream)                    \
	{                                                                                                              \
		return fill((struct cu_fill) { dst, value, sizeof(type), count }, stream, true, false);                \
	}
FILL(cuMemsetD8_v2, cuMemsetD8_v2_ptds, cuMemsetD8Async, cuMemsetD8Async_ptsz, unsigned char)
FILL(cuMemsetD16_v2, cuMemsetD16_v2_ptds, cuMemsetD16Async, cuMemsetD16Async_ptsz, unsigned short)
FILL(cuMemsetD32_v2, cuMemsetD32_v2_ptds, cuMemsetD32Async, cuMemsetD32Async_ptsz, unsigned)
