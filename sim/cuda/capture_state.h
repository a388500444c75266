/* What the calls that begin and end captures do (capture_api.c). Under the lock of state.h. */
#ifndef HM_SIM_CUDA_CAPTURE_STATE_H
#define HM_SIM_CUDA_CAPTURE_STATE_H

#include "sim/cuda/capture.h"

/* graph NULL: into one of its own. */
CUresult cu_capture_begin(const struct cu_stream_ref *s, CUstreamCaptureMode mode, CUgraph graph,
			  const CUgraphNode *deps, size_t n);
/* The graph, or NULL and a code; the capture is over unless the call is the wrong one. */
CUresult cu_capture_end(const struct cu_stream_ref *s, CUgraph *out);
/* What the stream's next node depends on: these too, or these alone. */
CUresult cu_capture_depend(struct cu_captured *c, const CUgraphNode *deps, size_t n, bool replace);

#endif
