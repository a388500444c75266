#include "cdi/spec.h"

#include <stdlib.h>
#include <string.h>

#include "cdi/edits.h"
#include "cdi/names.h"
#include "io/yaml.h"

/* More would be no CDI spec; and the reader's memory stays bounded by the text anyway. */
enum { MAX_SPEC_BYTES = 4 * 1024 * 1024, MAX_DEVICES = 65536 };

void cdi_spec_free(struct cdi_spec *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->device_count; i++) {
		free(s->devices[i].name);
		cdi_edits_fini(&s->devices[i].edits);
	}
	free(s->devices);
	free(s->kind);
	cdi_edits_fini(&s->edits);
	free(s);
}

const struct cdi_device *cdi_spec_device(const struct cdi_spec *s, const char *name)
{
	for (size_t i = 0; i < s->device_count; i++) {
		if (strcmp(s->devices[i].name, name) == 0)
			return &s->devices[i];
	}
	return NULL;
}

/* The member or NULL; null counts as absent, as it does for the runtimes. Twice is an error. */
static int member(const cJSON *object, const char *name, const cJSON **out, struct hm_err *e)
{
	const cJSON *it;

	*out = NULL;
	cJSON_ArrayForEach(it, object)
	{
		if (it->string == NULL || strcmp(it->string, name) != 0)
			continue;
		if (*out != NULL)
			return hm_err_set(e, HM_EPROTO, "%s stands there twice", name);
		*out = it;
	}
	if (*out != NULL && cJSON_IsNull(*out))
		*out = NULL;
	return 0;
}

static int read_text(const cJSON *object, const char *name, bool required, char **out, struct hm_err *e)
{
	const cJSON *v;

	if (member(object, name, &v, e) < 0)
		return -e->code;
	if (v == NULL)
		return required ? hm_err_set(e, HM_EPROTO, "%s is missing", name) : 0;
	if (!cJSON_IsString(v) || (required && v->valuestring[0] == '\0'))
		return hm_err_set(e, HM_EPROTO, "%s is %s", name, cJSON_IsString(v) ? "empty" : "no text");
	return cdi_copy_text(out, v->valuestring) ? 0 : hm_err_set(e, HM_ENOMEM, "%s", name);
}

/* Calls read for each element of the list `name`, if it is there. */
static int each(const cJSON *object, const char *name, struct cdi_edits *to,
		int (*read)(const cJSON *it, struct cdi_edits *to, struct hm_err *e), struct hm_err *e)
{
	const cJSON *list, *it;
	size_t i = 0;

	if (member(object, name, &list, e) < 0)
		return -e->code;
	if (list != NULL && !cJSON_IsArray(list))
		return hm_err_set(e, HM_EPROTO, "%s is no list", name);
	cJSON_ArrayForEach(it, list)
	{
		if (read(it, to, e) < 0)
			return hm_err_wrap(e, "%s[%zu]", name, i);
		i++;
	}
	return 0;
}

static int read_texts(const cJSON *object, const char *name, char ***out, size_t *count, struct hm_err *e)
{
	const cJSON *list, *it;

	if (member(object, name, &list, e) < 0)
		return -e->code;
	if (list == NULL)
		return 0;
	if (!cJSON_IsArray(list))
		return hm_err_set(e, HM_EPROTO, "%s is no list", name);
	*out = calloc((size_t)cJSON_GetArraySize(list) + 1, sizeof **out);
	if (*out == NULL)
		return hm_err_set(e, HM_ENOMEM, "%s", name);
	cJSON_ArrayForEach(it, list)
	{
		if (!cJSON_IsString(it))
			return hm_err_set(e, HM_EPROTO, "%s[%zu] is no text", name, *count);
		if (!cdi_copy_text(&(*out)[*count], it->valuestring))
			return hm_err_set(e, HM_ENOMEM, "%s", name);
		++*count;
	}
	return 0;
}

static int read_env(const cJSON *it, struct cdi_edits *to, struct hm_err *e)
{
	const char *equals = cJSON_IsString(it) ? strchr(it->valuestring, '=') : NULL;
	struct cdi_env v = { 0 };

	if (equals == NULL || equals == it->valuestring)
		return hm_err_set(e, HM_EPROTO, "is not NAME=VALUE");
	v.name = strndup(it->valuestring, (size_t)(equals - it->valuestring));
	v.value = strdup(equals + 1);
	if (v.name != NULL && v.value != NULL)
		return cdi_take_env(to, v) < 0 ? hm_err_set(e, HM_ENOMEM, "env") : 0;
	cdi_env_fini(&v);
	return hm_err_set(e, HM_ENOMEM, "env");
}

static int read_mount(const cJSON *it, struct cdi_edits *to, struct hm_err *e)
{
	struct cdi_mount m = { 0 };

	if (read_text(it, "hostPath", true, &m.host_path, e) < 0 ||
	    read_text(it, "containerPath", true, &m.container_path, e) < 0 ||
	    read_text(it, "type", false, &m.type, e) < 0 ||
	    read_texts(it, "options", &m.options, &m.option_count, e) < 0) {
		cdi_mount_fini(&m);
		return -e->code;
	}
	return cdi_take_mount(to, m) < 0 ? hm_err_set(e, HM_ENOMEM, "mount") : 0;
}

static int read_node(const cJSON *it, struct cdi_edits *to, struct hm_err *e)
{
	struct cdi_node n = { 0 };
	int r = 0;

	if (read_text(it, "path", true, &n.path, e) < 0 || read_text(it, "hostPath", false, &n.host_path, e) < 0 ||
	    read_text(it, "permissions", false, &n.permissions, e) < 0)
		r = -e->code;
	else if (n.permissions != NULL && !cdi_permissions_ok(n.permissions))
		r = hm_err_set(e, HM_EPROTO, "permissions \"%s\" are not of r, w, m", n.permissions);
	if (r < 0) {
		cdi_node_fini(&n);
		return r;
	}
	return cdi_take_node(to, n) < 0 ? hm_err_set(e, HM_ENOMEM, "node") : 0;
}

static int read_hook(const cJSON *it, struct cdi_edits *to, struct hm_err *e)
{
	struct cdi_hook h = { 0 };
	int r = 0;

	if (read_text(it, "hookName", true, &h.name, e) < 0 || read_text(it, "path", true, &h.path, e) < 0 ||
	    read_texts(it, "args", &h.args, &h.arg_count, e) < 0 || read_texts(it, "env", &h.envs, &h.env_count, e) < 0)
		r = -e->code;
	else if (!cdi_hook_name_ok(h.name))
		r = hm_err_set(e, HM_EPROTO, "hookName \"%s\" is no OCI hook", h.name);
	if (r < 0) {
		cdi_hook_fini(&h);
		return r;
	}
	return cdi_take_hook(to, h) < 0 ? hm_err_set(e, HM_ENOMEM, "hook") : 0;
}

static int read_edits(const cJSON *owner, struct cdi_edits *to, struct hm_err *e)
{
	const cJSON *edits;

	if (member(owner, "containerEdits", &edits, e) < 0)
		return -e->code;
	if (edits == NULL)
		return 0;
	if (!cJSON_IsObject(edits))
		return hm_err_set(e, HM_EPROTO, "containerEdits is no object");
	if (each(edits, "env", to, read_env, e) < 0 || each(edits, "deviceNodes", to, read_node, e) < 0 ||
	    each(edits, "mounts", to, read_mount, e) < 0 || each(edits, "hooks", to, read_hook, e) < 0)
		return hm_err_wrap(e, "containerEdits");
	return 0;
}

static int read_device(const cJSON *it, struct cdi_spec *s, struct hm_err *e)
{
	struct cdi_device *d = &s->devices[s->device_count++];

	if (read_text(it, "name", true, &d->name, e) < 0)
		return -e->code;
	if (!cdi_device_name_ok(d->name))
		return hm_err_set(e, HM_EPROTO, "name \"%s\" has characters that runtimes refuse", d->name);
	return read_edits(it, &d->edits, e) < 0 ? hm_err_wrap(e, "%s", d->name) : 0;
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int check_unique(const struct cdi_spec *s, struct hm_err *e)
{
	hm_auto_heap const char **names = calloc(s->device_count + 1, sizeof *names);

	if (names == NULL)
		return hm_err_set(e, HM_ENOMEM, "device names");
	for (size_t i = 0; i < s->device_count; i++)
		names[i] = s->devices[i].name;
	qsort(names, s->device_count, sizeof *names, compare_names);
	for (size_t i = 1; i < s->device_count; i++) {
		if (strcmp(names[i - 1], names[i]) == 0)
			return hm_err_set(e, HM_EPROTO, "device \"%s\" stands there twice", names[i]);
	}
	return 0;
}

static int read_devices(const cJSON *root, struct cdi_spec *s, struct hm_err *e)
{
	const cJSON *list, *it;
	size_t count;

	if (member(root, "devices", &list, e) < 0)
		return -e->code;
	if (!cJSON_IsArray(list) || cJSON_GetArraySize(list) == 0)
		return hm_err_set(e, HM_EPROTO, "devices is no list of at least one");
	count = (size_t)cJSON_GetArraySize(list);
	if (count > MAX_DEVICES)
		return hm_err_set(e, HM_ELIMIT, "%zu devices, at most %d are read", count, MAX_DEVICES);
	s->devices = calloc(count, sizeof *s->devices);
	if (s->devices == NULL)
		return hm_err_set(e, HM_ENOMEM, "%zu devices", count);
	cJSON_ArrayForEach(it, list)
	{
		if (read_device(it, s, e) < 0)
			return hm_err_wrap(e, "devices[%zu]", s->device_count - 1);
	}
	return check_unique(s, e);
}

/* 0.3.0 to 1.x: what is newer may mean something else by the same names. */
static int check_version(const cJSON *root, struct hm_err *e)
{
	hm_auto_heap char *version = NULL;

	if (read_text(root, "cdiVersion", true, &version, e) < 0)
		return -e->code;
	if (strncmp(version, "0.", 2) != 0 && strncmp(version, "1.", 2) != 0)
		return hm_err_set(e, HM_EUNSUPPORTED, "cdiVersion \"%s\" is not known here: 0.x and 1.x are read",
				  version);
	return 0;
}

static int read_spec(const cJSON *root, struct cdi_spec **out, struct hm_err *e)
{
	hm_auto(cdi_spec) *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "spec");
	if (!cJSON_IsObject(root))
		return hm_err_set(e, HM_EPROTO, "no object");
	if (check_version(root, e) < 0 || read_text(root, "kind", true, &s->kind, e) < 0)
		return -e->code;
	if (!cdi_kind_ok(s->kind))
		return hm_err_set(e, HM_EPROTO, "kind \"%s\" is not vendor/class", s->kind);
	if (read_edits(root, &s->edits, e) < 0 || read_devices(root, s, e) < 0)
		return -e->code;
	*out = HM_STEAL(s);
	return 0;
}

/* A NUL inside a text would cut it in C, raw or as an escape. */
static bool has_nul(const char *text, size_t n)
{
	return memchr(text, '\0', n) != NULL || memmem(text, n, "\\u0000", 6) != NULL;
}

static int parse_tree(const char *text, size_t n, struct cJSON **out, struct hm_err *e)
{
	if (n > MAX_SPEC_BYTES)
		return hm_err_set(e, HM_ELIMIT, "%zu bytes, at most %d are read", n, MAX_SPEC_BYTES);
	if (has_nul(text, n))
		return hm_err_set(e, HM_EPROTO, "NUL inside");
	/* YAML could read JSON, too, but knows fewer of its escapes. */
	return json_begins_object(text, n) ? json_parse(text, n, out, e) : yaml_parse(text, n, out, e);
}

int cdi_spec_parse(const char *text, size_t n, struct cdi_spec **out, struct hm_err *e)
{
	hm_auto(cJSON) *root = NULL;
	struct hm_err own;

	e = e != NULL ? e : &own;
	if (parse_tree(text, n, &root, e) < 0 || read_spec(root, out, e) < 0)
		return hm_err_wrap(e, "CDI spec");
	return 0;
}
