/* What the graphs of each device have taken from its card: charged is what the driver says that they have reserved.
 *
 * A launch that may take memory is charged before it (graph_memory_open) and corrected after (graph_memory_close).
 * Several may be under way: none counts on the free memory that another one was promised. */
#ifndef HM_VGPU_GRAPH_MEMORY_H
#define HM_VGPU_GRAPH_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "vgpu/state.h"

struct graph_flight {
	CUdevice device;
	uint64_t need;   /* bytes */
	uint64_t booked; /* of them charged; the rest is reserved already */
	uint32_t epoch;
};

/* What a launch was seen to take. */
struct graph_seen {
	uint64_t bytes; /* no more than this */
	uint32_t epoch; /* while it lasts the same launch takes nothing new; 0: it never did */
};

/* Before a launch that needs up to `need` bytes on the device, nothing if `epoch` lasts. False: over the limit, nothing
 * is charged. */
bool graph_memory_open(struct vgpu *v, CUdevice device, uint64_t need, uint32_t epoch, struct graph_flight *f);
/* After it, or instead of it. False: other things happened meanwhile, nothing can be told. */
bool graph_memory_close(struct vgpu *v, struct graph_flight *f, struct graph_seen *out);

/* Reads again what the device's graphs hold. False: over the limit; it is charged all the same. */
bool graph_memory_refresh(struct vgpu *v, CUdevice device);
void graph_memory_refresh_all(struct vgpu *v);
/* Before a trim, and after it. */
void graph_memory_trim(struct vgpu *v, bool begins);

#endif
