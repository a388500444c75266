/* Graphs with memory nodes: known from their instantiation, with what a launch of them needs. */
#ifndef HM_VGPU_GRAPH_H
#define HM_VGPU_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda_graph.h"
#include "vgpu/graph_memory.h"
#include "vgpu/state.h"

/* The driver's cuGraphLaunch, and its charge before and after: OUT_OF_MEMORY where the graph's memory nodes do not fit.
 * A graph without any costs a load and a branch. */
CUresult graph_launch(CUgraphExec exec, CUstream stream);
CUresult graph_launch_ptsz(CUgraphExec exec, CUstream stream);

/* What a launch of the graph needs on one device (TRACK_GRAPH). False: it has no memory nodes there. */
bool graph_need_of(struct vgpu *v, CUgraphExec exec, CUdevice device, struct graph_seen *out);
void graph_learn(struct vgpu *v, CUgraphExec exec, CUdevice device, const struct graph_seen *seen);

#endif
