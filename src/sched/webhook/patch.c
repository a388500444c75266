#include "sched/webhook/patch.h"

#include "io/json_write.h"

static void write_operation(struct str *patch, const char *op, const char *path, const char *value)
{
	if (patch->n > 0)
		str_addc(patch, ',');
	str_addf(patch, "{\"op\":\"%s\",\"path\":", op);
	json_add_text(patch, path);
	str_addf(patch, ",\"value\":%s}", value);
}

void patch_set(struct str *patch, const char *path, const char *key, const char *value)
{
	hm_auto_str at = { 0 };

	str_addf(&at, "%s/", path);
	for (const char *p = key; *p != '\0'; p++) { /* RFC 6901 */
		if (*p == '~')
			str_add(&at, "~0");
		else if (*p == '/')
			str_add(&at, "~1");
		else
			str_addc(&at, *p);
	}
	write_operation(patch, "add", str_text(&at), value);
	if (str_failed(&at))
		patch->failed = true;
}

void patch_append(struct str *patch, const char *path, const char *value)
{
	patch_set(patch, path, "-", value);
}

void patch_replace_item(struct str *patch, const char *path, size_t item, const char *value)
{
	hm_auto_str at = { 0 };

	str_addf(&at, "%s/%zu", path, item);
	write_operation(patch, "replace", str_text(&at), value);
	if (str_failed(&at))
		patch->failed = true;
}
