/* /device-config.yaml, HAMi's configuration of the cluster: the section `nvidia`, and what NVIDIA's own reader takes of
 * the same file. Sections of other vendors are passed over. */
#ifndef HM_HAMI_DEVICE_CONFIG_H
#define HM_HAMI_DEVICE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/texts.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "hami/keys.h"
#include "model/mig_allowlist.h"

enum {
	DEVICE_CONFIG_MAX_BYTES = 1 << 20,
	DEVICE_CONFIG_MAX_SPLIT = 1000,
	DEVICE_CONFIG_MAX_SCALING = 100,
};

/* Texts are borrowed from `tree`. An absent key has the default that HAMi's chart gives it; HAMi's own programs end
 * with a nil pointer where one of deviceSplitCount, deviceMemoryScaling, deviceCoreScaling, libCudaLogLevel is absent.
 */
struct device_config {
	const char *resource_count, *resource_memory, *resource_memory_percentage, *resource_cores, *resource_priority;
	bool overwrite_env, disable_core_limit, numa_topology;
	uint64_t default_memory_mib, default_cores, default_gpu_count, memory_factor;
	const char *core_policy; /* default, force, disable */
	const char *runtime_class;
	uint64_t split_count;
	double memory_scaling, core_scaling;
	uint64_t preconfigured_memory_mib; /* 0: none */
	char libcuda_log_level[HAMI_LABEL_BYTES];
	struct mig_allowlist mig;
	/* For NVIDIA's reader: objects of the tree, or NULL. */
	const struct cJSON *flags, *imex;
	struct cJSON *tree; /* owned */
};

void device_config_free(struct device_config *c);
HM_DEFINE_AUTO(device_config, device_config_free);

/* A bad value is refused with line and reason; what is unknown or without effect is warned of once (`told`, may be
 * NULL: never). `file` is for the messages. */
int device_config_parse(const char *text, size_t n, const char *file, struct texts *told, struct device_config **out,
			struct hm_err *e) HM_MUST_USE;

/* The same for the file; -HM_ENOTFOUND where there is none. The message names it. */
int device_config_read(const char *path, struct texts *told, struct device_config **out, struct hm_err *e) HM_MUST_USE;

#endif
