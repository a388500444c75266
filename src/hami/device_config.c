#include "hami/device_config.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "contract/hami.h"
#include "io/file.h"
#include "io/yaml.h"

static const uint64_t INT32_TOP = 0x7fffffff;

void device_config_free(struct device_config *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->mig.count; i++) {
		free(c->mig.items[i].models);
		free(c->mig.items[i].profiles);
	}
	free(c->mig.items);
	json_free(c->tree);
	free(c);
}

/* "1g.5gb", "1g.10gb+me": HAMi's rule, a dot with two characters or more before it, the last of them a g. */
static bool is_profile(const char *name)
{
	size_t n = strcspn(name, ".");

	return name[n] == '.' && n >= 2 && name[n - 1] == 'g';
}

static int read_words(const struct json_at *item, const char *key, bool profiles, const char ***out, size_t *count,
		      struct hm_err *e)
{
	struct json_at list;

	if (json_array(item, key, JSON_REQUIRED, &list, e) < 0)
		return -e->code;
	if (json_count(&list) == 0)
		return json_err(item, key, e, "is empty");
	*out = calloc(json_count(&list), sizeof **out);
	if (*out == NULL)
		return hm_err_set(e, HM_ENOMEM, "device configuration");
	for (*count = 0; *count < json_count(&list); (*count)++) {
		const struct json_at word = json_item(&list, *count);
		const char **to = &(*out)[*count];

		if (json_text(&word, NULL, JSON_REQUIRED, to, e) < 0)
			return -e->code;
		if (**to == '\0')
			return json_err(&word, NULL, e, "is empty");
		if (profiles && !is_profile(*to))
			return json_err(&word, NULL, e, "\"%.60s\" is no MIG profile, such as 1g.5gb", *to);
	}
	return 0;
}

static int read_allowlist(const struct json_at *nvidia, struct mig_allowlist *mig, struct hm_err *e)
{
	struct json_at list;

	if (json_array(nvidia, "migProfileAllowlist", JSON_OPTIONAL, &list, e) < 0)
		return -e->code;
	if (json_count(&list) == 0)
		return 0;
	mig->items = calloc(json_count(&list), sizeof *mig->items);
	if (mig->items == NULL)
		return hm_err_set(e, HM_ENOMEM, "device configuration");
	for (size_t i = 0; i < json_count(&list); i++) {
		const struct json_at item = json_item(&list, i);
		struct mig_allowed *to = &mig->items[mig->count++];

		if (read_words(&item, "models", false, &to->models, &to->model_count, e) < 0 ||
		    read_words(&item, "profiles", true, &to->profiles, &to->profile_count, e) < 0)
			return -e->code;
	}
	return 0;
}

static int check_policy(const struct json_at *nvidia, const struct device_config *c, struct hm_err *e)
{
	static const char *const words[] = { "", "default", "force", "disable" };

	for (size_t i = 0; i < HM_COUNT(words); i++)
		if (strcmp(c->core_policy, words[i]) == 0)
			return 0;
	return json_err(nvidia, "gpuCorePolicy", e, "\"%.60s\" is none of default, force, disable", c->core_policy);
}

static int read_nvidia(const struct json_at *root, const char *file, struct texts *told, struct device_config *c,
		       struct hm_err *e)
{
	const struct cJSON *allowlist;
	const struct hami_key keys[] = {
		{ "resourceCountName", HAMI_RESOURCE, &c->resource_count },
		{ "resourceMemoryName", HAMI_RESOURCE, &c->resource_memory },
		{ "resourceMemoryPercentageName", HAMI_RESOURCE, &c->resource_memory_percentage },
		{ "resourceCoreName", HAMI_RESOURCE, &c->resource_cores },
		{ "resourcePriorityName", HAMI_RESOURCE, &c->resource_priority },
		{ "overwriteEnv", HAMI_BOOL, &c->overwrite_env },
		{ "defaultMemory", HAMI_U64, &c->default_memory_mib, 0, INT32_TOP },
		{ "defaultCores", HAMI_U64, &c->default_cores, 0, INT32_TOP },
		{ "defaultGPUNum", HAMI_U64, &c->default_gpu_count, 0, INT32_TOP },
		{ "memoryFactor", HAMI_U64, &c->memory_factor, 0, INT32_TOP },
		{ "disableCoreLimit", HAMI_BOOL, &c->disable_core_limit },
		{ "gpuCorePolicy", HAMI_TEXT, &c->core_policy },
		{ "runtimeClassName", HAMI_TEXT, &c->runtime_class },
		{ "migProfileAllowlist", HAMI_TREE, &allowlist },
		{ "deviceSplitCount", HAMI_U64, &c->split_count, 1, DEVICE_CONFIG_MAX_SPLIT },
		{ "deviceMemoryScaling", HAMI_F64, &c->memory_scaling, 0, DEVICE_CONFIG_MAX_SCALING },
		{ "deviceCoreScaling", HAMI_F64, &c->core_scaling, 0, DEVICE_CONFIG_MAX_SCALING },
		{ "preConfiguredDeviceMemory", HAMI_U64, &c->preconfigured_memory_mib, 0, INT32_TOP },
		{ "libCudaLogLevel", HAMI_LABEL, c->libcuda_log_level },
		{ "enableNumaTopology", HAMI_BOOL, &c->numa_topology },
		/* Until v2.9; now profiles are asked of the driver. */
		{ "knownMigGeometries", HAMI_UNREAD, NULL },
	};
	const struct hami_keys reader = { keys, HM_COUNT(keys), false, file, told };
	struct json_at nvidia;

	if (json_object(root, "nvidia", JSON_OPTIONAL, &nvidia, e) < 0)
		return -e->code;
	if (nvidia.node == NULL) {
		hami_warn_once(told, file, "there is no such section; defaults are taken", "nvidia");
		return 0;
	}
	if (hami_keys_read(&nvidia, &reader, e) < 0 || check_policy(&nvidia, c, e) < 0)
		return -e->code;
	return read_allowlist(&nvidia, &c->mig, e);
}

/* NVIDIA's half: another version is another file; of its sharing nothing is left to do, deviceSplitCount shares. */
static int read_top(const struct json_at *root, const char *file, struct texts *told, struct device_config *c,
		    struct hm_err *e)
{
	struct json_at flags, imex, sharing;
	const char *version = NULL;

	if (json_text(root, "version", JSON_OPTIONAL, &version, e) < 0)
		return -e->code;
	if (version != NULL && strcmp(version, "v1") != 0)
		return json_err(root, "version", e, "\"%.60s\" is not v1", version);
	if (json_object(root, "flags", JSON_OPTIONAL, &flags, e) < 0 ||
	    json_object(root, "imex", JSON_OPTIONAL, &imex, e) < 0 ||
	    json_object(root, "sharing", JSON_OPTIONAL, &sharing, e) < 0)
		return -e->code;
	c->flags = flags.node;
	c->imex = imex.node;
	if (json_count(&sharing) > 0)
		hami_warn_once(told, file, "the section is left out: nvidia.deviceSplitCount says how cards are shared",
			       "sharing");
	return 0;
}

static void set_defaults(struct device_config *c)
{
	*c = (struct device_config) {
		.resource_count = HAMI_RESOURCE_GPU,
		.resource_memory = HAMI_RESOURCE_MEMORY,
		.resource_memory_percentage = HAMI_RESOURCE_MEMORY_PERCENT,
		.resource_cores = HAMI_RESOURCE_CORES,
		.resource_priority = HAMI_RESOURCE_PRIORITY,
		.default_gpu_count = 1,
		.memory_factor = 1,
		.core_policy = "default",
		.runtime_class = "",
		.split_count = 10,
		.memory_scaling = 1,
		.core_scaling = 1,
		.libcuda_log_level = "1",
	};
}

int device_config_parse(const char *text, size_t n, const char *file, struct texts *told, struct device_config **out,
			struct hm_err *e)
{
	hm_auto(device_config) *c = calloc(1, sizeof *c);
	struct json_at root;

	*out = NULL;
	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "device configuration");
	set_defaults(c);
	if (yaml_parse(text, n, &c->tree, e) < 0)
		return -e->code;
	if (!cJSON_IsObject(c->tree))
		return hm_err_set(e, HM_EINVAL, "line %d: expected \"key: value\" lines", c->tree->valueint);
	root = yaml_root(c->tree);
	if (read_top(&root, file, told, c, e) < 0 || read_nvidia(&root, file, told, c, e) < 0)
		return -e->code;
	*out = HM_STEAL(c);
	return 0;
}

int device_config_read(const char *path, struct texts *told, struct device_config **out, struct hm_err *e)
{
	hm_auto_str text = { 0 };

	*out = NULL;
	if (file_read(path, DEVICE_CONFIG_MAX_BYTES, &text, e) < 0)
		return -e->code;
	if (device_config_parse(str_text(&text), text.n, path, told, out, e) < 0)
		return hm_err_wrap(e, "read %s", path);
	return 0;
}
