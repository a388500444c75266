/* Made-up lines of /proc/<pid>/mountinfo, for programs that look at whose mounts those are. */
#ifndef HM_TESTS_HARNESS_MOUNTS_H
#define HM_TESTS_HARNESS_MOUNTS_H

/* "<n> 1 8:1 /where/it/lies <at> ro - ext4 x rw": the file or folder `path`, by findmnt's word, mounted at `at`. A line
 * of its own, ended; good for the next call. */
const char *mounts_line(const char *path, const char *at);

#endif
