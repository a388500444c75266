/* Device memory shared with others: IPC, exported handles, external memory, multicast objects. */
#ifndef HM_ABI_CUDA_SHARE_H
#define HM_ABI_CUDA_SHARE_H

#include "abi/cuda.h"

enum { CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1 };
enum { CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD = 1, CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD = 9 };
enum { CU_MULTICAST_GRANULARITY_MINIMUM = 0, CU_MULTICAST_GRANULARITY_RECOMMENDED = 1 };

typedef int CUmemAllocationHandleType;
typedef int CUmulticastGranularity_flags;
typedef int CUexternalMemoryHandleType;

typedef struct CUipcMemHandle {
	char reserved[64];
} CUipcMemHandle;

typedef struct CUipcEventHandle {
	char reserved[64];
} CUipcEventHandle;

typedef struct CUmulticastObjectProp {
	unsigned numDevices;
	size_t size;
	unsigned long long handleTypes;
	unsigned long long flags;
} CUmulticastObjectProp;

typedef struct CUmemFabricHandle {
	unsigned char data[64];
} CUmemFabricHandle;

typedef struct CUmemPoolPtrExportData {
	unsigned char reserved[64];
} CUmemPoolPtrExportData;

typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC {
	CUexternalMemoryHandleType type;
	union {
		int fd;
		struct {
			void *handle;
			const void *name;
		} win32;
		const void *nvSciBufObject;
	} handle;
	unsigned long long size;
	unsigned flags;
	unsigned reserved[16];
} CUDA_EXTERNAL_MEMORY_HANDLE_DESC;

typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC {
	unsigned long long offset, size;
	unsigned flags;
	unsigned reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

_Static_assert(sizeof(CUipcMemHandle) == 64 && sizeof(CUipcEventHandle) == 64, "IPC handles");
_Static_assert(sizeof(CUmulticastObjectProp) == 32 && offsetof(CUmulticastObjectProp, size) == 8, "multicast");
_Static_assert(sizeof(CUmemFabricHandle) == 64 && sizeof(CUmemPoolPtrExportData) == 64, "exported handles");
_Static_assert(sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC) == 104 &&
		       offsetof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, handle) == 8 &&
		       offsetof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC, size) == 24,
	       "CUDA_EXTERNAL_MEMORY_HANDLE_DESC");
_Static_assert(sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC) == 88 &&
		       offsetof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, flags) == 16,
	       "CUDA_EXTERNAL_MEMORY_BUFFER_DESC");

CUresult cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr ptr);
CUresult cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *out, CUipcMemHandle handle, unsigned flags);
CUresult cuIpcCloseMemHandle(CUdeviceptr ptr);
CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
				      unsigned long long flags);
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *out, void *os_handle,
					CUmemAllocationHandleType type);
CUresult cuMemPoolExportToShareableHandle(void *out, CUmemoryPool pool, CUmemAllocationHandleType type,
					  unsigned long long flags);
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *out, void *handle, CUmemAllocationHandleType type,
					    unsigned long long flags);
CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr ptr);
CUresult cuMemPoolImportPointer(CUdeviceptr *out, CUmemoryPool pool, CUmemPoolPtrExportData *data);
CUresult cuImportExternalMemory(CUexternalMemory *out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc);
CUresult cuExternalMemoryGetMappedBuffer(CUdeviceptr *out, CUexternalMemory memory,
					 const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc);
CUresult cuDestroyExternalMemory(CUexternalMemory memory);
CUresult cuMulticastCreate(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop);
CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle multicast, CUdevice dev);
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset, CUmemGenericAllocationHandle memory,
			    size_t memory_offset, size_t bytes, unsigned long long flags);
CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset, CUdeviceptr ptr, size_t bytes,
			     unsigned long long flags);
CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice dev, size_t offset, size_t bytes);
CUresult cuMulticastGetGranularity(size_t *out, const CUmulticastObjectProp *prop, CUmulticastGranularity_flags option);

#endif
