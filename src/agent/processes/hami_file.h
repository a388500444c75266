/* One container's file for HAMi's vGPUmonitor (contract/hami_cache.h), filled from our own region. The monitor maps it
 * once and for good: it is written in place, never replaced, and of full size from the start. */
#ifndef HM_AGENT_PROCESSES_HAMI_FILE_H
#define HM_AGENT_PROCESSES_HAMI_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "contract/hami_cache.h"
#include "core/err.h"
#include "region/region.h"

struct hami_file_state {
	const struct region_snapshot *region; /* with its processes */
	unsigned busy_percent[HM_MAX_CARDS];  /* of each card's time, by the whole container */
	unsigned priority;                    /* 0 is high */
	bool launched;                        /* since the last time */
	int64_t now_s;                        /* Unix seconds */
};

/* Everything but the words that the monitor writes, which get HAMi-core's first values. */
void hami_file_fill(struct hami_cache *out, const struct hami_file_state *s);

/* A hold that the monitor does not repeat in so many rounds is let go: it has ended. */
enum { HAMI_FILE_HOLD_ROUNDS = 6 };

/* Makes the file, or brings it up to date: utilization_switch and recent_kernel stay the monitor's, but for a launch,
 * which is told by recent_kernel unless it says "held". *held, from round to round: 0 not held, else since how many
 * rounds the monitor has said so. A file that is none is made anew. */
int hami_file_write(const char *path, const struct hami_cache *c, bool launched, unsigned *held,
		    struct hm_err *e) HM_MUST_USE;

#endif
