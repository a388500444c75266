#include "hami/node_config.h"

#include <stdlib.h>
#include <string.h>

#include "io/file.h"
#include "io/yaml.h"

/* One entry as it stands: zero is what HAMi's merge takes for absent. */
struct entry {
	const char *name;
	char operating_mode[HAMI_LABEL_BYTES], libcuda_log_level[HAMI_LABEL_BYTES];
	uint64_t split_count, preconfigured_memory_mib;
	double memory_scaling, core_scaling;
	bool numa_topology, preferred_allocation; /* the latter's value is not used: docs/contracts/hami-config.md */
	const struct cJSON *filter;
	const char *mig_strategy; /* read by nobody: --mig-strategy says it */
};

void node_config_free(struct node_config *c)
{
	if (c == NULL)
		return;
	free(c->filter_uuids);
	free(c->filter_indices);
	json_free(c->tree);
	free(c);
}

static int read_entry(const struct json_at *at, const char *file, struct texts *told, struct entry *n, struct hm_err *e)
{
	const struct hami_key keys[] = {
		{ "name", HAMI_TEXT, &n->name },
		{ "operatingmode", HAMI_LABEL, n->operating_mode },
		{ "devicesplitcount", HAMI_U64, &n->split_count, 0, DEVICE_CONFIG_MAX_SPLIT },
		{ "devicememoryscaling", HAMI_F64, &n->memory_scaling, 0, DEVICE_CONFIG_MAX_SCALING },
		{ "devicecorescaling", HAMI_F64, &n->core_scaling, 0, DEVICE_CONFIG_MAX_SCALING },
		{ "preconfigureddevicememory", HAMI_U64, &n->preconfigured_memory_mib, 0, 0x7fffffff },
		{ "libcudaloglevel", HAMI_LABEL, n->libcuda_log_level },
		{ "enablenumatopology", HAMI_BOOL, &n->numa_topology },
		{ "migstrategy", HAMI_TEXT, &n->mig_strategy },
		{ "filterdevices", HAMI_TREE, &n->filter },
		{ "enablegetpreferredallocation", HAMI_BOOL, &n->preferred_allocation },
	};
	const struct hami_keys reader = { keys, HM_COUNT(keys), true, file, told };

	*n = (struct entry) { .name = "" };
	if (!cJSON_IsObject(at->node))
		return json_err(at, NULL, e, "is no object");
	return hami_keys_read(at, &reader, e);
}

/* ---- the merge */

struct merge {
	struct device_config device;
	const char *file;
	struct texts *told;
	const struct json_at *at; /* the entry */
};

static bool is_there(const struct json_at *at, const char *key)
{
	return cJSON_GetObjectItem(at->node, key) != NULL; /* in any case */
}

/* True where the entry's value overrides. `was`: what it would replace is not zero. */
static bool overrides(const struct merge *m, const char *key, bool not_zero, bool was)
{
	if (!not_zero && was && is_there(m->at, key))
		hami_warn_once(m->told, m->file, "zero, false and \"\" override nothing here, as in HAMi", key);
	return not_zero;
}

static void merge_entry(struct merge *m, const struct entry *n)
{
	struct device_config *d = &m->device;

	if (overrides(m, "devicesplitcount", n->split_count != 0, true))
		d->split_count = n->split_count;
	if (overrides(m, "devicememoryscaling", n->memory_scaling > 0, d->memory_scaling > 0))
		d->memory_scaling = n->memory_scaling;
	if (overrides(m, "devicecorescaling", n->core_scaling > 0, d->core_scaling > 0))
		d->core_scaling = n->core_scaling;
	if (overrides(m, "preconfigureddevicememory", n->preconfigured_memory_mib != 0,
		      d->preconfigured_memory_mib != 0))
		d->preconfigured_memory_mib = n->preconfigured_memory_mib;
	if (overrides(m, "libcudaloglevel", n->libcuda_log_level[0] != '\0', d->libcuda_log_level[0] != '\0'))
		memcpy(d->libcuda_log_level, n->libcuda_log_level, sizeof d->libcuda_log_level);
	if (overrides(m, "enablenumatopology", n->numa_topology, d->numa_topology))
		d->numa_topology = true;
}

/* ---- the filter */

static int read_uuids(const struct json_at *list, struct node_config *c, struct hm_err *e)
{
	if (json_count(list) == 0)
		return 0;
	c->filter_uuids = calloc(json_count(list), sizeof *c->filter_uuids);
	if (c->filter_uuids == NULL)
		return hm_err_set(e, HM_ENOMEM, "node configuration");
	for (size_t i = 0; i < json_count(list); i++) {
		const struct json_at item = json_item(list, i);

		if (json_text(&item, NULL, JSON_REQUIRED, &c->filter_uuids[i], e) < 0)
			return -e->code;
	}
	c->filter_uuid_count = json_count(list);
	return 0;
}

static int read_indices(const struct json_at *list, struct node_config *c, struct hm_err *e)
{
	if (json_count(list) == 0)
		return 0;
	c->filter_indices = calloc(json_count(list), sizeof *c->filter_indices);
	if (c->filter_indices == NULL)
		return hm_err_set(e, HM_ENOMEM, "node configuration");
	for (size_t i = 0; i < json_count(list); i++) {
		const struct json_at item = json_item(list, i);

		if (json_u64(&item, NULL, JSON_REQUIRED, 0, 0x7fffffff, &c->filter_indices[i], e) < 0)
			return -e->code;
	}
	c->filter_index_count = json_count(list);
	return 0;
}

/* `keep` false: only looked at, so that a bad entry of another node is found on this one, too, as in HAMi. */
static int read_filter(const struct json_at *entry, const struct cJSON *filter, bool keep, const struct merge *m,
		       struct node_config *c, struct hm_err *e)
{
	const struct json_at at = { filter, entry, "filterdevices", 0, entry->lines };
	const struct cJSON *uuid = NULL, *index = NULL;
	const struct hami_key keys[] = { { "uuid", HAMI_TREE, &uuid }, { "index", HAMI_TREE, &index } };
	const struct hami_keys reader = { keys, HM_COUNT(keys), true, m->file, m->told };
	struct node_config fresh = { 0 };
	int r;

	if (filter == NULL)
		return 0;
	if (!cJSON_IsObject(filter))
		return json_err(&at, NULL, e, "is no object");
	if (hami_keys_read(&at, &reader, e) < 0)
		return -e->code;
	r = read_uuids(&(struct json_at) { uuid, &at, "uuid", 0, at.lines }, &fresh, e);
	if (r == 0)
		r = read_indices(&(struct json_at) { index, &at, "index", 0, at.lines }, &fresh, e);
	if (r == 0 && keep && fresh.filter_uuid_count + fresh.filter_index_count > 0) {
		free(c->filter_uuids);
		free(c->filter_indices);
		c->filter_uuids = HM_STEAL(fresh.filter_uuids);
		c->filter_uuid_count = fresh.filter_uuid_count;
		c->filter_indices = HM_STEAL(fresh.filter_indices);
		c->filter_index_count = fresh.filter_index_count;
	}
	free(fresh.filter_uuids);
	free(fresh.filter_indices);
	return r;
}

/* ---- the file */

static int take_entry(struct merge *m, const char *node, struct node_config *c, struct hm_err *e)
{
	struct entry n;
	bool ours;

	if (read_entry(m->at, m->file, m->told, &n, e) < 0)
		return -e->code;
	ours = strcmp(n.name, node) == 0;
	if (read_filter(m->at, n.filter, ours, m, c, e) < 0)
		return -e->code;
	if (!ours)
		return 0;
	c->found = true;
	merge_entry(m, &n);
	if (n.operating_mode[0] != '\0')
		memcpy(c->operating_mode, n.operating_mode, sizeof c->operating_mode);
	return 0;
}

/* JSON to the letter; a YAML reader, which can read what is JSON, then knows the lines. It refuses some texts that are
 * JSON all the same (repeated keys, some escapes): those have no lines in their messages. */
static int parse_tree(const char *text, size_t n, struct cJSON **tree, bool *lines, struct hm_err *e)
{
	struct cJSON *with_lines = NULL;

	if (json_parse(text, n, tree, e) < 0)
		return -e->code;
	*lines = yaml_parse(text, n, &with_lines, NULL) == 0;
	if (*lines) {
		json_free(*tree);
		*tree = with_lines;
	}
	return 0;
}

int node_config_parse(const char *text, size_t n, const char *file, const char *node, struct texts *told,
		      struct device_config *device, struct node_config **out, struct hm_err *e)
{
	hm_auto(node_config) *c = calloc(1, sizeof *c);
	struct merge m = { *device, file, told, NULL };
	const struct cJSON *entries = NULL;
	const struct hami_key keys[] = { { "nodeconfig", HAMI_TREE, &entries } };
	const struct hami_keys reader = { keys, HM_COUNT(keys), true, file, told };
	struct json_at root, list;
	bool lines = false;

	*out = NULL;
	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "node configuration");
	if (parse_tree(text, n, &c->tree, &lines, e) < 0)
		return -e->code;
	root = lines ? yaml_root(c->tree) : json_root(c->tree);
	if (!cJSON_IsObject(c->tree))
		return json_err(&root, NULL, e, "is no object");
	if (hami_keys_read(&root, &reader, e) < 0)
		return -e->code;
	list = (struct json_at) { entries, &root, "nodeconfig", 0, lines };
	if (entries != NULL && !cJSON_IsArray(entries))
		return json_err(&list, NULL, e, "is no list");
	for (size_t i = 0; i < json_count(&list); i++) {
		const struct json_at at = json_item(&list, i);

		m.at = &at;
		if (take_entry(&m, node, c, e) < 0)
			return -e->code;
	}
	*device = m.device;
	*out = HM_STEAL(c);
	return 0;
}

int node_config_read(const char *path, const char *node, struct texts *told, struct device_config *device,
		     struct node_config **out, struct hm_err *e)
{
	hm_auto_str text = { 0 };

	*out = NULL;
	if (file_read(path, NODE_CONFIG_MAX_BYTES, &text, e) < 0)
		return -e->code;
	if (node_config_parse(str_text(&text), text.n, path, node, told, device, out, e) < 0)
		return hm_err_wrap(e, "read %s", path);
	return 0;
}
