/* The kubelet's device checkpoint: which container holds which device IDs, and the CDI names that Allocate gave it.
 * Hostile or torn files are refused, never half used. */
#ifndef HM_KUBELET_CHECKPOINT_H
#define HM_KUBELET_CHECKPOINT_H

#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"

struct checkpoint_mount {
	char *container_path, *host_path;
};
struct checkpoint_entry {
	char *pod_uid, *container, *resource;
	char **ids; /* over all NUMA nodes, sorted */
	size_t id_count;
	char **cdi_names; /* of the Allocate answer kept in AllocResp; also those of its cdi.k8s.io/ annotations */
	size_t cdi_count;
	struct checkpoint_mount *mounts; /* of that answer; paths that are none are left out */
	size_t mount_count;
};
struct checkpoint {
	struct checkpoint_entry *entries;
	size_t count;
};

enum { CHECKPOINT_MAX_BYTES = 64 * 1024 * 1024 };

/* The entries of `resource`; others are not looked at. NULL: all. */
int checkpoint_parse(const char *text, size_t n, const char *resource, struct checkpoint **out,
		     struct hm_err *e) HM_MUST_USE;
/* Reads and parses the file. -HM_ENOTFOUND where there is none. */
int checkpoint_read(const char *path, const char *resource, struct checkpoint **out, struct hm_err *e) HM_MUST_USE;

/* Whose resources are whose: ours is named, or begins so. */
struct checkpoint_ours {
	const char *resource, *prefix; /* neither is NULL or "" */
};
/* The same of all entries, but one of a resource that is not ours is left out where it cannot be read. */
int checkpoint_parse_all(const char *text, size_t n, const struct checkpoint_ours *ours, struct checkpoint **out,
			 struct hm_err *e) HM_MUST_USE;
int checkpoint_read_all(const char *path, const struct checkpoint_ours *ours, struct checkpoint **out,
			struct hm_err *e) HM_MUST_USE;
void checkpoint_free(struct checkpoint *c);
HM_DEFINE_AUTO(checkpoint, checkpoint_free);

/* The node's path behind this path of the container, as the answer has it; NULL: none. */
const char *checkpoint_mount_host(const struct checkpoint_entry *entry, const char *container_path);

/* The next entry of `resource` with exactly this set of ids (any order), from *at on; NULL at the end. */
const struct checkpoint_entry *checkpoint_match(const struct checkpoint *c, const char *resource,
						const char *const *ids, size_t id_count, size_t *at);

#endif
