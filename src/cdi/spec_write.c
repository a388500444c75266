#include "cdi/spec.h"

#include "cdi/edits.h"
#include "cdi/names.h"
#include "io/file.h"
#include "io/json_write.h"

/* The same edits give the same bytes: fixed order of fields, no spaces, one line. */

static void add_texts(struct str *out, const char *name, char *const *texts, size_t count)
{
	if (count == 0)
		return;
	json_add_name(out, name);
	str_addc(out, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			str_addc(out, ',');
		json_add_text(out, texts[i]);
	}
	str_addc(out, ']');
}

static void add_env(struct str *out, const struct cdi_edits *e, size_t i)
{
	hm_auto_str pair = { 0 };

	str_add(&pair, e->envs[i].name);
	str_addc(&pair, '=');
	str_add(&pair, e->envs[i].value);
	json_add_text(out, str_text(&pair));
	out->failed |= str_failed(&pair);
}

static void add_node(struct str *out, const struct cdi_edits *e, size_t i)
{
	str_addc(out, '{');
	json_add_member(out, "path", e->nodes[i].path);
	json_add_member(out, "hostPath", e->nodes[i].host_path);
	json_add_member(out, "permissions", e->nodes[i].permissions);
	str_addc(out, '}');
}

static void add_mount(struct str *out, const struct cdi_edits *e, size_t i)
{
	const struct cdi_mount *m = &e->mounts[i];

	str_addc(out, '{');
	json_add_member(out, "hostPath", m->host_path);
	json_add_member(out, "containerPath", m->container_path);
	add_texts(out, "options", m->options, m->option_count);
	json_add_member(out, "type", m->type);
	str_addc(out, '}');
}

static void add_hook(struct str *out, const struct cdi_edits *e, size_t i)
{
	const struct cdi_hook *h = &e->hooks[i];

	str_addc(out, '{');
	json_add_member(out, "hookName", h->name);
	json_add_member(out, "path", h->path);
	add_texts(out, "args", h->args, h->arg_count);
	add_texts(out, "env", h->envs, h->env_count);
	str_addc(out, '}');
}

static void add_edits(struct str *out, const struct cdi_edits *e)
{
	const struct {
		const char *name;
		size_t count;
		void (*add)(struct str *out, const struct cdi_edits *e, size_t i);
	} lists[] = {
		{ "env", e->env_count, add_env },
		{ "deviceNodes", e->node_count, add_node },
		{ "mounts", e->mount_count, add_mount },
		{ "hooks", e->hook_count, add_hook },
	};

	str_addc(out, '{');
	for (size_t k = 0; k < HM_COUNT(lists); k++) {
		if (lists[k].count == 0)
			continue;
		json_add_name(out, lists[k].name);
		str_addc(out, '[');
		for (size_t i = 0; i < lists[k].count; i++) {
			if (i > 0)
				str_addc(out, ',');
			lists[k].add(out, e, i);
		}
		str_addc(out, ']');
	}
	str_addc(out, '}');
}

static int check_device(const struct cdi_spec *s, const struct cdi_device *d, struct hm_err *e)
{
	if (!cdi_device_name_ok(d->name))
		return hm_err_set(e, HM_EINVAL, "CDI device name \"%s\" has characters that runtimes refuse", d->name);
	if (cdi_edits_empty(&d->edits) && cdi_edits_empty(&s->edits))
		return hm_err_set(e, HM_EINVAL, "CDI device %s=%s without edits: runtimes refuse it", s->kind, d->name);
	return 0;
}

int cdi_spec_write_all(const struct cdi_spec *s, struct str *out, struct hm_err *e)
{
	if (!cdi_kind_ok(s->kind))
		return hm_err_set(e, HM_EINVAL, "CDI kind \"%s\" is not vendor/class", s->kind);
	if (s->device_count == 0)
		return hm_err_set(e, HM_EINVAL, "CDI spec %s without devices: runtimes refuse it", s->kind);
	for (size_t i = 0; i < s->device_count; i++)
		if (check_device(s, &s->devices[i], e) < 0)
			return -e->code;
	str_add(out, "{\"cdiVersion\":\"0.6.0\"");
	json_add_member(out, "kind", s->kind);
	str_add(out, ",\"devices\":[");
	for (size_t i = 0; i < s->device_count; i++) {
		str_add(out, i > 0 ? ",{" : "{");
		json_add_member(out, "name", s->devices[i].name);
		str_add(out, ",\"containerEdits\":");
		add_edits(out, &s->devices[i].edits);
		str_addc(out, '}');
	}
	str_addc(out, ']');
	if (!cdi_edits_empty(&s->edits)) {
		str_add(out, ",\"containerEdits\":");
		add_edits(out, &s->edits);
	}
	str_add(out, "}\n");
	return str_failed(out) ? hm_err_set(e, HM_ENOMEM, "CDI spec %s", s->kind) : 0;
}

int cdi_spec_write(const char *kind, const char *device, const struct cdi_edits *edits, struct str *out,
		   struct hm_err *e)
{
	struct cdi_device one = { (char *)device, *edits };
	const struct cdi_spec spec = { .kind = (char *)kind, .devices = &one, .device_count = 1 };

	return cdi_spec_write_all(&spec, out, e);
}

int cdi_spec_install(const char *path, const char *kind, const char *device, const struct cdi_edits *edits,
		     struct hm_err *e)
{
	hm_auto_str text = { 0 };

	if (cdi_spec_write(kind, device, edits, &text, e) < 0)
		return hm_err_wrap(e, "write %s", path);
	return file_replace(path, str_text(&text), text.n, 0644, e);
}
