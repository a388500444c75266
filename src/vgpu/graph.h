/* Memory that graphs allocate, charged as one more pool of each device: for what the driver says that the device's
 * graphs have reserved. A launch is where that grows. */
#ifndef HM_VGPU_GRAPH_H
#define HM_VGPU_GRAPH_H

#include "abi/cuda_graph.h"

/* The driver's cuGraphLaunch, and its charge before and after: OUT_OF_MEMORY where the graph's memory nodes do not fit.
 * A graph without any costs a load and a branch. */
CUresult graph_launch(CUgraphExec exec, CUstream stream);
CUresult graph_launch_ptsz(CUgraphExec exec, CUstream stream);

#endif
