/* Bodies of patches of metadata: annotations and labels set or removed, and nothing else touched. The same text is a
 * JSON merge patch (KUBE_MERGE_PATCH) and a strategic merge patch (KUBE_STRATEGIC_PATCH). */
#ifndef HM_KUBE_PATCH_H
#define HM_KUBE_PATCH_H

#include <stddef.h>

#include "core/err.h"

struct kube_patch_value {
	const char *key;
	const char *value; /* NULL: removed */
};

struct kube_patch {
	/* Preconditions; NULL: none. KUBE_CONFLICT where the object is another one or has changed meanwhile. */
	const char *uid, *resource_version;
	const struct kube_patch_value *annotations, *labels;
	size_t annotation_count, label_count;
};

/* *out is freed by the caller. -HM_EINVAL where a value is not UTF-8 (JSON cannot say it), -HM_ENOMEM. */
int kube_patch_text(const struct kube_patch *patch, char **out, struct hm_err *e) HM_MUST_USE;

#endif
