/* Which processes kept a card at work: the driver's samples of it, one each 1/6 s to 1 s. Blocking calls that may hang:
 * run them in io/worker. */
#ifndef HM_GPU_BUSY_H
#define HM_GPU_BUSY_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct gpu_driver;

struct gpu_busy {
	unsigned pid;     /* of the host, where the driver and we see those */
	unsigned percent; /* of the samples' time, 0 to 100 */
};

struct gpu_busy_list {
	struct gpu_busy *items;
	size_t count;
	uint64_t until_us; /* the end of the last sample in which any of them worked, since 1970; 0: none */
	void *room;        /* what the driver writes to */
	size_t cap, room_cap;
};

void gpu_busy_fini(struct gpu_busy_list *l);

/* Who worked in the samples that ended after since_us (since 1970); *l is used again from call to call. Nobody, or no
 * sample since then: count 0. -HM_ENOTFOUND: no such card; -HM_EUNSUPPORTED: this driver does not tell for it. */
int gpu_busy_read(struct gpu_driver *d, const char *uuid, uint64_t since_us, struct gpu_busy_list *l,
		  struct hm_err *e) HM_MUST_USE;

#endif
