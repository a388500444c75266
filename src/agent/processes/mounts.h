/* Which files of the node a process has mounted, by the kernel's list of its mounts alone. No path inside a container
 * is resolved: a file system of its own making (FUSE) could hold us up for ever.
 *
 * A file is named by its file system and its path in it, "8:1 /var/lib/hami-vgpu/alloc/7/usage": the same wherever it
 * is mounted. What was removed is named otherwise (the kernel adds "//deleted"). */
#ifndef HM_AGENT_PROCESSES_MOUNTS_H
#define HM_AGENT_PROCESSES_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "core/cleanup.h"
#include "core/err.h"

/* A container can make many mounts; its first ones, which the runtime made, come first. */
enum { MOUNTS_MAX_BYTES = 1 << 20 };

/* What is mounted, and where in the process's own root. False ends the reading. */
typedef bool mounts_visitor(void *arg, const char *file, const char *at);

/* All mounts of <proc>/<pid>, in the kernel's order. *text is room for it, used again from call to call. False: the
 * process is gone, or may not be looked into. */
bool mounts_visit(const char *proc, const char *pid, struct str *text, mounts_visitor *visit, void *arg);

/* Our own mounts, as they are now: to name the node's files that we have paths of. */
struct own_mounts;
int own_mounts_new(struct own_mounts **out, struct hm_err *e) HM_MUST_USE;
void own_mounts_free(struct own_mounts *o);
HM_DEFINE_AUTO(own_mounts, own_mounts_free);

/* The name of a file or folder of the node's own into *name (cleared first); false where there is none. */
bool own_mounts_name(const struct own_mounts *o, const char *path, struct str *name);

#endif
