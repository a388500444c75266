/* The kubelet's checkpoint, parsed once for each version of the file: several parts ask, and the kubelet writes it at
 * each allocation. */
#ifndef HM_AGENT_CLAIMS_CHECKPOINT_CACHE_H
#define HM_AGENT_CLAIMS_CHECKPOINT_CACHE_H

#include <stdbool.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "kubelet/checkpoint.h"

struct checkpoint_cache;

/* The path is borrowed, the resource's name copied: the entries of others are not kept. */
int checkpoint_cache_new(const char *path, const char *resource, struct checkpoint_cache **out,
			 struct hm_err *e) HM_MUST_USE;
void checkpoint_cache_free(struct checkpoint_cache *c);
HM_DEFINE_AUTO(checkpoint_cache, checkpoint_cache_free);

/* As checkpoint_read, of what stands there now; good until the next call. */
int checkpoint_cache_get(struct checkpoint_cache *c, const struct checkpoint **out, struct hm_err *e) HM_MUST_USE;

/* The entry of this container; NULL where there is none. */
const struct checkpoint_entry *checkpoint_find(const struct checkpoint *c, const char *pod_uid, const char *container);

#endif
