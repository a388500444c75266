/* libvgpu.so on the node: content-addressed, so that running containers keep theirs when a new one comes. */
#ifndef HM_AGENT_CONTAINER_LIBRARY_H
#define HM_AGENT_CONTAINER_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

/* Copies `source` to <folder>/libvgpu.so.<first 16 hex digits of its SHA-256> (write, fsync, rename) where it is not
 * there yet, and puts that path into out. */
int library_install(const char *source, const char *folder, char *out, size_t cap, struct hm_err *e) HM_MUST_USE;

/* Removes the other libvgpu.so.* of the folder for which in_use says no. Trouble is logged and left. */
void library_remove_unused(const char *folder, const char *current, bool (*in_use)(const char *path, void *arg),
			   void *arg);

/* Where --libvgpu points by default: the library that was installed with the running program, else the one built with
 * it (which need not be there). */
int library_default_source(char *out, size_t cap, struct hm_err *e) HM_MUST_USE;

#endif
