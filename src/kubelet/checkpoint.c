#include "kubelet/checkpoint.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "io/file.h"
#include "io/json.h"
#include "kubelet/pb.h"
#include "kubelet/proto/device_plugin.pb-c.h"

/*
 * The file (Kubernetes 1.20 and later), one line:
 *   {"Data":{"PodDeviceEntries":[ENTRY...]|null,"RegisteredDevices":{...}},"Checksum":N}
 *   ENTRY: {"PodUID","ContainerName","ResourceName","DeviceIDs":{"<numa>":[id...],...},"AllocResp":"<base64>"|null}
 * AllocResp is the ContainerAllocateResponse that the plugin answered. The checksum is over Go's print of the structs
 * and not checked: the kubelet replaces the file by rename, so a torn one is not seen, and the JSON must be whole
 * anyway.
 */
#define CDI_ANNOTATION_PREFIX "cdi.k8s.io/"

static void entry_fini(struct checkpoint_entry *e)
{
	for (size_t i = 0; i < e->id_count; i++)
		free(e->ids[i]);
	for (size_t i = 0; i < e->cdi_count; i++)
		free(e->cdi_names[i]);
	for (size_t i = 0; i < e->mount_count; i++) {
		free(e->mounts[i].container_path);
		free(e->mounts[i].host_path);
	}
	free(e->ids);
	free(e->cdi_names);
	free(e->mounts);
	free(e->pod_uid);
	free(e->container);
	free(e->resource);
}

void checkpoint_free(struct checkpoint *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->count; i++)
		entry_fini(&c->entries[i]);
	free(c->entries);
	free(c);
}

/* The member, which must stand there exactly once. cJSON keeps duplicates; two readers could then see two files. */
static const cJSON *member(const cJSON *object, const char *name, struct hm_err *e)
{
	const cJSON *found = NULL, *it;

	cJSON_ArrayForEach(it, object)
	{
		if (it->string == NULL || strcmp(it->string, name) != 0)
			continue;
		if (found != NULL) {
			hm_err_set(e, HM_EPROTO, "%s stands there twice", name);
			return NULL;
		}
		found = it;
	}
	if (found == NULL)
		hm_err_set(e, HM_EPROTO, "%s is missing", name);
	return found;
}

static int read_name(const cJSON *object, const char *name, char **out, struct hm_err *e)
{
	const cJSON *v = member(object, name, e);

	if (v == NULL)
		return -e->code;
	if (!cJSON_IsString(v) || !pb_name_ok(v->valuestring))
		return hm_err_set(e, HM_EPROTO, "%s is not 1 to %d printable characters", name, PB_MAX_NAME_BYTES);
	*out = strdup(v->valuestring);
	return *out == NULL ? hm_err_set(e, HM_ENOMEM, "%s", name) : 0;
}

static int compare_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static size_t count_ids(const cJSON *by_node)
{
	const cJSON *list;
	size_t n = 0;

	cJSON_ArrayForEach(list, by_node) n += (size_t)cJSON_GetArraySize(list);
	return n;
}

static int read_ids(const cJSON *entry, struct checkpoint_entry *out, struct hm_err *e)
{
	const cJSON *by_node = member(entry, "DeviceIDs", e), *list, *id;
	size_t count;

	if (by_node == NULL)
		return -e->code;
	if (!cJSON_IsObject(by_node))
		return hm_err_set(e, HM_EPROTO,
				  "DeviceIDs is no object of lists by NUMA node (a kubelet before 1.20?)");
	count = count_ids(by_node);
	if (count > PB_MAX_IDS)
		return hm_err_set(e, HM_ELIMIT, "DeviceIDs has %zu ids, at most %d are taken", count, PB_MAX_IDS);
	out->ids = calloc(count + 1, sizeof *out->ids);
	if (out->ids == NULL)
		return hm_err_set(e, HM_ENOMEM, "DeviceIDs");
	cJSON_ArrayForEach(list, by_node)
	{
		if (!cJSON_IsArray(list) && !cJSON_IsNull(list))
			return hm_err_set(e, HM_EPROTO, "DeviceIDs of a NUMA node is no list");
		cJSON_ArrayForEach(id, list)
		{
			if (!cJSON_IsString(id) || !pb_name_ok(id->valuestring))
				return hm_err_set(e, HM_EPROTO, "a device id is not 1 to %d printable characters",
						  PB_MAX_NAME_BYTES);
			out->ids[out->id_count] = strdup(id->valuestring);
			if (out->ids[out->id_count] == NULL)
				return hm_err_set(e, HM_ENOMEM, "DeviceIDs");
			out->id_count++;
		}
	}
	qsort(out->ids, out->id_count, sizeof *out->ids, compare_text);
	for (size_t i = 1; i < out->id_count; i++) {
		if (strcmp(out->ids[i - 1], out->ids[i]) == 0)
			return hm_err_set(e, HM_EPROTO, "device id %s stands there twice", out->ids[i]);
	}
	return 0;
}

static int add_cdi_name(struct checkpoint_entry *out, const char *name, size_t n, struct hm_err *e)
{
	char **names = realloc(out->cdi_names, (out->cdi_count + 1) * sizeof *names);

	if (names == NULL)
		return hm_err_set(e, HM_ENOMEM, "CDI names");
	out->cdi_names = names;
	names[out->cdi_count] = strndup(name, n);
	if (names[out->cdi_count] == NULL)
		return hm_err_set(e, HM_ENOMEM, "CDI names");
	if (!pb_name_ok(names[out->cdi_count])) {
		free(names[out->cdi_count]);
		return hm_err_set(e, HM_EPROTO, "a CDI name is not 1 to %d printable characters", PB_MAX_NAME_BYTES);
	}
	out->cdi_count++;
	return 0;
}

/* "vendor/class=a,vendor/class=b" */
static int add_cdi_list(struct checkpoint_entry *out, const char *list, struct hm_err *e)
{
	for (;;) {
		const char *comma = strchrnul(list, ',');

		if (add_cdi_name(out, list, (size_t)(comma - list), e) < 0)
			return -e->code;
		if (*comma == '\0')
			return 0;
		list = comma + 1;
	}
}

static int read_cdi_names(const V1beta1__ContainerAllocateResponse *m, struct checkpoint_entry *out, struct hm_err *e)
{
	if (m->n_cdi_devices > PB_MAX_IDS || m->n_annotations > PB_MAX_IDS)
		return hm_err_set(e, HM_ELIMIT, "more than %d CDI names", PB_MAX_IDS);
	for (size_t i = 0; i < m->n_cdi_devices; i++) {
		const char *name = m->cdi_devices[i]->name;

		if (add_cdi_name(out, name, strlen(name), e) < 0)
			return -e->code;
	}
	for (size_t i = 0; i < m->n_annotations; i++) {
		const V1beta1__TextPair *a = m->annotations[i];

		if (strncmp(a->key, CDI_ANNOTATION_PREFIX, strlen(CDI_ANNOTATION_PREFIX)) == 0 &&
		    add_cdi_list(out, a->value, e) < 0)
			return -e->code;
	}
	return 0;
}

/* What a folder of ours may be called, and more: --state-dir may have blanks and other alphabets. */
static bool path_ok(const char *s)
{
	size_t n = 0;

	for (; s[n] != '\0'; n++)
		if (n == PATH_MAX - 1 || (unsigned char)s[n] < ' ' || s[n] == 0x7f)
			return false;
	return n > 0;
}

static int read_mounts(const V1beta1__ContainerAllocateResponse *m, struct checkpoint_entry *out, struct hm_err *e)
{
	if (m->n_mounts > PB_MAX_IDS)
		return hm_err_set(e, HM_ELIMIT, "more than %d mounts", PB_MAX_IDS);
	out->mounts = calloc(m->n_mounts + 1, sizeof *out->mounts);
	if (out->mounts == NULL)
		return hm_err_set(e, HM_ENOMEM, "mounts");
	for (size_t i = 0; i < m->n_mounts; i++) {
		struct checkpoint_mount *to = &out->mounts[out->mount_count];

		if (!path_ok(m->mounts[i]->container_path) || !path_ok(m->mounts[i]->host_path))
			continue;
		out->mount_count++;
		to->container_path = strdup(m->mounts[i]->container_path);
		to->host_path = strdup(m->mounts[i]->host_path);
		if (to->container_path == NULL || to->host_path == NULL)
			return hm_err_set(e, HM_ENOMEM, "mounts");
	}
	return 0;
}

static int read_answer(const cJSON *entry, struct checkpoint_entry *out, struct hm_err *e)
{
	const cJSON *v = member(entry, "AllocResp", e);
	hm_auto_heap uint8_t *bytes = NULL;
	pb_auto V1beta1__ContainerAllocateResponse *m = NULL;
	size_t n;

	if (v == NULL)
		return -e->code;
	if (cJSON_IsNull(v))
		return 0;
	if (!cJSON_IsString(v))
		return hm_err_set(e, HM_EPROTO, "AllocResp is no text");
	n = strlen(v->valuestring);
	bytes = malloc(n / 4 * 3 + 1);
	if (bytes == NULL)
		return hm_err_set(e, HM_ENOMEM, "AllocResp");
	if (!base64_decode(v->valuestring, n, bytes, &n))
		return hm_err_set(e, HM_EPROTO, "AllocResp is no base64");
	m = pb_unpack(&v1beta1__container_allocate_response__descriptor, "AllocResp", bytes, n, e);
	return m == NULL || read_cdi_names(m, out, e) < 0 ? -e->code : read_mounts(m, out, e);
}

static int read_entry(const cJSON *entry, struct checkpoint_entry *out, struct hm_err *e)
{
	if (!cJSON_IsObject(entry))
		return hm_err_set(e, HM_EPROTO, "no object");
	if (read_name(entry, "PodUID", &out->pod_uid, e) < 0 ||
	    read_name(entry, "ContainerName", &out->container, e) < 0 ||
	    read_name(entry, "ResourceName", &out->resource, e) < 0)
		return -e->code;
	if (read_ids(entry, out, e) < 0)
		return -e->code;
	return read_answer(entry, out, e);
}

/* Which entries are looked at; no member: all, and each must be in order. */
struct wanted {
	const char *resource;               /* NULL: of any resource */
	const struct checkpoint_ours *ours; /* others' may be as they like; NULL: none may */
};

/* What other plugins let the kubelet keep is their affair, and must not make our own unreadable. */
static const char *resource_of(const cJSON *entry)
{
	const cJSON *name = cJSON_GetObjectItemCaseSensitive(entry, "ResourceName");

	return cJSON_IsString(name) ? name->valuestring : NULL;
}

static bool is_wanted(const struct wanted *w, const cJSON *entry)
{
	const char *name = resource_of(entry);

	return w->resource == NULL || name == NULL || strcmp(name, w->resource) == 0;
}

static bool may_be_odd(const struct wanted *w, const cJSON *entry)
{
	const char *name = resource_of(entry);

	return w->ours != NULL && name != NULL && strcmp(name, w->ours->resource) != 0 &&
	       strncmp(name, w->ours->prefix, strlen(w->ours->prefix)) != 0;
}

static int add_entry(const struct wanted *w, const cJSON *entry, struct checkpoint *c, struct hm_err *e)
{
	struct checkpoint_entry *to = &c->entries[c->count++];

	if (read_entry(entry, to, e) == 0)
		return 0;
	if (e->code == HM_ENOMEM || !may_be_odd(w, entry))
		return hm_err_wrap(e, "entry %zu", c->count - 1);
	entry_fini(to);
	*to = (struct checkpoint_entry) { 0 };
	c->count--;
	return 0;
}

static int read_entries(const cJSON *root, const struct wanted *w, struct checkpoint *c, struct hm_err *e)
{
	const cJSON *data = member(root, "Data", e), *list, *it;
	size_t count;

	if (data == NULL)
		return -e->code;
	list = cJSON_IsObject(data) ? member(data, "PodDeviceEntries", e) : NULL;
	if (list == NULL)
		return cJSON_IsObject(data) ? -e->code : hm_err_set(e, HM_EPROTO, "Data is no object");
	if (cJSON_IsNull(list))
		return 0;
	if (!cJSON_IsArray(list))
		return hm_err_set(e, HM_EPROTO, "PodDeviceEntries is no list");
	count = (size_t)cJSON_GetArraySize(list);
	if (count > PB_MAX_ENTRIES)
		return hm_err_set(e, HM_ELIMIT, "%zu entries, at most %d are taken", count, PB_MAX_ENTRIES);
	c->entries = calloc(count + 1, sizeof *c->entries);
	if (c->entries == NULL)
		return hm_err_set(e, HM_ENOMEM, "%zu entries", count);
	cJSON_ArrayForEach(it, list)
	{
		if (is_wanted(w, it) && add_entry(w, it, c, e) < 0)
			return -e->code;
	}
	return 0;
}

/* A NUL inside a text would cut it in C, raw or as an escape; neither is ever in a real checkpoint. */
static bool has_nul(const char *text, size_t n)
{
	return memchr(text, '\0', n) != NULL || memmem(text, n, "\\u0000", 6) != NULL;
}

static int parse(const char *text, size_t n, const struct wanted *w, struct checkpoint **out, struct hm_err *e)
{
	hm_auto(cJSON) *root = NULL;
	hm_auto(checkpoint) *c = NULL;

	if (n > CHECKPOINT_MAX_BYTES)
		return hm_err_set(e, HM_ELIMIT, "%zu bytes, at most %d are read", n, CHECKPOINT_MAX_BYTES);
	if (has_nul(text, n))
		return hm_err_set(e, HM_EPROTO, "NUL inside");
	if (json_parse(text, n, &root, e) < 0)
		return -e->code;
	if (!cJSON_IsObject(root))
		return hm_err_set(e, HM_EPROTO, "no JSON object");
	c = calloc(1, sizeof *c);
	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "checkpoint");
	if (read_entries(root, w, c, e) < 0)
		return -e->code;
	*out = HM_STEAL(c);
	return 0;
}

static int parse_wrapped(const char *text, size_t n, const struct wanted *w, struct checkpoint **out, struct hm_err *e)
{
	struct hm_err own;

	e = e != NULL ? e : &own;
	return parse(text, n, w, out, e) < 0 ? hm_err_wrap(e, "kubelet checkpoint") : 0;
}

static int read_wanted(const char *path, const struct wanted *w, struct checkpoint **out, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (file_read(path, CHECKPOINT_MAX_BYTES, &text, e) < 0)
		return hm_err_wrap(e, "kubelet checkpoint");
	if (parse_wrapped(str_text(&text), text.n, w, out, e) < 0)
		return hm_err_wrap(e, "read %s", path);
	return 0;
}

int checkpoint_parse(const char *text, size_t n, const char *resource, struct checkpoint **out, struct hm_err *e)
{
	return parse_wrapped(text, n, &(struct wanted) { .resource = resource }, out, e);
}

int checkpoint_read(const char *path, const char *resource, struct checkpoint **out, struct hm_err *e)
{
	return read_wanted(path, &(struct wanted) { .resource = resource }, out, e);
}

int checkpoint_parse_all(const char *text, size_t n, const struct checkpoint_ours *ours, struct checkpoint **out,
			 struct hm_err *e)
{
	return parse_wrapped(text, n, &(struct wanted) { .ours = ours }, out, e);
}

int checkpoint_read_all(const char *path, const struct checkpoint_ours *ours, struct checkpoint **out, struct hm_err *e)
{
	return read_wanted(path, &(struct wanted) { .ours = ours }, out, e);
}

const char *checkpoint_mount_host(const struct checkpoint_entry *entry, const char *container_path)
{
	for (size_t i = 0; i < entry->mount_count; i++)
		if (strcmp(entry->mounts[i].container_path, container_path) == 0)
			return entry->mounts[i].host_path;
	return NULL;
}

const struct checkpoint_entry *checkpoint_match(const struct checkpoint *c, const char *resource,
						const char *const *ids, size_t id_count, size_t *at)
{
	hm_auto_heap const char **sorted = calloc(id_count + 1, sizeof *sorted);
	const struct checkpoint_entry *found = NULL;

	if (sorted == NULL)
		return NULL;
	if (id_count > 0)
		memcpy(sorted, ids, id_count * sizeof *sorted);
	qsort(sorted, id_count, sizeof *sorted, compare_text);
	while (found == NULL && *at < c->count) {
		const struct checkpoint_entry *entry = &c->entries[(*at)++];
		size_t same = 0;

		if (entry->id_count != id_count || strcmp(entry->resource, resource) != 0)
			continue;
		while (same < id_count && strcmp(entry->ids[same], sorted[same]) == 0)
			same++;
		if (same == id_count)
			found = entry;
	}
	return found;
}
