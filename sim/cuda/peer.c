/* Peer access between cards. Addressing is unified and copies always work; what is kept is who may. Nothing is taken
 * for it. */
#include "sim/cuda/state.h"

/* As drivers answer on servers: by NVLink, or below one host bridge. */
static bool reaches(unsigned device, unsigned peer)
{
	const struct sim_card_info *info = cu_info(device);
	unsigned card = cu.devices[peer].card;

	return device != peer && (info->nvlinks[card] > 0 || info->pci_level[card] <= SIM_PCI_HOSTBRIDGE);
}

CU_EXPORT CUresult cuDeviceCanAccessPeer(int *out, CUdevice dev, CUdevice peer)
{
	struct cu_device *device;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (peer < 0 || (unsigned)peer >= cu.count)
		return cu_leave(CUDA_ERROR_INVALID_DEVICE);
	*out = reaches((unsigned)dev, (unsigned)peer);
	return cu_leave(CUDA_SUCCESS);
}

/* Takes the lock; finds the current context, and the peer's device as a bit of its mask. */
static CUresult enter_peer(CUcontext peer, struct CUctx_st **ctx, uint32_t *bit)
{
	struct CUctx_st *other;
	CUresult rc = cu_enter_context(ctx);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = peer == NULL ? CUDA_ERROR_INVALID_CONTEXT : cu_context_get(peer, &other);
	if (rc == CUDA_SUCCESS && other->device == (*ctx)->device)
		rc = CUDA_ERROR_INVALID_DEVICE;
	if (rc == CUDA_SUCCESS && !reaches((*ctx)->device, other->device))
		rc = CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (rc != CUDA_SUCCESS)
		return cu_leave(rc);
	*bit = 1U << other->device;
	return CUDA_SUCCESS;
}

CU_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
	struct CUctx_st *ctx;
	uint32_t bit = 0;

	if (flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = enter_peer(peer, &ctx, &bit);

	if (rc != CUDA_SUCCESS)
		return rc;
	if ((ctx->peers & bit) != 0)
		return cu_leave(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	ctx->peers |= bit;
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
	struct CUctx_st *ctx;
	uint32_t bit = 0;
	CUresult rc = enter_peer(peer, &ctx, &bit);

	if (rc != CUDA_SUCCESS)
		return rc;
	if ((ctx->peers & bit) == 0)
		return cu_leave(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	ctx->peers &= ~bit;
	return cu_leave(CUDA_SUCCESS);
}
