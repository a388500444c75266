/* Prototypes of the CUDA driver functions that we call, define or wrap, each exported variant with its own exact type
 * (_v2 and so on: a newer signature; _ptds and _ptsz: the default stream is the calling thread's). An unsuffixed name
 * beside a _v2 is the CUDA 2 interface with 32-bit sizes and pointers, and is not declared. */
#ifndef HM_ABI_CUDA_API_H
#define HM_ABI_CUDA_API_H

#include "abi/cuda.h"
#include "abi/cuda_array.h"
#include "abi/cuda_graph.h"
#include "abi/cuda_process.h"
#include "abi/cuda_share.h"

/* driver */
CUresult cuInit(unsigned flags);
CUresult cuDriverGetVersion(int *version);
CUresult cuGetErrorName(CUresult code, const char **out);
CUresult cuGetErrorString(CUresult code, const char **out);
CUresult cuGetProcAddress(const char *name, void **out, int version, cuuint64_t flags);
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *status);

/* devices */
CUresult cuDeviceGet(CUdevice *out, int ordinal);
CUresult cuDeviceGetCount(int *out);
CUresult cuDeviceGetName(char *out, int cap, CUdevice dev);
CUresult cuDeviceGetUuid(CUuuid *out, CUdevice dev);
CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice dev);
CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice dev);
CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice dev);
CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev);
CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *pci);
CUresult cuDeviceGetPCIBusId(char *out, int cap, CUdevice dev);
CUresult cuDeviceCanAccessPeer(int *out, CUdevice dev, CUdevice peer);
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags);
CUresult cuCtxDisablePeerAccess(CUcontext peer);
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice dev);
CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice dev);
CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool);

/* contexts */
CUresult cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice dev);
CUresult cuDevicePrimaryCtxRelease(CUdevice dev);
CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev);
CUresult cuDevicePrimaryCtxReset(CUdevice dev);
CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev);
CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned flags);
CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned flags);
CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned *flags, int *active);
CUresult cuCtxCreate(CUcontext *out, unsigned flags, CUdevice dev);
CUresult cuCtxCreate_v2(CUcontext *out, unsigned flags, CUdevice dev);
CUresult cuCtxCreate_v3(CUcontext *out, CUexecAffinityParam *affinity, int affinities, unsigned flags, CUdevice dev);
CUresult cuCtxCreate_v4(CUcontext *out, CUctxCreateParams *params, unsigned flags, CUdevice dev);
CUresult cuCtxDestroy(CUcontext ctx);
CUresult cuCtxDestroy_v2(CUcontext ctx);
CUresult cuCtxAttach(CUcontext *out, unsigned flags);
CUresult cuCtxDetach(CUcontext ctx);
CUresult cuCtxPushCurrent(CUcontext ctx);
CUresult cuCtxPushCurrent_v2(CUcontext ctx);
CUresult cuCtxPopCurrent(CUcontext *out);
CUresult cuCtxPopCurrent_v2(CUcontext *out);
CUresult cuCtxSetCurrent(CUcontext ctx);
CUresult cuCtxGetCurrent(CUcontext *out);
CUresult cuCtxGetDevice(CUdevice *out);
CUresult cuCtxGetDevice_v2(CUdevice *out, CUcontext ctx);
CUresult cuCtxSynchronize(void);
CUresult cuCtxSynchronize_v2(CUcontext ctx);
CUresult cuCtxGetApiVersion(CUcontext ctx, unsigned *out);
CUresult cuCtxGetFlags(unsigned *out);
CUresult cuCtxSetFlags(unsigned flags);
CUresult cuCtxGetId(CUcontext ctx, unsigned long long *out);
CUresult cuCtxGetLimit(size_t *out, CUlimit limit);
CUresult cuCtxSetLimit(CUlimit limit, size_t value);
CUresult cuCtxGetCacheConfig(CUfunc_cache *out);
CUresult cuCtxSetCacheConfig(CUfunc_cache config);
CUresult cuCtxGetSharedMemConfig(CUsharedconfig *out);
CUresult cuCtxSetSharedMemConfig(CUsharedconfig config);
CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest);

/* memory */
CUresult cuMemGetInfo_v2(size_t *free, size_t *total);
CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes);
CUresult cuMemAllocPitch_v2(CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element_bytes);
CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags);
CUresult cuMemFree_v2(CUdeviceptr ptr);
CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr ptr);
CUresult cuMemAllocHost_v2(void **out, size_t bytes);
CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags);
CUresult cuMemFreeHost(void *ptr);
CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags);
CUresult cuMemHostUnregister(void *ptr);
CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *out, void *ptr, unsigned flags);
CUresult cuMemHostGetFlags(unsigned *out, void *ptr);
CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes, void **out, CUdeviceptr ptr);
CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr);
CUresult cuMemAdvise(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice dev);
CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation where);
CUresult cuMemRangeGetAttribute(void *out, size_t out_bytes, int attribute, CUdeviceptr ptr, size_t bytes);
CUresult cuMemPrefetchAsync(CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream);
CUresult cuMemPrefetchAsync_ptsz(CUdeviceptr ptr, size_t bytes, CUdevice dev, CUstream stream);
CUresult cuMemPrefetchAsync_v2(CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned flags, CUstream stream);
CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr ptr, size_t bytes, CUmemLocation where, unsigned flags,
				    CUstream stream);

/* stream-ordered memory */
CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream stream);
CUresult cuMemAllocAsync_ptsz(CUdeviceptr *out, size_t bytes, CUstream stream);
CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *out, size_t bytes, CUmemoryPool pool, CUstream stream);
CUresult cuMemFreeAsync(CUdeviceptr ptr, CUstream stream);
CUresult cuMemFreeAsync_ptsz(CUdeviceptr ptr, CUstream stream);
CUresult cuMemGetDefaultMemPool(CUmemoryPool *out, CUmemLocation *where, int allocation_type);
CUresult cuMemGetMemPool(CUmemoryPool *out, CUmemLocation *where, int allocation_type);
CUresult cuMemSetMemPool(CUmemLocation *where, int allocation_type, CUmemoryPool pool);
CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *props);
CUresult cuMemPoolDestroy(CUmemoryPool pool);
CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep);
CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *out);
CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value);
CUresult cuMemPoolGetAccess(int *out, CUmemoryPool pool, CUmemLocation *where);
CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc *map, size_t count);

/* virtual memory management */
CUresult cuMemAddressReserve(CUdeviceptr *out, size_t bytes, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags);
CUresult cuMemAddressFree(CUdeviceptr ptr, size_t bytes);
CUresult cuMemCreate(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
		     unsigned long long flags);
CUresult cuMemRelease(CUmemGenericAllocationHandle handle);
CUresult cuMemMap(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags);
CUresult cuMemUnmap(CUdeviceptr ptr, size_t bytes);
CUresult cuMemSetAccess(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count);
CUresult cuMemGetAccess(unsigned long long *out, const CUmemLocation *where, CUdeviceptr ptr);
CUresult cuMemGetAllocationGranularity(size_t *out, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option);
CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *out, CUmemGenericAllocationHandle handle);
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *out, void *ptr);

/* copy and set */
CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void *src, size_t bytes);
CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void *src, size_t bytes);
CUresult cuMemcpyDtoH_v2(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyDtoH_v2_ptds(void *dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2_ptsz(void *dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream);
CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes);
CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes);
CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes,
			   CUstream stream);
CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dst_ctx, CUdeviceptr src, CUcontext src_ctx, size_t bytes,
				CUstream stream);
CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count);
CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char value, size_t count);
CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream);
CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count);
CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short value, size_t count);
CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short value, size_t count, CUstream stream);
CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count);
CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned value, size_t count);
CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count, CUstream stream);
CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned value, size_t count, CUstream stream);

/* modules and launches */
CUresult cuModuleLoad(CUmodule *out, const char *path);
CUresult cuModuleLoadData(CUmodule *out, const void *image);
CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned count, CUjit_option *options, void **values);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *out, size_t *bytes, CUmodule module, const char *name);
CUresult cuModuleLoadFatBinary(CUmodule *out, const void *image);
CUresult cuModuleUnload(CUmodule module);
CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name);
CUresult cuModuleGetFunctionCount(unsigned *out, CUmodule module);
CUresult cuModuleEnumerateFunctions(CUfunction *out, unsigned count, CUmodule module);
CUresult cuModuleGetLoadingMode(int *out);
CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values, unsigned jit_count,
			   CUlibraryOption *options, void **values, unsigned count);
CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *jit, void **jit_values,
			       unsigned jit_count, CUlibraryOption *options, void **values, unsigned count);
CUresult cuLibraryUnload(CUlibrary library);
CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name);
CUresult cuLibraryGetKernelCount(unsigned *out, CUlibrary library);
CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library);
CUresult cuLibraryEnumerateKernels(CUkernel *out, unsigned count, CUlibrary library);
CUresult cuLibraryGetGlobal(CUdeviceptr *out, size_t *bytes, CUlibrary library, const char *name);
CUresult cuLibraryGetManaged(CUdeviceptr *out, size_t *bytes, CUlibrary library, const char *name);
CUresult cuLibraryGetUnifiedFunction(void **out, CUlibrary library, const char *name);
CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel);
CUresult cuKernelGetName(const char **out, CUkernel kernel);
CUresult cuFuncGetName(const char **out, CUfunction function);
CUresult cuFuncGetModule(CUmodule *out, CUfunction function);
CUresult cuFuncLoad(CUfunction function);
CUresult cuFuncIsLoaded(int *out, CUfunction function);
CUresult cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction function);
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value);
CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config);
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
			void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
			     unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream stream, void **params,
			     void **extra);
CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params, void **extra);
CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **params, void **extra);
CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
				   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
				   CUstream stream, void **params);
CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
					unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
					CUstream stream, void **params);
CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches, unsigned count, unsigned flags);
/* of CUDA 2: shape and parameters are set on the function first */
CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z);
CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes);
CUresult cuParamSetSize(CUfunction function, unsigned bytes);
CUresult cuParamSeti(CUfunction function, int offset, unsigned value);
CUresult cuParamSetf(CUfunction function, int offset, float value);
CUresult cuParamSetv(CUfunction function, int offset, void *value, unsigned bytes);
CUresult cuLaunch(CUfunction function);
CUresult cuLaunchGrid(CUfunction function, int width, int height);
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *out, CUfunction function, int block_threads,
						     size_t shared_bytes);
CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *out, CUfunction function, int block_threads,
							      size_t shared_bytes, unsigned flags);

/* streams and events */
CUresult cuStreamCreate(CUstream *out, unsigned flags);
CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority);
CUresult cuStreamDestroy(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamQuery(CUstream stream);
CUresult cuStreamQuery_ptsz(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize_ptsz(CUstream stream);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags);
CUresult cuStreamGetPriority(CUstream stream, int *out);
CUresult cuStreamGetPriority_ptsz(CUstream stream, int *out);
CUresult cuStreamGetFlags(CUstream stream, unsigned *out);
CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned *out);
CUresult cuStreamGetCtx(CUstream stream, CUcontext *out);
CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext *out);
CUresult cuStreamGetDevice(CUstream stream, CUdevice *out);
CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice *out);
CUresult cuStreamGetId(CUstream stream, unsigned long long *out);
CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long *out);
CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out);
CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus *out);
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode);
CUresult cuEventCreate(CUevent *out, unsigned flags);
CUresult cuEventDestroy(CUevent event);
CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventQuery(CUevent event);
CUresult cuEventSynchronize(CUevent event);
CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecord_ptsz(CUevent event, CUstream stream);
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags);
CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end);

#endif
