#include "hami/keys.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/str.h"
#include "model/resource_name.h"

void hami_warn_once(struct texts *told, const char *file, const char *what, const char *key)
{
	hm_auto_str text = { 0 };

	if (told == NULL)
		return;
	str_addf(&text, "%s %s %s", file, key, what);
	if (texts_first(told, str_text(&text)))
		log_warn(what, KV("file", file), KV("key", key));
}

static const struct hami_key *find(const struct hami_keys *k, const char *name)
{
	for (size_t i = 0; i < k->count; i++)
		if (k->strict ? strcasecmp(name, k->keys[i].name) == 0 : strcmp(name, k->keys[i].name) == 0)
			return &k->keys[i];
	return NULL;
}

static int read_resource(const struct json_at *at, const char *name, const char **to, struct hm_err *e)
{
	const char *text = NULL, *fault;

	if (json_text(at, name, JSON_OPTIONAL, &text, e) < 0)
		return -e->code;
	fault = text != NULL && *text != '\0' ? resource_name_fault(text) : NULL;
	if (fault != NULL)
		return json_err(at, name, e, "\"%.60s\" %s", text, fault);
	if (text != NULL && *text != '\0')
		*to = text;
	return 0;
}

static int read_label(const struct json_at *at, const struct cJSON *value, bool strict, char *to, struct hm_err *e)
{
	static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	char text[HAMI_LABEL_BYTES] = "";
	uint64_t number = 0;

	if (!strict && cJSON_IsNumber(value)) {
		if (json_u64(at, value->string, JSON_OPTIONAL, 0, UINT64_MAX, &number, e) < 0)
			return -e->code;
		snprintf(text, sizeof text, "%llu", (unsigned long long)number);
	} else if (json_copy(at, value->string, JSON_OPTIONAL, text, sizeof text, e) < 0) {
		return -e->code;
	}
	if (text[strspn(text, good)] != '\0')
		return json_err(at, value->string, e, "\"%s\" is not a plain word", text);
	memcpy(to, text, sizeof text);
	return 0;
}

static int read_value(const struct json_at *at, const struct cJSON *value, const struct hami_key *key, bool strict,
		      struct hm_err *e)
{
	const char *name = value->string;

	switch (key->kind) {
	case HAMI_TEXT: return json_text(at, name, JSON_OPTIONAL, key->to, e);
	case HAMI_RESOURCE: return read_resource(at, name, key->to, e);
	case HAMI_LABEL: return read_label(at, value, strict, key->to, e);
	case HAMI_U64: return json_u64(at, name, JSON_OPTIONAL, key->min, key->max, key->to, e);
	case HAMI_F64: return json_f64(at, name, JSON_OPTIONAL, (double)key->min, (double)key->max, key->to, e);
	case HAMI_BOOL: return json_bool(at, name, JSON_OPTIONAL, key->to, e);
	case HAMI_TREE:
		if (!cJSON_IsObject(value) && !cJSON_IsArray(value))
			return json_err(at, name, e, "is a single value where more is wanted");
		*(const struct cJSON **)key->to = value;
		return 0;
	case HAMI_UNREAD: return 0;
	}
	return hm_err_set(e, HM_EINTERNAL, "%s: unknown kind of key", name);
}

int hami_keys_read(const struct json_at *at, const struct hami_keys *k, struct hm_err *e)
{
	const struct cJSON *value;

	cJSON_ArrayForEach(value, at->node)
	{
		const struct hami_key *key = find(k, value->string);

		if (key == NULL)
			hami_warn_once(k->told, k->file, "an unknown key is left out", value->string);
		else if (!cJSON_IsNull(value) && read_value(at, value, key, k->strict, e) < 0)
			return -e->code;
	}
	return 0;
}
