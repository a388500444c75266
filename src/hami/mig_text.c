#include "hami/mig_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "hami/go_json.h"
#include "io/json.h"
#include "io/json_write.h"

static const char *const known[] = { "containerIndex", "deviceIndex", "gpuUUID",       "profile",
				     "placement",      "migUUID",     "gpuInstanceID", "computeInstanceID" };

void mig_allocations_fini(struct mig_allocations *m)
{
	for (size_t i = 0; i < m->count; i++)
		json_free(m->records[i].others);
	free(m->records);
	*m = (struct mig_allocations) { 0 };
}

struct mig_record *mig_allocations_find(const struct mig_allocations *m, uint32_t container, uint32_t device)
{
	for (size_t i = 0; i < m->count; i++) {
		if (m->records[i].container == container && m->records[i].device == device)
			return &m->records[i];
	}
	return NULL;
}

static int read_u32(const struct json_at *at, const char *key, enum json_need need, uint64_t min, uint32_t *out,
		    struct hm_err *e)
{
	uint64_t v = *out;
	int r = json_u64(at, key, need, min, UINT32_MAX, &v, e);

	*out = (uint32_t)v;
	return r;
}

static int read_name(const struct json_at *at, const char *key, char *out, size_t cap, struct hm_err *e)
{
	int r = json_copy(at, key, JSON_REQUIRED, out, cap, e);

	return r == 0 && out[0] == '\0' ? json_err(at, key, e, "is empty") : r;
}

/* All three ids of the instance, or none of them. */
static int read_made(const struct json_at *at, struct mig_record *out, struct hm_err *e)
{
	size_t there = 0;
	int r;

	for (size_t i = HM_COUNT(known) - 3; i < HM_COUNT(known); i++) {
		const cJSON *v = cJSON_GetObjectItemCaseSensitive(at->node, known[i]);

		there += v != NULL && !cJSON_IsNull(v);
	}
	if (there == 0)
		return 0;
	out->made = true;
	r = read_name(at, "migUUID", out->mig_uuid, sizeof out->mig_uuid, e);
	if (r == 0)
		r = read_u32(at, "gpuInstanceID", JSON_REQUIRED, 0, &out->gpu_instance, e);
	if (r == 0)
		r = read_u32(at, "computeInstanceID", JSON_REQUIRED, 0, &out->compute_instance, e);
	return r;
}

static int read_record(const struct json_at *at, struct mig_record *out, struct hm_err *e)
{
	struct json_at placement;
	int r = read_u32(at, "containerIndex", JSON_OPTIONAL, 0, &out->container, e);

	if (r == 0)
		r = read_u32(at, "deviceIndex", JSON_OPTIONAL, 0, &out->device, e);
	if (r == 0)
		r = read_name(at, "gpuUUID", out->gpu_uuid, sizeof out->gpu_uuid, e);
	if (r == 0)
		r = read_name(at, "profile", out->profile, sizeof out->profile, e);
	if (r == 0)
		r = json_object(at, "placement", JSON_REQUIRED, &placement, e);
	if (r == 0)
		r = read_u32(&placement, "start", JSON_OPTIONAL, 0, &out->start, e);
	if (r == 0)
		r = read_u32(&placement, "size", JSON_REQUIRED, 1, &out->size, e);
	return r < 0 ? r : read_made(at, out, e);
}

static bool is_known(const char *name)
{
	for (size_t i = 0; i < HM_COUNT(known); i++) {
		if (strcmp(known[i], name) == 0)
			return true;
	}
	return false;
}

/* Moves the members that aren't ours out of the tree, with their names (which cJSON_AddItemToObject would copy). */
static int take_others(cJSON *item, struct mig_record *out, struct hm_err *e)
{
	for (cJSON *v = item->child, *next; v != NULL; v = next) {
		next = v->next;
		if (is_known(v->string))
			continue;
		if (out->others == NULL)
			out->others = cJSON_CreateObject();
		if (out->others == NULL)
			return hm_err_set(e, HM_ENOMEM, "MIG allocations");
		cJSON_AddItemToArray(out->others, cJSON_DetachItemViaPointer(item, v));
	}
	return 0;
}

static int add_record(struct mig_allocations *m, const struct json_at *at, cJSON *item, struct hm_err *e)
{
	struct mig_record *record;
	int r;

	if (!HM_PUSH(m->records, m->count, m->cap, (struct mig_record) { 0 }))
		return hm_err_set(e, HM_ENOMEM, "MIG allocations");
	record = &m->records[m->count - 1];
	r = read_record(at, record, e);
	if (r == 0 && mig_allocations_find(m, record->container, record->device) != record)
		r = json_err(at, NULL, e, "container %u, device %u stands twice", record->container, record->device);
	return r < 0 ? r : take_others(item, record, e);
}

int mig_text_parse(const char *text, struct mig_allocations *out, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	struct json_at root, list;
	size_t n = text == NULL ? 0 : strnlen(text, MIG_TEXT_MAX_BYTES + 1), index = 0;
	int r;

	*out = (struct mig_allocations) { 0 };
	if (n == 0)
		return 0;
	if (n > MIG_TEXT_MAX_BYTES)
		return hm_err_set(e, HM_ELIMIT, "MIG allocations of more than %d bytes", MIG_TEXT_MAX_BYTES);
	r = json_parse(text, n, &tree, e);
	if (r < 0)
		return r;
	root = json_root(tree);
	r = json_array(&root, NULL, JSON_REQUIRED, &list, e);
	if (r == 0 && json_count(&list) > MIG_TEXT_MAX_RECORDS)
		r = hm_err_set(e, HM_ELIMIT, "more than %d MIG allocations", MIG_TEXT_MAX_RECORDS);
	for (cJSON *item = tree->child; r == 0 && item != NULL; item = item->next, index++) {
		struct json_at at = { .node = item, .parent = &list, .index = index };

		r = add_record(out, &at, item, e);
	}
	if (r < 0)
		mig_allocations_fini(out);
	return r;
}

static void write_decision(const struct mig_record *record, struct str *out)
{
	str_addf(out, "{\"containerIndex\":%u,\"deviceIndex\":%u,\"gpuUUID\":", record->container, record->device);
	go_json_text(out, record->gpu_uuid);
	str_add(out, ",\"profile\":");
	go_json_text(out, record->profile);
	str_addf(out, ",\"placement\":{\"start\":%u,\"size\":%u}", record->start, record->size);
}

static void write_made(const struct mig_record *record, struct str *out)
{
	str_add(out, ",\"migUUID\":");
	go_json_text(out, record->mig_uuid);
	str_addf(out, ",\"gpuInstanceID\":%u,\"computeInstanceID\":%u", record->gpu_instance, record->compute_instance);
}

static void write_others(const cJSON *others, struct str *out)
{
	for (const cJSON *v = others->child; v != NULL; v = v->next) {
		char *text = cJSON_PrintUnformatted(v);

		str_addc(out, ',');
		go_json_text(out, v->string);
		str_addc(out, ':');
		if (text == NULL)
			out->failed = true;
		else
			str_add(out, text);
		cJSON_free(text);
	}
}

void mig_text_write(const struct mig_allocations *m, struct str *out)
{
	str_addc(out, '[');
	for (size_t i = 0; i < m->count; i++) {
		if (i > 0)
			str_addc(out, ',');
		write_decision(&m->records[i], out);
		if (m->records[i].made)
			write_made(&m->records[i], out);
		if (m->records[i].others != NULL)
			write_others(m->records[i].others, out);
		str_addc(out, '}');
	}
	str_addc(out, ']');
}

static bool before(const struct mig_record *a, const struct mig_record *b)
{
	return a->container != b->container ? a->container < b->container : a->device < b->device;
}

/* The first record behind `last` (NULL: of all) in the canonical order; NULL at the end. */
static const struct mig_record *next_record(const struct mig_allocations *m, const struct mig_record *last)
{
	const struct mig_record *best = NULL;

	for (size_t i = 0; i < m->count; i++) {
		const struct mig_record *r = &m->records[i];

		if ((last == NULL || before(last, r)) && (best == NULL || before(r, best)))
			best = r;
	}
	return best;
}

void mig_text_write_canonical(const struct mig_allocations *m, struct str *out)
{
	const struct mig_record *first = next_record(m, NULL);

	for (const struct mig_record *r = first; r != NULL; r = next_record(m, r)) {
		str_addc(out, r == first ? '[' : ',');
		write_decision(r, out);
		str_addc(out, '}');
	}
	if (first != NULL)
		str_addc(out, ']');
}
