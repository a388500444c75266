/* Whole files: read with a bound, replaced so that a reader sees the old or the new one and a crash loses neither. */
#ifndef HM_IO_FILE_H
#define HM_IO_FILE_H

#include <stddef.h>
#include <sys/types.h>

#include "base/str.h"
#include "core/err.h"

/* The file's bytes into *out (cleared first). -HM_ELIMIT above max_bytes, -HM_ENOTFOUND, -HM_EPERM, -HM_EIO,
 * -HM_ENOMEM. */
int file_read(const char *path, size_t max_bytes, struct str *out, struct hm_err *e) HM_MUST_USE;

/* All of them, to what is open and blocks, whatever signals come between. -1 and errno where that fails. */
int file_write_all(int fd, const void *bytes, size_t n) HM_MUST_USE;

/* Writes "<path>.tmp-<pid>", fsyncs it, renames it onto path, fsyncs the folder. On failure nothing is left. */
int file_replace(const char *path, const void *bytes, size_t n, mode_t mode, struct hm_err *e) HM_MUST_USE;

/* Removes from a folder what file_replace and file_swap of killed processes left of files whose names begin so. */
void file_remove_temporaries(const char *folder, const char *prefix);

/* As file_replace without the fsyncs: a reader sees the old or the new file, a power cut may lose both. For files that
 * are written anew whenever they are needed. */
int file_swap(const char *path, const void *bytes, size_t n, mode_t mode, struct hm_err *e) HM_MUST_USE;

/* The folder and its missing parents. An existing folder is fine (its mode stays). */
int file_mkdirs(const char *path, mode_t mode, struct hm_err *e) HM_MUST_USE;

/* Removes a folder with all in it, however deep, without following links, also where somebody still writes to it (then
 * it may fail, but touches nothing outside). Absent is fine. */
int file_remove_tree(const char *path, struct hm_err *e) HM_MUST_USE;

/* The same, at most so many names at a time (10 to 20 us each): -HM_EAGAIN where there are more. */
int file_remove_some(const char *path, unsigned most, struct hm_err *e) HM_MUST_USE;

#endif
