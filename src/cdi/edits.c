#include "cdi/edits.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cdi/names.h"

static void texts_free(char **texts, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(texts[i]);
	free(texts);
}

void cdi_env_fini(struct cdi_env *v)
{
	free(v->name);
	free(v->value);
	*v = (struct cdi_env) { 0 };
}

void cdi_mount_fini(struct cdi_mount *m)
{
	free(m->host_path);
	free(m->container_path);
	free(m->type);
	texts_free(m->options, m->option_count);
	*m = (struct cdi_mount) { 0 };
}

void cdi_node_fini(struct cdi_node *n)
{
	free(n->path);
	free(n->host_path);
	free(n->permissions);
	*n = (struct cdi_node) { 0 };
}

void cdi_hook_fini(struct cdi_hook *h)
{
	free(h->name);
	free(h->path);
	texts_free(h->args, h->arg_count);
	texts_free(h->envs, h->env_count);
	*h = (struct cdi_hook) { 0 };
}

/* Drops what was appended behind these counts. */
static void cut(struct cdi_edits *e, size_t envs, size_t mounts, size_t nodes, size_t hooks)
{
	while (e->env_count > envs)
		cdi_env_fini(&e->envs[--e->env_count]);
	while (e->mount_count > mounts)
		cdi_mount_fini(&e->mounts[--e->mount_count]);
	while (e->node_count > nodes)
		cdi_node_fini(&e->nodes[--e->node_count]);
	while (e->hook_count > hooks)
		cdi_hook_fini(&e->hooks[--e->hook_count]);
}

void cdi_edits_fini(struct cdi_edits *e)
{
	cut(e, 0, 0, 0, 0);
	free(e->envs);
	free(e->mounts);
	free(e->nodes);
	free(e->hooks);
	*e = (struct cdi_edits) { 0 };
}

bool cdi_edits_empty(const struct cdi_edits *e)
{
	return e->env_count + e->mount_count + e->node_count + e->hook_count == 0;
}

bool cdi_copy_text(char **to, const char *from)
{
	*to = from == NULL ? NULL : strdup(from);
	return from == NULL || *to != NULL;
}

static bool copy_texts(char ***to, size_t *to_count, char *const *from, size_t count)
{
	*to = calloc(count + 1, sizeof **to);
	*to_count = 0;
	if (*to == NULL)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!cdi_copy_text(&(*to)[i], from[i]))
			return false;
		++*to_count;
	}
	return true;
}

int cdi_take_env(struct cdi_edits *e, struct cdi_env v)
{
	for (size_t i = 0; i < e->env_count; i++) {
		if (strcmp(e->envs[i].name, v.name) != 0)
			continue;
		cdi_env_fini(&e->envs[i]);
		e->envs[i] = v;
		return 0;
	}
	if (HM_PUSH(e->envs, e->env_count, e->env_cap, v))
		return 0;
	cdi_env_fini(&v);
	return -HM_ENOMEM;
}

int cdi_take_mount(struct cdi_edits *e, struct cdi_mount m)
{
	if (HM_PUSH(e->mounts, e->mount_count, e->mount_cap, m))
		return 0;
	cdi_mount_fini(&m);
	return -HM_ENOMEM;
}

int cdi_take_node(struct cdi_edits *e, struct cdi_node n)
{
	if (HM_PUSH(e->nodes, e->node_count, e->node_cap, n))
		return 0;
	cdi_node_fini(&n);
	return -HM_ENOMEM;
}

int cdi_take_hook(struct cdi_edits *e, struct cdi_hook h)
{
	if (HM_PUSH(e->hooks, e->hook_count, e->hook_cap, h))
		return 0;
	cdi_hook_fini(&h);
	return -HM_ENOMEM;
}

int cdi_add_env(struct cdi_edits *e, const char *name, const char *value)
{
	struct cdi_env v = { 0 };

	if (!cdi_env_name_ok(name))
		return -HM_EINVAL;
	if (cdi_copy_text(&v.name, name) && cdi_copy_text(&v.value, value))
		return cdi_take_env(e, v);
	cdi_env_fini(&v);
	return -HM_ENOMEM;
}

static int add_mount(struct cdi_edits *e, const char *host, const char *container, char *const *options, size_t count,
		     const char *type)
{
	struct cdi_mount m = { 0 };

	if (host[0] == '\0' || container[0] == '\0')
		return -HM_EINVAL;
	if (cdi_copy_text(&m.host_path, host) && cdi_copy_text(&m.container_path, container) &&
	    cdi_copy_text(&m.type, type) && copy_texts(&m.options, &m.option_count, options, count))
		return cdi_take_mount(e, m);
	cdi_mount_fini(&m);
	return -HM_ENOMEM;
}

int cdi_add_mount(struct cdi_edits *e, const char *host, const char *container, bool read_only)
{
	char access[] = { 'r', read_only ? 'o' : 'w', '\0' };
	char *const options[] = { access, (char[]) { "nosuid" }, (char[]) { "nodev" }, (char[]) { "rbind" },
				  (char[]) { "rprivate" } };

	return add_mount(e, host, container, options, HM_COUNT(options), NULL);
}

int cdi_add_node(struct cdi_edits *e, const char *path, const char *host_path, const char *permissions)
{
	struct cdi_node n = { 0 };

	if (path[0] == '\0' || (permissions != NULL && !cdi_permissions_ok(permissions)))
		return -HM_EINVAL;
	if (cdi_copy_text(&n.path, path) && cdi_copy_text(&n.host_path, host_path) &&
	    cdi_copy_text(&n.permissions, permissions))
		return cdi_take_node(e, n);
	cdi_node_fini(&n);
	return -HM_ENOMEM;
}

int cdi_add_hook(struct cdi_edits *e, const struct cdi_hook *from)
{
	struct cdi_hook h = { 0 };

	if (!cdi_hook_name_ok(from->name) || from->path[0] == '\0')
		return -HM_EINVAL;
	if (cdi_copy_text(&h.name, from->name) && cdi_copy_text(&h.path, from->path) &&
	    copy_texts(&h.args, &h.arg_count, from->args, from->arg_count) &&
	    copy_texts(&h.envs, &h.env_count, from->envs, from->env_count))
		return cdi_take_hook(e, h);
	cdi_hook_fini(&h);
	return -HM_ENOMEM;
}

static int append_all(struct cdi_edits *to, const struct cdi_edits *from)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->mount_count; i++) {
		const struct cdi_mount *m = &from->mounts[i];

		r = add_mount(to, m->host_path, m->container_path, m->options, m->option_count, m->type);
	}
	for (size_t i = 0; r == 0 && i < from->node_count; i++)
		r = cdi_add_node(to, from->nodes[i].path, from->nodes[i].host_path, from->nodes[i].permissions);
	for (size_t i = 0; r == 0 && i < from->hook_count; i++)
		r = cdi_add_hook(to, &from->hooks[i]);
	return r;
}

/* Env replaces, so it cannot simply be cut off again: all its copies are made before the first one is put in. */
static int append_envs(struct cdi_edits *to, const struct cdi_edits *from)
{
	struct cdi_edits copy = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->env_count; i++)
		r = cdi_add_env(&copy, from->envs[i].name, from->envs[i].value);
	if (r == 0 && !array_reserve(&to->envs, &to->env_cap, to->env_count + copy.env_count, sizeof *to->envs))
		r = -HM_ENOMEM;
	for (size_t i = 0; r == 0 && i < copy.env_count; i++) {
		r = cdi_take_env(to, copy.envs[i]);
		copy.envs[i] = (struct cdi_env) { 0 };
	}
	cdi_edits_fini(&copy);
	return r;
}

int cdi_edits_append(struct cdi_edits *to, const struct cdi_edits *from)
{
	size_t mounts = to->mount_count, nodes = to->node_count, hooks = to->hook_count;
	int r = append_all(to, from);

	if (r == 0)
		r = append_envs(to, from);
	if (r != 0)
		cut(to, to->env_count, mounts, nodes, hooks);
	return r;
}
