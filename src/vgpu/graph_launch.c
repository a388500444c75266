/* Launching and uploading graphs with memory nodes: charged before, corrected after. */
#include "vgpu/graph.h"
#include "vgpu/hooks.h"
#include "vgpu/pool.h"

struct graph_booking {
	struct vgpu *v; /* NULL: nothing is booked */
	CUgraphExec exec;
	struct graph_flight flights[HM_MAX_CARDS]; /* by device */
	uint64_t devices;                          /* a bit for each that is booked */
};

static CUresult graph_close(struct graph_booking *g, CUresult rc)
{
	struct graph_seen seen;

	if (g->v == NULL)
		return rc;
	for (int i = 0; g->devices >> i != 0; i++) {
		if ((g->devices >> i & 1) != 0 && graph_memory_close(g->v, &g->flights[i], &seen) && rc == CUDA_SUCCESS)
			graph_learn(g->v, g->exec, i, &seen);
	}
	return rc;
}

static CUresult graph_open(struct graph_booking *g, CUgraphExec exec, CUstream stream, bool per_thread)
{
	struct vgpu *v = vgpu_get();
	uint64_t devices = v != NULL ? v->graph_devices : 0;

	g->v = NULL;
	g->devices = 0;
	if (HM_LIKELY(devices == 0) || exec == NULL || stream_is_capturing(stream, per_thread))
		return CUDA_SUCCESS;
	g->v = v;
	g->exec = exec;
	for (int i = 0; devices >> i != 0; i++) {
		struct graph_seen need;

		if ((devices >> i & 1) == 0 || !graph_need_of(v, exec, i, &need))
			continue;
		if (!graph_memory_open(v, i, need.bytes, need.epoch, &g->flights[i]))
			return graph_close(g, CUDA_ERROR_OUT_OF_MEMORY);
		g->devices |= UINT64_C(1) << i;
	}
	return CUDA_SUCCESS;
}

CUresult graph_launch(CUgraphExec exec, CUstream stream)
{
	struct graph_booking g;
	CUresult rc = graph_open(&g, exec, stream, false);

	return rc == CUDA_SUCCESS ? graph_close(&g, REAL(cuGraphLaunch)(exec, stream)) : rc;
}

CUresult graph_launch_ptsz(CUgraphExec exec, CUstream stream)
{
	struct graph_booking g;
	CUresult rc = graph_open(&g, exec, stream, true);

	return rc == CUDA_SUCCESS ? graph_close(&g, REAL(cuGraphLaunch_ptsz)(exec, stream)) : rc;
}

VGPU_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	struct graph_booking g;
	CUresult rc = graph_open(&g, exec, stream, false);

	return rc == CUDA_SUCCESS ? graph_close(&g, REAL(cuGraphUpload)(exec, stream)) : rc;
}

VGPU_EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	struct graph_booking g;
	CUresult rc = graph_open(&g, exec, stream, true);

	return rc == CUDA_SUCCESS ? graph_close(&g, REAL(cuGraphUpload_ptsz)(exec, stream)) : rc;
}

VGPU_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	struct vgpu *v = vgpu_get();
	bool graphs = v != NULL && v->graph_devices != 0;
	CUresult rc;

	if (graphs)
		graph_memory_trim(v, true);
	rc = REAL(cuDeviceGraphMemTrim)(device);
	if (graphs) {
		graph_memory_trim(v, false);
		graph_memory_refresh_all(v);
	}
	return rc;
}
