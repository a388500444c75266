/* The folder of one container on the node: limit file, usage region, ld.so.preload (contract/host.h). It lives as long
 * as the container. */
#ifndef HM_AGENT_CONTAINER_CONTAINER_DIR_H
#define HM_AGENT_CONTAINER_CONTAINER_DIR_H

#include <stdbool.h>

#include "agent/options/paths.h"
#include "core/err.h"
#include "model/claim_text.h"

/* How large the container may make its region, which any of its users may write to, until the agent comes by. */
enum { CONTAINER_DIR_MAX_BYTES = 16 * 1024 * 1024 };

/* Makes it, or brings an existing one up to date: files that say the same are left alone, a region keeps its counters
 * but for the charges of processes that ended with the last run. `oversubscribe`: also where the claim does not say so
 * (one of an older release). */
int container_dir_write(const struct agent_paths *p, const struct claim *c, bool oversubscribe,
			struct hm_err *e) HM_MUST_USE;
/* False where the container put more than the region into its usage folder, or has let the region grow beyond
 * CONTAINER_DIR_MAX_BYTES, which is then cut. Cheap. */
bool container_dir_tidy(const struct agent_paths *p, uint64_t number);

/* -HM_EAGAIN: the container left more behind than is removed at one time; to be called again. */
int container_dir_remove(const struct agent_paths *p, uint64_t number, struct hm_err *e) HM_MUST_USE;

#endif
