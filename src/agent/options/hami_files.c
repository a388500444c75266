#include "agent/options/hami_files.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/str.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "hami/device_config.h"
#include "hami/node_config.h"

/* Keys of NVIDIA's sections, as its reader takes them: in any case. */
struct nvidia_key {
	const char *key, *option; /* NULL: has no effect here */
};

static const struct nvidia_key flag_keys[] = {
	{ "migStrategy", "mig-strategy" },
	{ "failOnInitError", "fail-on-init-error" },
	{ "nvidiaDriverRoot", "nvidia-driver-root" },
	{ "nvidiaDevRoot", "dev-root" },
	{ "gdrcopyEnabled", "gdrcopy-enabled" },
	{ "gdsEnabled", "gds-enabled" },
	{ "mofedEnabled", "mofed-enabled" },
	{ "deviceDiscoveryStrategy", "device-discovery-strategy" },
	{ "useNodeFeatureAPI", NULL },
	{ "mpsRoot", NULL },
	{ "plugin", NULL }, /* a section of its own */
};

static const struct nvidia_key plugin_keys[] = {
	{ "passDeviceSpecs", "pass-device-specs" },   { "deviceListStrategy", "device-list-strategy" },
	{ "deviceIDStrategy", "device-id-strategy" }, { "cdiAnnotationPrefix", "cdi-annotation-prefix" },
	{ "nvidiaCTKPath", "nvidia-cdi-hook-path" },  { "containerDriverRoot", "driver-root-ctr-path" },
};

static const struct nvidia_key imex_keys[] = {
	{ "channelIDs", "imex-channel-ids" },
	{ "required", "imex-required" },
};

struct reading {
	struct agent_options *o;
	const struct option_spec *table;
	const char *file;
};

static const struct option_spec *find_option(const struct reading *r, const char *name)
{
	for (size_t i = 0; i < AGENT_OPTION_COUNT; i++)
		if (strcmp(r->table[i].name, name) == 0)
			return &r->table[i];
	return NULL;
}

/* A single value, or the words of a list, as a flag gives it. */
static int add_text(const struct cJSON *value, struct str *out)
{
	const struct cJSON *item;

	if (cJSON_IsString(value)) {
		str_add(out, value->valuestring);
	} else if (cJSON_IsBool(value)) {
		str_add(out, cJSON_IsTrue(value) ? "true" : "false");
	} else if (cJSON_IsNumber(value)) {
		char number[40];

		snprintf(number, sizeof number, "%.17g", value->valuedouble);
		str_add(out, number);
	} else if (cJSON_IsArray(value)) {
		cJSON_ArrayForEach(item, value)
		{
			if (item != value->child)
				str_addc(out, ',');
			if (cJSON_IsArray(item) || add_text(item, out) < 0)
				return -1;
		}
	} else {
		return -1;
	}
	return 0;
}

static int set_option(const struct reading *r, const char *section, const struct cJSON *value, const char *option,
		      struct hm_err *e)
{
	const struct option_spec *spec = find_option(r, option);
	hm_auto_str text = { 0 };
	const char *kept;
	char where[128];

	if (cJSON_IsNull(value) || spec == NULL)
		return 0;
	hm_fmt(where, sizeof where, "read %s: line %d: %s.%s", r->file, value->valueint, section, value->string);
	if (add_text(value, &text) < 0)
		return hm_err_set(e, HM_EINVAL, "%s: is neither a single value nor a list of them", where);
	kept = str_failed(&text) ? NULL : texts_keep(r->o->texts, str_text(&text));
	if (kept == NULL)
		return hm_err_set(e, HM_ENOMEM, "%s", where);
	if (option_set(spec, where, kept, e) < 0)
		return -e->code;
	return agent_options_check(r->o, e) < 0 ? hm_err_wrap(e, "%s", where) : 0;
}

static int read_section(const struct reading *r, const char *name, const struct cJSON *section,
			const struct nvidia_key *keys, size_t count, struct hm_err *e)
{
	const struct cJSON *value;

	cJSON_ArrayForEach(value, section)
	{
		size_t i = 0;

		while (i < count && strcasecmp(value->string, keys[i].key) != 0)
			i++;
		if (i == count)
			hami_warn_once(r->o->told, r->file, "an unknown key is left out", value->string);
		else if (keys[i].option != NULL && set_option(r, name, value, keys[i].option, e) < 0)
			return -e->code;
	}
	return 0;
}

/* The two sections are objects, or NULL; the one within need not be. */
static int read_nvidias(const struct reading *r, const struct cJSON *flags, const struct cJSON *imex, struct hm_err *e)
{
	const struct cJSON *plugin = flags != NULL ? cJSON_GetObjectItem(flags, "plugin") : NULL; /* in any case */

	if (plugin != NULL && !cJSON_IsObject(plugin) && !cJSON_IsNull(plugin))
		return hm_err_set(e, HM_EINVAL, "read %s: line %d: flags.plugin: is no object", r->file,
				  plugin->valueint);
	if (read_section(r, "flags", flags, flag_keys, HM_COUNT(flag_keys), e) < 0 ||
	    read_section(r, "flags.plugin", plugin, plugin_keys, HM_COUNT(plugin_keys), e) < 0)
		return -e->code;
	return read_section(r, "imex", imex, imex_keys, HM_COUNT(imex_keys), e);
}

static int keep(struct agent_options *o, const char *text, const char **out, struct hm_err *e)
{
	const char *kept = texts_keep(o->texts, text);

	if (kept == NULL)
		return hm_err_set(e, HM_ENOMEM, "options");
	*out = kept;
	return 0;
}

static int take_values(struct agent_options *o, const struct device_config *d, const struct node_config *n,
		       struct hm_err *e)
{
	struct hami_options *h = &o->hami;

	h->device_split_count = d->split_count;
	h->device_memory_scaling = d->memory_scaling;
	h->device_cores_scaling = d->core_scaling;
	h->disable_core_limit = d->disable_core_limit;
	h->preconfigured_memory_mib = d->preconfigured_memory_mib;
	o->enable_topology = d->numa_topology;
	if (keep(o, d->resource_count, &o->resource_name, e) < 0 ||
	    keep(o, d->libcuda_log_level, &h->libcuda_log_level, e) < 0)
		return -e->code;
	return n != NULL && n->operating_mode[0] != '\0' ? keep(o, n->operating_mode, &h->operating_mode, e) : 0;
}

/* Only "mig" changes what is done; any other word is published as it stands, as HAMi does. */
static void look_at_mode(const struct agent_options *o, const char *file)
{
	static const char *const known[] = { HAMI_MODE_CORE, HAMI_MODE_MIG, HAMI_MODE_MPS };

	for (size_t i = 0; i < HM_COUNT(known); i++)
		if (strcmp(o->hami.operating_mode, known[i]) == 0)
			return;
	hami_warn_once(o->told, file, "an operating mode that nobody knows: treated as hami-core", "operatingmode");
}

static int read_node_config(struct agent_options *o, const struct hami_places *p, struct device_config *d,
			    struct node_config **out, struct hm_err *e)
{
	const char *node = p->node_name != NULL ? p->node_name : "";
	bool expected = p->device_config != NULL && p->device_config[0] != '\0';
	int r;

	*out = NULL;
	o->hami.node_config_trouble = NULL;
	if (p->node_config[0] == '\0')
		return 0;
	r = node_config_read(p->node_config, node, o->told, d, out, e);
	if (r == 0 || r == -HM_ENOMEM || (r == -HM_ENOTFOUND && !expected))
		return r == -HM_ENOTFOUND ? 0 : r;
	if (texts_first(o->told, e->msg))
		log_error("nothing of config.json is used; the operating mode is " HAMI_MODE_CORE, KV_ERR(e));
	return keep(o, e->msg, &o->hami.node_config_trouble, e);
}

int hami_files_read(struct agent_options *o, const struct option_spec table[AGENT_OPTION_COUNT],
		    const struct hami_places *p, struct hm_err *e)
{
	static const char nothing[] = "nvidia: {}";
	const bool there = p->device_config != NULL && p->device_config[0] != '\0';
	const struct reading reading = { o, table, p->device_config };
	hm_auto(device_config) *d = NULL;
	hm_auto(node_config) *n = NULL;
	int r;

	if (there)
		r = device_config_read(p->device_config, o->told, &d, e);
	else
		r = device_config_parse(nothing, sizeof nothing - 1, "", NULL, &d, e);
	if (r < 0 || read_node_config(o, p, d, &n, e) < 0 || take_values(o, d, n, e) < 0)
		return -e->code;
	look_at_mode(o, p->node_config);
	if (read_nvidias(&reading, d->flags, d->imex, e) < 0)
		return -e->code;
	device_config_free(o->hami.device);
	node_config_free(o->hami.node);
	o->hami.device = HM_STEAL(d);
	o->hami.node = HM_STEAL(n);
	return 0;
}

bool hami_files_leave_out(const struct hami_options *h, const char *uuid, uint64_t index)
{
	const struct node_config *n = h->node;

	if (n == NULL)
		return false;
	for (size_t i = 0; i < n->filter_uuid_count; i++)
		if (strcmp(n->filter_uuids[i], uuid) == 0)
			return true;
	for (size_t i = 0; i < n->filter_index_count; i++)
		if (n->filter_indices[i] == index)
			return true;
	return false;
}
