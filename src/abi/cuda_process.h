/* Parts of a device for a context of its own (green contexts), and checkpoints of a process. */
#ifndef HM_ABI_CUDA_PROCESS_H
#define HM_ABI_CUDA_PROCESS_H

#include "abi/cuda.h"

enum { CU_DEV_RESOURCE_TYPE_INVALID = 0, CU_DEV_RESOURCE_TYPE_SM = 1 };
enum { CU_GREEN_CTX_DEFAULT_STREAM = 1 };
enum {
	CU_PROCESS_STATE_RUNNING = 0,
	CU_PROCESS_STATE_LOCKED = 1,
	CU_PROCESS_STATE_CHECKPOINTED = 2,
	CU_PROCESS_STATE_FAILED = 3,
};

typedef int CUdevResourceType;
typedef int CUprocessState;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;

typedef struct CUdevResource {
	CUdevResourceType type;
	unsigned char _internal_padding[92];
	union {
		struct {
			unsigned smCount;
			unsigned minSmPartitionSize;
			unsigned smCoscheduledAlignment;
		} sm;
		unsigned char _oversize[48];
	};
} CUdevResource;

typedef struct CUcheckpointLockArgs {
	unsigned timeoutMs; /* 0: no limit */
	unsigned reserved0;
	cuuint64_t reserved1[7];
} CUcheckpointLockArgs;

typedef struct CUcheckpointCheckpointArgs {
	cuuint64_t reserved[8];
} CUcheckpointCheckpointArgs;

typedef struct CUcheckpointGpuPair {
	CUuuid oldUuid, newUuid;
} CUcheckpointGpuPair;

/* Before 13.0 all of it was reserved, and 0. */
typedef struct CUcheckpointRestoreArgs {
	CUcheckpointGpuPair *gpuPairs;
	unsigned gpuPairsCount;
	char reserved[52 - sizeof(CUcheckpointGpuPair *)];
	cuuint64_t reserved1;
} CUcheckpointRestoreArgs;

typedef struct CUcheckpointUnlockArgs {
	cuuint64_t reserved[8];
} CUcheckpointUnlockArgs;

_Static_assert(sizeof(CUdevResource) == 144 && offsetof(CUdevResource, sm) == 96, "CUdevResource");
_Static_assert(sizeof(CUcheckpointLockArgs) == 64 && sizeof(CUcheckpointCheckpointArgs) == 64 &&
		       sizeof(CUcheckpointRestoreArgs) == 64 && sizeof(CUcheckpointUnlockArgs) == 64,
	       "checkpoint arguments");

CUresult cuDeviceGetDevResource(CUdevice dev, CUdevResource *out, CUdevResourceType type);
CUresult cuCtxGetDevResource(CUcontext ctx, CUdevResource *out, CUdevResourceType type);
CUresult cuGreenCtxGetDevResource(CUgreenCtx green, CUdevResource *out, CUdevResourceType type);
CUresult cuDevSmResourceSplitByCount(CUdevResource *out, unsigned *groups, const CUdevResource *input,
				     CUdevResource *rest, unsigned flags, unsigned min_sms);
CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *out, CUdevResource *resources, unsigned count);
CUresult cuGreenCtxCreate(CUgreenCtx *out, CUdevResourceDesc desc, CUdevice dev, unsigned flags);
CUresult cuGreenCtxDestroy(CUgreenCtx green);
CUresult cuGreenCtxGetId(CUgreenCtx green, unsigned long long *out);
CUresult cuGreenCtxRecordEvent(CUgreenCtx green, CUevent event);
CUresult cuGreenCtxWaitEvent(CUgreenCtx green, CUevent event);
CUresult cuGreenCtxStreamCreate(CUstream *out, CUgreenCtx green, unsigned flags, int priority);
CUresult cuCtxFromGreenCtx(CUcontext *out, CUgreenCtx green);
CUresult cuStreamGetGreenCtx(CUstream stream, CUgreenCtx *out);

CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args);
CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args);
CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args);
CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args);
CUresult cuCheckpointProcessGetState(int pid, CUprocessState *out);

#endif
