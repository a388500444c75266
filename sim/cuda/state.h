/* What the parts of the simulated libcuda share: the process's devices and contexts, the one lock, and the way in and
 * out of a call. One mutex guards everything of this process; it is never held while work is waited for. */
#ifndef HM_SIM_CUDA_STATE_H
#define HM_SIM_CUDA_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_api.h"
#include "core/link.h"
#include "core/macros.h"
#include "sim/lib/sim_client.h"

enum { CU_DRIVER_VERSION = 13000 }; /* the interface that is exported: cuda_symbols.txt */

/* Exported: the folder's code is built with hidden visibility. */
#define CU_EXPORT __attribute__((visibility("default")))

/* Real cards map device memory in pages of 2 MiB; allocations are aligned to 512 B within them. */
#define CU_PAGE_BYTES ((uint64_t)2 << 20)
#define CU_ALIGN_BYTES ((uint64_t)512)

enum { CU_MEM_KINDS = 2 };
enum { CU_LIMITS = 10 }; /* CU_LIMIT_MAX of 13.0 */

struct CUctx_st {
	struct link link; /* on the list of all that live */
	uint64_t id;      /* never reused; 0 is no context */
	unsigned device;
	unsigned flags;
	unsigned api_version;
	unsigned attached; /* by cuCtxAttach */
	bool primary;
	bool green;      /* part of a struct CUgreenCtx_st */
	unsigned sms;    /* that its kernels may use; 0: all */
	bool alive;      /* a primary context is one object for ever, alive between first retain and last release */
	CUresult sticky; /* once set, every call in this context answers it */
	uint64_t context_bytes; /* charged: overhead, limits, code */
	uint64_t code_bytes;    /* of its modules */
	uint64_t last_ticket;   /* of all its streams */
	struct link blocks;     /* struct cu_region kind BLOCK with room left */
	struct link streams, events, modules, hosts, arrays, mipmaps;
	struct link loaded;       /* struct cu_loaded: libraries */
	size_t limits[CU_LIMITS]; /* cuCtxSetLimit */
	uint32_t peers;           /* devices whose memory it may use: a bit for each */
	int cache_config, shared_config;
};

/* Memory of a device's graphs, in bytes; what is reserved is charged. */
struct cu_graph_memory {
	uint64_t used, used_high, reserved, reserved_high;
};

struct cu_device {
	unsigned card;
	uint32_t mig; /* the compute instance's `live`; 0: the whole card */
	struct CUctx_st primary;
	unsigned primary_refs;
	uint64_t held[CU_MEM_KINDS]; /* charged, by enum sim_mem_kind */
	unsigned contexts;           /* alive, primary included */
	CUmemoryPool default_pool, current_pool;
	struct cu_graph_memory graph_memory;
};

struct cu_state {
	bool ready;  /* cuInit succeeded */
	bool forked; /* a child of a process that had called cuInit: unusable, as with the real driver */
	bool ended;  /* the library's destructor has run */
	CUprocessState process_state; /* other than RUNNING: calls wait */
	unsigned count;               /* devices visible to this process */
	struct cu_device devices[SIM_MAX_CARDS];
};
extern struct cu_state cu;
extern struct link cu_contexts; /* struct CUctx_st, all that are alive */

/* In: takes the lock. On an error the lock is not held and the code is the call's answer. */
CUresult cu_enter(void) HM_MUST_USE;                                        /* after cuInit */
CUresult cu_enter_device(CUdevice dev, struct cu_device **out) HM_MUST_USE; /* and dev is valid */
CUresult cu_enter_context(struct CUctx_st **out) HM_MUST_USE;               /* and a live context is current */
/* Out: gives the lock back and returns rc. */
CUresult cu_leave(CUresult rc);

/* Wakes calls that wait for the process to run again. Lock held. */
void cu_state_changed(void);

/* For what waits: between these the lock is not held, so handles must be looked up again. */
void cu_unlock(void);
void cu_lock(void);

CUresult cu_code(enum sim_result result);
int cu_driver_version(void); /* 1000 * major + 10 * minor; works before cuInit */
const struct sim_card_info *cu_info(unsigned device);

/* The context that is current in this thread, or NULL; lock held. */
struct CUctx_st *cu_current(void);
/* Whose memory and code is allocated in ctx: the primary context for a green one. */
struct CUctx_st *cu_context_owner(struct CUctx_st *ctx);
/* Whether what belongs to one may be used in the other: one context, or a device's primary and green ones. */
bool cu_context_shares(const struct CUctx_st *a, const struct CUctx_st *b);
/* Whether ctx may be used: alive, no sticky error, card there. Lock held. */
CUresult cu_context_usable(struct CUctx_st *ctx);
/* A context handle from outside, NULL meaning the current one. Lock held. */
CUresult cu_context_get(CUcontext handle, struct CUctx_st **out);

/* Charges this process for memory of a device, and gives it back. Lock held. */
CUresult cu_charge(unsigned device, enum sim_mem_kind kind, uint64_t bytes);
void cu_discharge(unsigned device, enum sim_mem_kind kind, uint64_t bytes);

/* Waits until `ticket` is done; drops the lock meanwhile, retakes it. A lost card makes ctx's error sticky. */
CUresult cu_wait(struct CUctx_st *ctx, uint64_t ticket);

#endif
