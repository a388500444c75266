/* /config/config.json, HAMi's configuration of single nodes: what stands there for ours goes over device-config.yaml.
 * Merged as HAMi merges: an entry for this node's name overrides with what is not zero, several in their order; a zero,
 * false or "" that would have changed something has no effect, and is warned of once. */
#ifndef HM_HAMI_NODE_CONFIG_H
#define HM_HAMI_NODE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/texts.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "hami/device_config.h"

enum { NODE_CONFIG_MAX_BYTES = 1 << 20 };

struct node_config {
	bool found;                            /* there is an entry for this node */
	char operating_mode[HAMI_LABEL_BYTES]; /* "" where none is said */
	const char **filter_uuids;             /* cards that are not to be offered; texts borrowed from `tree` */
	size_t filter_uuid_count;
	uint64_t *filter_indices; /* by NVML's index */
	size_t filter_index_count;
	struct cJSON *tree; /* owned */
};

void node_config_free(struct node_config *c);
HM_DEFINE_AUTO(node_config, node_config_free);

/* Changes `device` where an entry says so, nothing on failure. Keys count in any case, as encoding/json reads them.
 * -HM_EINVAL and -HM_EPROTO name the line; the whole file is then of no use, as in HAMi. */
int node_config_parse(const char *text, size_t n, const char *file, const char *node, struct texts *told,
		      struct device_config *device, struct node_config **out, struct hm_err *e) HM_MUST_USE;

/* The same for the file; -HM_ENOTFOUND where there is none. The message names it. */
int node_config_read(const char *path, const char *node, struct texts *told, struct device_config *device,
		     struct node_config **out, struct hm_err *e) HM_MUST_USE;

#endif
