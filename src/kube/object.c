#include "kube/object.h"

#include <string.h>

#include "core/fmt.h"

static int read_text(const struct json_at *at, const char *key, enum json_need need, size_t cap, const char **out,
		     struct hm_err *e)
{
	*out = "";
	if (json_text(at, key, need, out, e) < 0)
		return -e->code;
	if (strlen(*out) >= cap)
		return json_err(at, key, e, "is longer than %zu bytes", cap - 1);
	return need == JSON_REQUIRED && (*out)[0] == '\0' ? json_err(at, key, e, "is empty") : 0;
}

void kube_trim_text(char *text, size_t n)
{
	json_empty_arrays(text, n, "managedFields");
}

int kube_version_read(const struct json_at *meta, const char **out, struct hm_err *e)
{
	*out = "";
	if (json_text(meta, "resourceVersion", JSON_REQUIRED, out, e) < 0)
		return -HM_EINVAL;
	if ((*out)[0] == '\0' || strlen(*out) >= KUBE_VERSION_BYTES)
		return json_err(meta, "resourceVersion", e, "is no version");
	return 0;
}

int kube_object_read(const struct cJSON *tree, struct kube_object *out, struct hm_err *e)
{
	struct json_at root = json_root(tree), meta;
	struct hm_err own;

	e = e != NULL ? e : &own;
	*out = (struct kube_object) { .tree = tree };
	if (!cJSON_IsObject(tree))
		return hm_err_set(e, HM_EPROTO, "is no object");
	if (json_object(&root, "metadata", JSON_REQUIRED, &meta, e) < 0 ||
	    read_text(&meta, "name", JSON_REQUIRED, KUBE_NAME_BYTES, &out->name, e) < 0 ||
	    read_text(&meta, "namespace", JSON_OPTIONAL, 64, &out->name_space, e) < 0 ||
	    read_text(&meta, "uid", JSON_REQUIRED, KUBE_VERSION_BYTES, &out->uid, e) < 0 ||
	    kube_version_read(&meta, &out->resource_version, e) < 0) {
		e->code = HM_EPROTO;
		return -HM_EPROTO;
	}
	hm_fmt(out->key, sizeof out->key, "%s%s%s", out->name_space, out->name_space[0] != '\0' ? "/" : "", out->name);
	return 0;
}
