/* Physical memory of cuMemCreate and pools, handed to others by descriptor. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/multicast.h"
#include "sim/cuda/pool.h"
#include "sim/cuda/share.h"
#include "sim/cuda/vmm.h"

CU_EXPORT CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
						CUmemAllocationHandleType type, unsigned long long flags)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	const struct cu_physical *p = cu_physical_of(handle);

	if (out == NULL || p == NULL || flags != 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED); /* no fabric, no other system */
	if (p->fd < 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE); /* not asked for when it was created */
	int fd = fcntl(p->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return cu_leave(CUDA_ERROR_OPERATING_SYSTEM);
	if (p->multicast != NULL)
		cu_multicast_shared(p->multicast);
	*(int *)out = fd;
	return cu_leave(CUDA_SUCCESS);
}

static CUresult import_memory(CUmemGenericAllocationHandle *out, int take_fd, const struct cu_note *note)
{
	unsigned device = cu_share_device(note->card);

	if (device == cu.count) {
		close(take_fd);
		return CUDA_ERROR_INVALID_DEVICE;
	}
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .requestedHandleTypes = (int)note->handle_types,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, (int)device } };

	return cu_physical_import(out, take_fd, note->bytes, &prop);
}

static CUresult import_physical(CUmemGenericAllocationHandle *out, int fd)
{
	struct cu_note note;

	if (!cu_share_read(fd, &note) || (note.kind != CU_SHARE_PHYSICAL && note.kind != CU_SHARE_MULTICAST))
		return CUDA_ERROR_INVALID_VALUE;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0); /* the caller may close his */

	if (own < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	return note.kind == CU_SHARE_MULTICAST ? cu_multicast_import(out, own, note.bytes)
					       : import_memory(out, own, &note);
}

CU_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
						  CUmemAllocationHandleType type)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED);
	return cu_leave(import_physical(out, (int)(intptr_t)os_handle));
}

CU_EXPORT CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, CUmemAllocationHandleType type,
						    unsigned long long flags)
{
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || flags != 0 || !cu_handle_is(pool, CU_POOL) || pool->doomed)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED);
	if (pool->handle_types != type)
		return cu_leave(CUDA_ERROR_INVALID_VALUE); /* not asked for when it was created */
	struct cu_note note = { .kind = CU_SHARE_POOL,
				.card = cu.devices[pool->device].card,
				.handle_types = (uint32_t)type,
				.id = (uintptr_t)pool };
	int fd = cu_share_file(&note);

	if (fd < 0)
		return cu_leave(CUDA_ERROR_OPERATING_SYSTEM);
	*(int *)out = fd;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, CUmemAllocationHandleType type,
						      unsigned long long flags)
{
	struct cu_note note;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	if (out == NULL || flags != 0)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return cu_leave(CUDA_ERROR_NOT_SUPPORTED);
	if (!cu_share_read((int)(intptr_t)handle, &note) || note.kind != CU_SHARE_POOL)
		return cu_leave(CUDA_ERROR_INVALID_VALUE);
	unsigned device = cu_share_device(note.card);

	if (device == cu.count)
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	*out = cu_pool_import(device);
	return cu_leave(*out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}
