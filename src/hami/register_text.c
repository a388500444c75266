#include "hami/register_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "contract/hami.h"
#include "core/fmt.h"
#include "hami/go_json.h"
#include "io/json.h"
#include "io/json_write.h"

void node_register_fini(struct node_register *r)
{
	free(r->devices);
	free(r->profiles);
	free(r->placements);
	*r = (struct node_register) { 0 };
}

int register_add_device(struct node_register *r, const struct register_device *device, struct hm_err *e)
{
	if (!HM_PUSH(r->devices, r->device_count, r->device_cap, *device))
		return hm_err_set(e, HM_ENOMEM, "register text");
	r->devices[r->device_count - 1].first_profile = r->profile_count;
	r->devices[r->device_count - 1].profile_count = 0;
	return 0;
}

int register_add_profile(struct node_register *r, const struct register_profile *profile,
			 const struct register_placement *placements, size_t count, struct hm_err *e)
{
	struct register_profile added = *profile;

	added.first_placement = r->placement_count;
	added.placement_count = count;
	if (!array_reserve(&r->placements, &r->placement_cap, r->placement_count + count, sizeof *placements) ||
	    !HM_PUSH(r->profiles, r->profile_count, r->profile_cap, added))
		return hm_err_set(e, HM_ENOMEM, "register text");
	for (size_t i = 0; i < count; i++)
		r->placements[r->placement_count++] = placements[i];
	r->devices[r->device_count - 1].profile_count++;
	return 0;
}

bool register_type(const char *product, char out[REGISTER_TYPE_BYTES])
{
	bool named = strncmp(product, HAMI_DEVICE_TYPE, sizeof HAMI_DEVICE_TYPE - 1) == 0;

	return hm_fmt(out, REGISTER_TYPE_BYTES, "%s%s", named ? "" : HAMI_DEVICE_TYPE "-", product) <
	       REGISTER_TYPE_BYTES;
}

static void write_profile(const struct node_register *r, const struct register_profile *p, struct str *out)
{
	str_add(out, "{\"name\":");
	go_json_text(out, p->name);
	str_addf(out, ",\"memoryMB\":%d,\"core\":%d,\"sliceCount\":%d,\"placements\":", p->memory_mib, p->cores,
		 p->slices);
	if (p->placement_count == 0) {
		str_add(out, "null}"); /* Go's nil slice */
		return;
	}
	for (size_t i = 0; i < p->placement_count; i++) {
		const struct register_placement *at = &r->placements[p->first_placement + i];

		str_addf(out, "%c{\"start\":%u,\"size\":%u}", i == 0 ? '[' : ',', at->start, at->size);
	}
	str_add(out, "]}");
}

static void write_profiles(const struct node_register *r, const struct register_device *d, struct str *out)
{
	if (d->profile_count == 0)
		return;
	json_add_name(out, "migProfiles");
	for (size_t i = 0; i < d->profile_count; i++) {
		str_addc(out, i == 0 ? '[' : ',');
		write_profile(r, &r->profiles[d->first_profile + i], out);
	}
	str_addc(out, ']');
}

static void write_device(const struct node_register *r, const struct register_device *d, struct str *out)
{
	str_addc(out, '{');
	go_json_member_text(out, "id", d->id);
	go_json_member_number(out, "index", d->index);
	go_json_member_number(out, "count", d->count);
	go_json_member_number(out, "devmem", d->memory_mib);
	go_json_member_number(out, "devcore", d->cores);
	go_json_member_text(out, "type", d->type);
	go_json_member_number(out, "numa", d->numa);
	go_json_member_text(out, "mode", d->mode);
	write_profiles(r, d, out);
	if (d->healthy) {
		json_add_name(out, "health");
		str_add(out, "true");
	}
	if (d->late_binding) {
		json_add_name(out, "custominfo");
		str_add(out, "{\"" HAMI_CUSTOM_BINDING "\":\"" HAMI_CUSTOM_BINDING_LATE "\"}");
	}
	str_addc(out, '}');
}

void register_text_write(const struct node_register *r, struct str *out)
{
	str_addc(out, '[');
	for (size_t i = 0; i < r->device_count; i++) {
		if (i > 0)
			str_addc(out, ',');
		write_device(r, &r->devices[i], out);
	}
	str_addc(out, ']');
}

static int read_u32(const struct json_at *at, const char *key, uint32_t *out, struct hm_err *e)
{
	uint64_t v = *out;
	int r = json_u64(at, key, JSON_OPTIONAL, 0, UINT32_MAX, &v, e);

	*out = (uint32_t)v;
	return r;
}

static int read_i32(const struct json_at *at, const char *key, int32_t *out, struct hm_err *e)
{
	uint64_t v = 0;
	int r = json_u64(at, key, JSON_OPTIONAL, 0, INT32_MAX, &v, e);

	*out = (int32_t)v;
	return r;
}

static int list_of(const struct json_at *at, const char *key, enum json_need need, size_t most, struct json_at *out,
		   struct hm_err *e)
{
	int r = json_array(at, key, need, out, e);

	if (r == 0 && json_count(out) > most)
		return hm_err_set(e, HM_ELIMIT, "%s: more than %zu", key == NULL ? "devices" : key, most);
	return r;
}

static int read_placements(const struct json_at *profile, struct register_placement **out, size_t *count,
			   struct hm_err *e)
{
	struct json_at list;
	size_t cap = 0;
	int r = list_of(profile, "placements", JSON_OPTIONAL, REGISTER_MAX_PLACEMENTS, &list, e);

	for (size_t i = 0; r == 0 && i < json_count(&list); i++) {
		struct json_at item = json_item(&list, i);
		struct register_placement at = { 0 };

		r = read_u32(&item, "start", &at.start, e);
		if (r == 0)
			r = read_u32(&item, "size", &at.size, e);
		if (r == 0 && !HM_PUSH(*out, *count, cap, at))
			r = hm_err_set(e, HM_ENOMEM, "register text");
	}
	return r;
}

static int read_profile(const struct json_at *at, struct node_register *reg, struct hm_err *e)
{
	struct register_profile p = { 0 };
	hm_auto_heap struct register_placement *placements = NULL;
	size_t count = 0;
	int r = json_copy(at, "name", JSON_OPTIONAL, p.name, sizeof p.name, e);

	if (r == 0)
		r = read_i32(at, "memoryMB", &p.memory_mib, e);
	if (r == 0)
		r = read_i32(at, "core", &p.cores, e);
	if (r == 0)
		r = read_i32(at, "sliceCount", &p.slices, e);
	if (r == 0)
		r = read_placements(at, &placements, &count, e);
	return r < 0 ? r : register_add_profile(reg, &p, placements, count, e);
}

/* "custominfo" belongs to others too: whatever else stands there is not looked at. */
static bool says_late(const struct json_at *device)
{
	const cJSON *custom = cJSON_GetObjectItemCaseSensitive(device->node, "custominfo");
	const char *binding = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(custom, HAMI_CUSTOM_BINDING));

	return binding != NULL && strcmp(binding, HAMI_CUSTOM_BINDING_LATE) == 0;
}

static int read_members(const struct json_at *at, struct register_device *d, struct hm_err *e)
{
	const struct {
		const char *key;
		int32_t *out;
	} numbers[] = {
		{ "count", &d->count }, { "devmem", &d->memory_mib }, { "devcore", &d->cores }, { "numa", &d->numa }
	};
	const struct {
		const char *key;
		char *out;
		size_t cap;
	} texts[] = {
		{ "id", d->id, sizeof d->id },
		{ "type", d->type, sizeof d->type },
		{ "mode", d->mode, sizeof d->mode },
	};
	int r = read_u32(at, "index", &d->index, e);

	for (size_t i = 0; r == 0 && i < HM_COUNT(numbers); i++)
		r = read_i32(at, numbers[i].key, numbers[i].out, e);
	for (size_t i = 0; r == 0 && i < HM_COUNT(texts); i++)
		r = json_copy(at, texts[i].key, JSON_OPTIONAL, texts[i].out, texts[i].cap, e);
	if (r == 0)
		r = json_bool(at, "health", JSON_OPTIONAL, &d->healthy, e);
	return r;
}

static int read_device(const struct json_at *at, struct node_register *reg, struct hm_err *e)
{
	struct register_device d = { 0 };
	struct json_at profiles;
	int r = read_members(at, &d, e);

	if (r == 0)
		r = list_of(at, "migProfiles", JSON_OPTIONAL, REGISTER_MAX_PROFILES, &profiles, e);
	if (r < 0)
		return r;
	d.late_binding = says_late(at);
	r = register_add_device(reg, &d, e);
	for (size_t i = 0; r == 0 && i < json_count(&profiles); i++) {
		struct json_at item = json_item(&profiles, i);

		r = read_profile(&item, reg, e);
	}
	return r;
}

int register_text_parse(const char *text, struct node_register *out, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	struct json_at root, list;
	size_t n = strnlen(text, REGISTER_TEXT_MAX_BYTES + 1);
	int r;

	*out = (struct node_register) { 0 };
	if (n > REGISTER_TEXT_MAX_BYTES)
		return hm_err_set(e, HM_ELIMIT, "a register text of more than %d bytes", REGISTER_TEXT_MAX_BYTES);
	if (n > 0 && text[0] != '[' && strchr(text, ',') != NULL && text[n - 1] == ':')
		return hm_err_set(e, HM_EPROTO, "a register text of HAMi before v2.8; update the node's device plugin");
	r = json_parse(text, n, &tree, e);
	if (r < 0)
		return r;
	root = json_root(tree);
	r = list_of(&root, NULL, JSON_REQUIRED, REGISTER_MAX_DEVICES, &list, e);
	for (size_t i = 0; r == 0 && i < json_count(&list); i++) {
		struct json_at item = json_item(&list, i);

		r = read_device(&item, out, e);
	}
	if (r < 0)
		node_register_fini(out);
	return r;
}
