#include "agent/options/hami_options.h"

#include <string.h>

#include "contract/hami.h"
#include "core/macros.h"
#include "hami/device_config.h"
#include "hami/node_config.h"

void hami_options_defaults(struct hami_options *h)
{
	*h = (struct hami_options) {
		.node_config = "/config/config.json",
		.device_split_count = 10,
		.device_memory_scaling = 1,
		.device_cores_scaling = 1,
		.mig_strategy = "none",
		.device_list_strategy = { "envvar" },
		.device_id_strategy = "uuid",
		.device_discovery_strategy = "auto",
		.cdi_annotation_prefix = HAMI_CDI_ANNOTATION_PREFIX,
		.nvidia_cdi_hook_path = "", /* HAMi's /usr/bin/nvidia-ctk ends containers where it is not there */
		.nvidia_driver_root = "/",
		.dev_root = "",
		.driver_root_ctr_path = "/driver-root",
		.hook_path = "/usr/local",
		.operating_mode = HAMI_MODE_CORE,
		.libcuda_log_level = "1",
	};
}

void hami_options_table(struct hami_options *h, struct option_spec table[HAMI_OPTION_COUNT])
{
	const struct option_spec specs[] = {
		{ "config-file", "CONFIG_FILE", OPTION_TEXT, &h->config_file, 0, 0, NULL, "PATH",
		  "HAMi's device-config.yaml; given: --mode=hami is the default" },
		{ "node-config", NULL, OPTION_TEXT, &h->node_config, 0, 0, NULL, "PATH",
		  "HAMi's config.json: what is different on this node" },
		{ "device-split-count", "DEVICE_SPLIT_COUNT", OPTION_U64, &h->device_split_count, 1,
		  DEVICE_CONFIG_MAX_SPLIT, NULL, NULL, "mode hami: how many containers may share a card" },
		{ "device-memory-scaling", "DEVICE_MEMORY_SCALING", OPTION_F64, &h->device_memory_scaling, 0,
		  DEVICE_CONFIG_MAX_SCALING, NULL, NULL,
		  "mode hami: registered memory / the card's; above 1 it is oversubscribed" },
		{ "device-cores-scaling", "DEVICE_CORES_SCALING", OPTION_F64, &h->device_cores_scaling, 0,
		  DEVICE_CONFIG_MAX_SCALING, NULL, NULL, "mode hami: registered compute / the card's" },
		{ "disable-core-limit", "DISABLE_CORE_LIMIT", OPTION_BOOL, &h->disable_core_limit, 0, 0, NULL, NULL,
		  "mode hami: compute is not limited; false does not go over disableCoreLimit: true" },
		{ "mig-strategy", "MIG_STRATEGY", OPTION_CHOICE, &h->mig_strategy, 0, 0, "none|single|mixed", NULL,
		  "how MIG devices that an administrator made are offered; single in mode hami alone" },
		{ "device-list-strategy", "DEVICE_LIST_STRATEGY", OPTION_LIST, &h->device_list_strategy, 0, 0,
		  "envvar|volume-mounts|cdi-annotations|cdi-cri", NULL,
		  "mode hami, classic binding: how a container is told its cards; several with commas between" },
		{ "device-id-strategy", "DEVICE_ID_STRATEGY", OPTION_CHOICE, &h->device_id_strategy, 0, 0, "uuid|index",
		  NULL, "mode hami, classic binding: a card's name in the device list" },
		{ "device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY", OPTION_CHOICE,
		  &h->device_discovery_strategy, 0, 0, "auto|nvml|tegra", NULL,
		  "where cards are looked for; tegra is refused" },
		{ "pass-device-specs", "PASS_DEVICE_SPECS", OPTION_BOOL, &h->pass_device_specs, 0, 0, NULL, NULL,
		  "mode hami, classic binding: device nodes are in the answer" },
		{ "nvidia-driver-root", "NVIDIA_DRIVER_ROOT", OPTION_TEXT, &h->nvidia_driver_root, 0, 0, NULL, "DIR",
		  "the driver's root on the node" },
		{ "dev-root", "NVIDIA_DEV_ROOT", OPTION_TEXT, &h->dev_root, 0, 0, NULL, "DIR",
		  "the node's folder before a device node's path; default: the driver's root", "nvidia-dev-root" },
		{ "driver-root-ctr-path", "DRIVER_ROOT_CTR_PATH", OPTION_TEXT, &h->driver_root_ctr_path, 0, 0, NULL,
		  "DIR", "mode hami: the driver's root as this program sees it; NVML is looked for there first",
		  "container-driver-root", "CONTAINER_DRIVER_ROOT" },
		{ "nvidia-cdi-hook-path", "NVIDIA_CDI_HOOK_PATH", OPTION_TEXT, &h->nvidia_cdi_hook_path, 0, 0, NULL,
		  "PATH",
		  "the node's nvidia-ctk: CDI specs that we make have the loader's cache updated; none: no hook",
		  "nvidia-ctk-path", "NVIDIA_CTK_PATH" },
		{ "cdi-annotation-prefix", "CDI_ANNOTATION_PREFIX", OPTION_TEXT, &h->cdi_annotation_prefix, 0, 0, NULL,
		  NULL, "mode hami: what the keys of strategy cdi-annotations begin with" },
		{ "gdrcopy-enabled", "GDRCOPY_ENABLED", OPTION_BOOL, &h->gdrcopy, 0, 0, NULL, NULL,
		  "mode hami: containers get GDRCopy" },
		{ "gds-enabled", "GDS_ENABLED", OPTION_BOOL, &h->gds, 0, 0, NULL, NULL,
		  "mode hami: containers get GPUDirect Storage" },
		{ "mofed-enabled", "MOFED_ENABLED", OPTION_BOOL, &h->mofed, 0, 0, NULL, NULL,
		  "mode hami: containers get MOFED" },
		{ "imex-channel-ids", "IMEX_CHANNEL_IDS", OPTION_LIST, &h->imex_channel_ids, 0, 0, NULL, NULL,
		  "mode hami: IMEX channels of every container; none or 0" },
		{ "imex-required", "IMEX_REQUIRED", OPTION_BOOL, &h->imex_required, 0, 0, NULL, NULL,
		  "mode hami: without the channels' device nodes nothing starts" },
		{ "hook-path", "HOOK_PATH", OPTION_TEXT, &h->hook_path, 0, 0, NULL, "DIR",
		  "mode hami: the node's folder of HAMi's vgpu folder, at the same path here" },
		{ "enable-topology-score", "ENABLE_TOPOLOGY_SCORE", OPTION_BOOL, &h->topology_score, 0, 0, NULL, NULL,
		  "mode hami: publish how close the cards are to each other" },
	};

	_Static_assert(HM_COUNT(specs) == HAMI_OPTION_COUNT, "HAMI_OPTION_COUNT");
	memcpy(table, specs, sizeof specs);
}

void hami_options_fini(struct hami_options *h)
{
	device_config_free(HM_STEAL(h->device));
	node_config_free(HM_STEAL(h->node));
}

int hami_options_check(const struct hami_options *h, struct hm_err *e)
{
	static const char in_keys[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./";
	const char *prefix = h->cdi_annotation_prefix;

	if (strcmp(h->device_discovery_strategy, "tegra") == 0)
		return hm_err_set(e, HM_EUNSUPPORTED,
				  "--device-discovery-strategy=tegra: this version knows only NVML");
	if (h->imex_channel_ids.text[0] != '\0' && strcmp(h->imex_channel_ids.text, "0") != 0)
		return hm_err_set(e, HM_EINVAL, "--imex-channel-ids: \"%s\" is neither empty nor 0",
				  h->imex_channel_ids.text);
	if (h->device_list_strategy.text[0] == '\0')
		return hm_err_set(e, HM_EINVAL, "--device-list-strategy: there must be one");
	if (prefix[strspn(prefix, in_keys)] != '\0')
		return hm_err_set(e, HM_EINVAL, "--cdi-annotation-prefix: \"%s\" cannot begin the key of an annotation",
				  prefix);
	return 0;
}
