/* The compute limit from outside the containers: whose processes kept each card at work, by the driver's samples, and
 * what follows for every container's region (agent/processes/share_rules.h). All of it in the worker's thread; touches
 * NVML, /proc, limit files and regions, and logs nothing. */
#ifndef HM_AGENT_PROCESSES_SHARES_H
#define HM_AGENT_PROCESSES_SHARES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/options/paths.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "gpu/scan.h"

struct shares;

/* paths and proc are borrowed. all: each card that a container has is worth a sample, limited or not. */
int shares_new(const struct agent_paths *paths, const char *proc, bool all, struct shares **out,
	       struct hm_err *e) HM_MUST_USE;
void shares_free(struct shares *s);
HM_DEFINE_AUTO(shares, shares_free);

struct shares_container {
	uint64_t number;
	bool held; /* it is not to launch, whatever its priority */
};
/* The containers that there are. Those already known are looked at again: another limit file or region. What
 * cannot be read now is tried again the next time. */
void shares_set(struct shares *s, const struct shares_container *containers, size_t count);
/* Is any card worth a sample: a container on it is limited, held, or waits for one of higher priority? Or all are. */
bool shares_wanted(const struct shares *s);

/* One pass: first the driver's answers (gpu NULL: there is none), then what follows. CLOCK_MONOTONIC and the clock of
 * the driver's stamps, read between the two. */
void shares_read(struct shares *s, struct gpu_driver *gpu);
void shares_apply(struct shares *s, uint64_t now_ns, uint64_t wall_us);

/* Did the last pass find anyone at work? */
bool shares_at_work(const struct shares *s);

/* For each container and card: the card's time that the samples found it at work, since it was first looked at; it
 * begins anew where its limit file is read again. */
typedef void shares_teller(void *arg, uint64_t number, const char *uuid, uint64_t busy_ns);
void shares_tell_busy(const struct shares *s, shares_teller *tell, void *arg);

/* A card whose driver does not tell whose processes are at work, once for each; NULL: none, or said before. */
const char *shares_untold(struct shares *s);

#endif
