/* HAMi's own flags and variables, by HAMi's names, and what its files say: /device-config.yaml (--config-file) for the
 * cluster and /config/config.json (--node-config) for this node. Precedence: flag over environment over config.json
 * over device-config.yaml over default. docs/agent.md lists them. */
#ifndef HM_AGENT_OPTIONS_HAMI_OPTIONS_H
#define HM_AGENT_OPTIONS_HAMI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "core/err.h"

struct device_config;
struct node_config;

/* Texts may be NULL or "" where nothing is said, but for those with a default. */
struct hami_options {
	const char *config_file, *node_config;
	uint64_t device_split_count;                        /* replicas of a card */
	double device_memory_scaling, device_cores_scaling; /* registered / there is; 1: the card as it is */
	bool disable_core_limit;
	const char *mig_strategy; /* none, single, mixed */
	struct option_list device_list_strategy, imex_channel_ids;
	bool pass_device_specs, gdrcopy, gds, mofed, imex_required, topology_score;
	const char *device_id_strategy; /* uuid, index */
	const char *device_discovery_strategy;
	const char *cdi_annotation_prefix, *nvidia_cdi_hook_path;
	const char *nvidia_driver_root, *dev_root; /* on the node; dev_root "": the driver root */
	const char *driver_root_ctr_path;          /* the same driver root as this program sees it */
	const char *hook_path;                     /* on the node and here: <hook_path>/vgpu */
	/* From the files alone. */
	const char *operating_mode; /* contract/hami.h's HAMI_MODE_*, or what config.json says */
	const char *libcuda_log_level;
	uint64_t preconfigured_memory_mib; /* of a card whose memory NVML cannot tell; 0: leave such a card out */
	const char *node_config_trouble;   /* why config.json is not used; NULL: nothing is wrong */
	/* The files themselves, owned; NULL where there is none. New ones when they are read again. */
	struct device_config *device;
	struct node_config *node;
};

enum { HAMI_OPTION_COUNT = 23 };

void hami_options_defaults(struct hami_options *h);
void hami_options_table(struct hami_options *h, struct option_spec table[HAMI_OPTION_COUNT]);

void hami_options_fini(struct hami_options *h);

/* What the table's kinds cannot say. */
int hami_options_check(const struct hami_options *h, struct hm_err *e) HM_MUST_USE;

#endif
