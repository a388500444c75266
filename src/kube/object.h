/* What every object of the API has: its metadata, read and checked once. */
#ifndef HM_KUBE_OBJECT_H
#define HM_KUBE_OBJECT_H

#include "core/err.h"
#include "io/json.h"

enum {
	KUBE_NAME_BYTES = 254,                     /* a DNS subdomain, and the NUL */
	KUBE_KEY_BYTES = 64 + 1 + KUBE_NAME_BYTES, /* a DNS label, '/', a name */
	KUBE_VERSION_BYTES = 128,                  /* of a resourceVersion; opaque, today a number of up to 20 digits */
};

struct kube_object {
	char key[KUBE_KEY_BYTES]; /* "namespace/name", or "name" where it has no namespace */
	const char *name_space;   /* "" where it has none; this and all below are borrowed from the tree */
	const char *name, *uid, *resource_version;
	const struct cJSON *tree; /* the whole object; NULL where only its metadata is known any more */
};

/* What the API server says, before it is parsed: managedFields, which nobody here reads, lose what is in them. A user
 * may nest them more deeply than is parsed, and would so end the list of all objects for everybody. */
void kube_trim_text(char *text, size_t n);

/* metadata.resourceVersion of an object, a list or a bookmark: *out is not empty and fits in KUBE_VERSION_BYTES.
 * -HM_EINVAL with the place in the message. */
int kube_version_read(const struct json_at *meta, const char **out, struct hm_err *e) HM_MUST_USE;

/* -HM_EPROTO where it is no object, or metadata lacks name, uid or resourceVersion, or one is too long. */
int kube_object_read(const struct cJSON *tree, struct kube_object *out, struct hm_err *e) HM_MUST_USE;

#endif
