/* CDI specs (cdiVersion 0.6.0 JSON): the ones we write, one device each, and the driver's own that we copy edits from.
 */
#ifndef HM_CDI_SPEC_H
#define HM_CDI_SPEC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"

struct cdi_env {
	char *name, *value;
};
struct cdi_mount {
	char *host_path, *container_path;
	char **options; /* "ro", "nosuid", "nodev", "rbind" ... */
	size_t option_count;
	char *type; /* "tmpfs" ...; NULL where none is told */
};
struct cdi_node {
	char *path, *host_path, *permissions; /* host_path, permissions may be NULL */
};
struct cdi_hook {
	char *name, *path; /* "createContainer" */
	char **args;
	size_t arg_count;
	char **envs; /* "NAME=VALUE" */
	size_t env_count;
};
/* containerEdits; all owned. */
struct cdi_edits {
	struct cdi_env *envs;
	size_t env_count, env_cap;
	struct cdi_mount *mounts;
	size_t mount_count, mount_cap;
	struct cdi_node *nodes;
	size_t node_count, node_cap;
	struct cdi_hook *hooks;
	size_t hook_count, hook_cap;
};

void cdi_edits_fini(struct cdi_edits *e);
/* Strings are copied; -HM_ENOMEM leaves the edits as they were (cdi_edits_append too), -HM_EINVAL what the runtime
 * would refuse: an empty path or name, '=' in an env name, permissions of other letters than r, w, m. cdi_add_env
 * replaces the same name. */
int cdi_add_env(struct cdi_edits *e, const char *name, const char *value) HM_MUST_USE;
int cdi_add_mount(struct cdi_edits *e, const char *host, const char *container, bool read_only) HM_MUST_USE;
int cdi_add_node(struct cdi_edits *e, const char *path, const char *host_path, const char *permissions) HM_MUST_USE;
int cdi_add_hook(struct cdi_edits *e, const struct cdi_hook *hook) HM_MUST_USE; /* copied */
int cdi_edits_append(struct cdi_edits *to, const struct cdi_edits *from) HM_MUST_USE;

struct cdi_device {
	char *name;
	struct cdi_edits edits;
};
struct cdi_spec {
	char *kind; /* "nvidia.com/gpu" */
	struct cdi_device *devices;
	size_t device_count;
	struct cdi_edits edits; /* of the whole spec: apply to each device */
};

/* Reads JSON (or YAML, as nvidia-ctk writes by default). -HM_EPROTO names what is wrong: what containerd would refuse
 * is refused. Unknown fields are ignored, and so are device numbers, modes and owners: the runtime takes them from the
 * node. */
int cdi_spec_parse(const char *text, size_t n, struct cdi_spec **out, struct hm_err *e) HM_MUST_USE;
void cdi_spec_free(struct cdi_spec *s);
HM_DEFINE_AUTO(cdi_spec, cdi_spec_free);
/* The device by name; NULL where absent. */
const struct cdi_device *cdi_spec_device(const struct cdi_spec *s, const char *name);

/* Our spec text for one device. */
int cdi_spec_write(const char *kind, const char *device, const struct cdi_edits *edits, struct str *out,
		   struct hm_err *e) HM_MUST_USE;
/* The same for a whole spec; its edits may be empty, those of its devices too, but not both. */
int cdi_spec_write_all(const struct cdi_spec *s, struct str *out, struct hm_err *e) HM_MUST_USE;
/* cdi_spec_write, then file_replace. */
int cdi_spec_install(const char *path, const char *kind, const char *device, const struct cdi_edits *edits,
		     struct hm_err *e) HM_MUST_USE;

#endif
