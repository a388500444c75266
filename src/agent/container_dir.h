/* The folder of one container on the node: limit file, usage region, ld.so.preload (contract/host.h). It lives as long
 * as the container. */
#ifndef HM_AGENT_CONTAINER_DIR_H
#define HM_AGENT_CONTAINER_DIR_H

#include "agent/paths.h"
#include "core/err.h"
#include "model/claim_text.h"

/* Makes it, or brings an existing one up to date: files that say the same are left alone, a region keeps its counters
 * but for the charges of processes that ended with the last run. */
int container_dir_write(const struct agent_paths *p, const struct claim *c, struct hm_err *e) HM_MUST_USE;
/* -HM_EAGAIN: the container left more behind than is removed at one time; to be called again. */
int container_dir_remove(const struct agent_paths *p, uint64_t number, struct hm_err *e) HM_MUST_USE;

#endif
