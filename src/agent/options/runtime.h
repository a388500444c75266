/* What the node's kubelet and container runtime can do, by their versions, which the Node object tells. It is kept in a
 * file, so that the next start knows before the API server has been asked: an Allocate may come at once. */
#ifndef HM_AGENT_OPTIONS_RUNTIME_H
#define HM_AGENT_OPTIONS_RUNTIME_H

#include <stdbool.h>

#include "core/err.h"

struct runtime {
	char kubelet[64];    /* "v1.34.4"; "" where not known */
	char container[128]; /* "containerd://2.2.9"; "" likewise */
};

bool runtime_equal(const struct runtime *a, const struct runtime *b);

/* CDI as it comes: containerd from 2.0 (1.7 has it switched off), CRI-O from 1.23. Late binding rests on it. True where
 * the runtime is not known yet; false for one that we do not know. */
bool runtime_does_cdi(const struct runtime *r);

/* Before 1.29 a kubelet drops the CDI devices of an Allocate answer: the annotation is what reaches the runtime. */
bool runtime_wants_annotations(const struct runtime *r);

/* The file's content, all "" where it is not there or cannot be read. */
void runtime_read(const char *path, struct runtime *out);
int runtime_write(const char *path, const struct runtime *r, struct hm_err *e) HM_MUST_USE;

#endif
