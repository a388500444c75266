#include "kube/known.h"

#include <string.h>

#include "base/map.h"

struct kube_known {
	struct map *map; /* key -> struct entry */
};

struct entry {
	uint32_t mark;
	char texts[]; /* the UID, NUL, the version, NUL */
};

struct kube_known *kube_known_new(void)
{
	struct kube_known *k = calloc(1, sizeof *k);

	if (k != NULL)
		k->map = map_new();
	if (k != NULL && k->map == NULL) {
		free(k);
		return NULL;
	}
	return k;
}

void kube_known_free(struct kube_known *k)
{
	size_t at = 0;
	void *entry;

	if (k == NULL)
		return;
	while (map_next(k->map, &at, NULL, &entry))
		free(entry);
	map_free(k->map);
	free(k);
}

size_t kube_known_count(const struct kube_known *k)
{
	return map_count(k->map);
}

static const char *version_of(const struct entry *entry)
{
	return entry->texts + strlen(entry->texts) + 1;
}

int kube_known_put(struct kube_known *k, const struct kube_object *o, uint32_t mark, enum kube_known_change *change,
		   struct hm_err *e)
{
	struct entry *old = map_get(k->map, o->key), *entry;
	size_t uid = strlen(o->uid) + 1, version = strlen(o->resource_version) + 1;

	if (old != NULL && strcmp(old->texts, o->uid) != 0) {
		*change = KNOWN_OTHER;
		return 0;
	}
	if (old != NULL && strcmp(version_of(old), o->resource_version) == 0) {
		old->mark = mark;
		*change = KNOWN_SAME;
		return 0;
	}
	entry = malloc(sizeof *entry + uid + version);
	if (entry == NULL || map_put(k->map, o->key, entry, NULL) < 0) {
		free(entry);
		return hm_err_set(e, HM_ENOMEM, "%s: out of memory", o->key);
	}
	entry->mark = mark;
	memcpy(entry->texts, o->uid, uid);
	memcpy(entry->texts + uid, o->resource_version, version);
	free(old);
	*change = KNOWN_NEW;
	return 0;
}

static void describe(const char *key, struct entry *entry, struct kube_known_object *out)
{
	char *slash;

	memset(out, 0, sizeof *out);
	memcpy(out->text, key, strlen(key) + 1);
	memcpy(out->object.key, key, strlen(key) + 1);
	slash = strchr(out->text, '/');
	if (slash != NULL)
		*slash = '\0';
	out->object.name_space = slash != NULL ? out->text : "";
	out->object.name = slash != NULL ? slash + 1 : out->text;
	out->object.uid = entry->texts;
	out->object.resource_version = version_of(entry);
	out->owned = entry;
}

bool kube_known_take(struct kube_known *k, const char *key, const char *uid, struct kube_known_object *out)
{
	struct entry *entry = map_get(k->map, key);

	if (entry == NULL || (uid != NULL && strcmp(entry->texts, uid) != 0))
		return false;
	describe(key, entry, out);
	map_remove(k->map, out->object.key);
	return true;
}

bool kube_known_take_unmarked(struct kube_known *k, size_t *at, uint32_t mark, struct kube_known_object *out)
{
	const char *key;
	void *value;

	while (map_next(k->map, at, &key, &value)) {
		struct entry *entry = value;

		if (entry->mark == mark)
			continue;
		describe(key, entry, out);
		map_remove(k->map, out->object.key);
		return true;
	}
	return false;
}

void kube_known_object_fini(struct kube_known_object *o)
{
	free(o->owned);
	o->owned = NULL;
}
