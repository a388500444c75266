/* Memory pools (stream-ordered allocation). A pool takes chunks from its card and cuts them; what it has taken
 * ("reserved") stays taken until a synchronisation finds it above the release threshold, or a trim. Allocations and
 * frees take effect at once, not in stream order. Under the lock of state.h. */
#ifndef HM_SIM_CUDA_POOL_H
#define HM_SIM_CUDA_POOL_H

#include "sim/cuda/state.h"

struct cu_extent;

struct CUmemPoolHandle_st {
	struct link link;   /* on the list of all pools */
	struct link chunks; /* struct cu_region kind POOL, by `room` */
	unsigned device;
	bool is_default, doomed; /* doomed: destroyed, lives on until its last allocation is freed */
	uint64_t max_bytes;      /* 0: the card's */
	uint64_t threshold;
	uint64_t reserved, reserved_high, used, used_high;
	int handle_types; /* it can be shared by */
	bool on_host;     /* its memory takes nothing of a card */
	bool imported;    /* another process's: nothing can be allocated from it */
	int flags[3];     /* reuse attributes; kept, without effect */
};

/* pool NULL: the device's current one. */
CUresult cu_pool_alloc(struct CUctx_st *ctx, CUmemoryPool pool, size_t bytes, CUdeviceptr *out);
void cu_pool_give(const struct cu_extent *x);  /* frees an allocation of a pool */
void cu_pools_release(unsigned device);        /* a synchronisation: gives back what is above each pool's threshold */
void cu_pools_empty(unsigned device);          /* the device's last context has gone: all allocations go */
CUmemoryPool cu_pool_import(unsigned device);  /* NULL: out of memory */
CUmemoryPool cu_pool_default(unsigned device); /* NULL: out of memory */
CUmemoryPool cu_pool_of_host(void);            /* the host's default pool */
bool cu_place_is_host(const CUmemLocation *where);

#endif
