/* A small file whole, bounded; never a link, a device or a pipe. (io/file.h is above us.) */
#ifndef HM_HAMIVGPU_READ_FILE_H
#define HM_HAMIVGPU_READ_FILE_H

#include <stddef.h>

#include "base/str.h"
#include "core/err.h"

/* The file `name` in the open folder `dir`; `path` is for messages. -HM_ELIMIT above max_bytes, -HM_ENOTFOUND,
 * -HM_EPERM, -HM_EIO, -HM_ENOMEM; -HM_EPROTO where it is no plain file. */
int read_file_at(int dir, const char *name, const char *path, size_t max_bytes, struct str *out,
		 struct hm_err *e) HM_MUST_USE;

#endif
