#include "agent/options/config.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "core/check.h"
#include "core/cursor.h"
#include "io/file.h"
#include "io/json.h"
#include "io/yaml.h"

enum { MAX_OPTIONS = 128 };

/* "coresPerDevice" is "cores-per-device". */
static bool same_name(const char *key, const char *name)
{
	for (; *key != '\0'; key++) {
		bool upper = *key >= 'A' && *key <= 'Z';

		if (upper && *name++ != '-')
			return false;
		if ((upper ? *key + ('a' - 'A') : *key) != *name++)
			return false;
	}
	return *name == '\0';
}

static const struct option_spec *find_option(const struct config_target *to, const char *key)
{
	/* A name that users of HAMi know. */
	if (!to->hami && strcmp(key, "deviceSplitCount") == 0)
		key = "cores-per-device";
	for (size_t i = 0; i < to->count; i++)
		if (same_name(key, to->table[i].name))
			return &to->table[i];
	return NULL;
}

/* The value as a flag would give it; NULL where it is none. A number's text is in buf, all else in the tree. */
static const char *text_of(const struct cJSON *value, char *buf, size_t cap)
{
	if (cJSON_IsString(value))
		return value->valuestring;
	if (cJSON_IsBool(value))
		return cJSON_IsTrue(value) ? "true" : "false";
	if (!cJSON_IsNumber(value))
		return NULL;
	snprintf(buf, cap, "%.17g", value->valuedouble);
	return buf;
}

static int set_known(const struct option_spec *o, const struct cJSON *value, struct texts *texts, struct hm_err *e)
{
	char buf[40];
	const char *text = text_of(value, buf, sizeof buf);

	if (cJSON_IsNull(value))
		return 0;
	if (text == NULL)
		return hm_err_set(e, HM_EINVAL, "%s: is not a single value", value->string);
	if (text == buf && (o->kind == OPTION_TEXT || o->kind == OPTION_CHOICE))
		return hm_err_set(e, HM_EINVAL, "%s: a number where text is wanted; put it in quotes", value->string);
	text = texts_keep(texts, text);
	if (text == NULL)
		return hm_err_set(e, HM_ENOMEM, "%s", value->string);
	return option_set(o, value->string, text, e);
}

static void warn_once(const struct config_target *to, const struct cJSON *value)
{
	if (texts_first(to->told, value->string))
		log_warn("an unknown key in the configuration file is left out", KV("key", value->string),
			 KV_U64("line", value->valueint));
}

static int set_one(const struct config_target *to, bool *seen, const struct cJSON *value, struct hm_err *e)
{
	const struct option_spec *o = find_option(to, value->string);

	if (o == NULL) {
		warn_once(to, value);
		return 0;
	}
	if (seen[o - to->table]) /* under its two names; the same key twice is refused by the YAML reader */
		return hm_err_set(e, HM_EINVAL, "line %d: %s: --%s stands here for the second time", value->valueint,
				  value->string, o->name);
	seen[o - to->table] = true;
	if (set_known(o, value, to->texts, e) < 0 || (to->check != NULL && to->check(to->arg, e) < 0))
		return hm_err_wrap(e, "line %d", value->valueint);
	return 0;
}

/* Blank lines and comments alone: a file that an administrator has not filled in. */
static bool says_nothing(const char *text, size_t n)
{
	struct cur c = cur_of(text, n);

	while (c.p < c.end) {
		struct piece line = cur_line(&c);
		size_t at = 0;

		while (at < line.n && strchr(" \t\r", line.p[at]) != NULL)
			at++;
		if (at < line.n && line.p[at] != '#')
			return false;
	}
	return true;
}

int config_parse(const char *text, size_t n, const struct config_target *to, struct hm_err *e)
{
	bool seen[MAX_OPTIONS] = { false };
	hm_auto(cJSON) *tree = NULL;
	const struct cJSON *value;

	CHECK(to->count <= MAX_OPTIONS);
	if (says_nothing(text, n))
		return 0;
	if (yaml_parse(text, n, &tree, e) < 0)
		return -e->code;
	if (cJSON_IsNull(tree))
		return 0;
	if (!cJSON_IsObject(tree))
		return hm_err_set(e, HM_EINVAL, "line %d: expected \"key: value\" lines", tree->valueint);
	cJSON_ArrayForEach(value, tree)
	{
		if (set_one(to, seen, value, e) < 0)
			return -e->code;
	}
	return 0;
}

int config_read(const char *path, const struct config_target *to, struct hm_err *e)
{
	hm_auto_str text = { 0 };

	if (file_read(path, CONFIG_MAX_BYTES, &text, e) < 0)
		return -e->code;
	if (config_parse(str_text(&text), text.n, to, e) < 0)
		return hm_err_wrap(e, "read config %s", path);
	return 0;
}
