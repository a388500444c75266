/* Checkpoints: a process's device memory moves to the host and leaves the cards, and comes back. Only a process's own:
 * one cannot reach into another here. Between lock and unlock all other calls of the process wait (cu_enter). */
#include <unistd.h>

#include "sim/cuda/state.h"

/* Takes the lock, without waiting for a locked process; `want` is the state it must be in. */
static CUresult enter_state(int pid, CUprocessState want)
{
	if (pid != getpid())
		return CUDA_ERROR_NOT_SUPPORTED;
	cu_lock();
	if (cu.ended || cu.forked || !cu.ready)
		return cu_leave(cu.ended ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED);
	return cu.process_state == want ? CUDA_SUCCESS : cu_leave(CUDA_ERROR_ILLEGAL_STATE);
}

static CUresult leave_state(CUprocessState now)
{
	cu.process_state = now;
	cu_state_changed();
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCheckpointProcessLock(int pid, CUcheckpointLockArgs *args HM_UNUSED)
{
	CUresult rc = enter_state(pid, CU_PROCESS_STATE_RUNNING);

	return rc == CUDA_SUCCESS ? leave_state(CU_PROCESS_STATE_LOCKED) : rc;
}

/* What was queued is finished first. */
static void finish_work(void)
{
	LIST_FOR_EACH (&cu_contexts, it) {
		struct CUctx_st *ctx = HM_CONTAINER(it, struct CUctx_st, link);

		(void)cu_wait(ctx, ctx->last_ticket);
	}
}

CU_EXPORT CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args HM_UNUSED)
{
	CUresult rc = enter_state(pid, CU_PROCESS_STATE_LOCKED);

	if (rc != CUDA_SUCCESS)
		return rc;
	finish_work();
	for (unsigned i = 0; i < cu.count; i++)
		for (int kind = 0; kind < CU_MEM_KINDS; kind++)
			(void)sim_mem_release(cu.devices[i].card, (enum sim_mem_kind)kind, cu.devices[i].held[kind]);
	return leave_state(CU_PROCESS_STATE_CHECKPOINTED);
}

/* The first `n` of the devices' kinds of memory, back on the cards or off again. */
static CUresult take(unsigned n, bool on)
{
	for (unsigned i = 0; i < n; i++) {
		struct cu_device *d = &cu.devices[i / CU_MEM_KINDS];
		enum sim_mem_kind kind = (enum sim_mem_kind)(i % CU_MEM_KINDS);
		CUresult rc = CUDA_SUCCESS;

		if (!on)
			(void)sim_mem_release(d->card, kind, d->held[kind]);
		else if (d->held[kind] > 0)
			rc = cu_code(sim_mem_charge(d->card, kind, d->held[kind]));
		if (rc != CUDA_SUCCESS) {
			(void)take(i, false);
			return rc;
		}
	}
	return CUDA_SUCCESS;
}

/* Where the cards have no room any more the process stays off them and may try again. */
CU_EXPORT CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args HM_UNUSED)
{
	CUresult rc = enter_state(pid, CU_PROCESS_STATE_CHECKPOINTED);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = take(cu.count * CU_MEM_KINDS, true);
	return rc == CUDA_SUCCESS ? leave_state(CU_PROCESS_STATE_LOCKED) : cu_leave(rc);
}

CU_EXPORT CUresult cuCheckpointProcessUnlock(int pid, CUcheckpointUnlockArgs *args HM_UNUSED)
{
	CUresult rc = enter_state(pid, CU_PROCESS_STATE_LOCKED);

	return rc == CUDA_SUCCESS ? leave_state(CU_PROCESS_STATE_RUNNING) : rc;
}

CU_EXPORT CUresult cuCheckpointProcessGetState(int pid, CUprocessState *out)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (pid != getpid())
		return CUDA_ERROR_NOT_SUPPORTED;
	cu_lock();
	if (!cu.ready || cu.forked || cu.ended)
		return cu_leave(CUDA_ERROR_NOT_INITIALIZED);
	*out = cu.process_state;
	return cu_leave(CUDA_SUCCESS);
}
