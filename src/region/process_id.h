/* Who a process is: pid, start time and pid namespace, so that a reused pid is another process. Raw system calls, no
 * stdio, no heap, errno kept: used inside other people's programs. */
#ifndef HM_REGION_PROCESS_ID_H
#define HM_REGION_PROCESS_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct process_id {
	uint32_t pid;
	uint64_t start_time;    /* clock ticks since boot; 0: /proc does not say */
	uint32_t pid_namespace; /* inode; 1: /proc does not say */
};

struct process_id process_id_self(void);

/* Does this process of our own pid namespace live? Where /proc hides it, a living pid counts as the process: charge is
 * kept rather than returned too early. */
bool process_id_alive(uint32_t pid, uint64_t start_time);

/* From the text of /proc/<pid>/stat. False: not such a text. `dead`: a zombie without living threads. */
bool process_stat_parse(const char *text, size_t n, uint64_t *start_time, bool *dead);

/* From the text of /proc/<pid>/status: the pid that the process has in its innermost namespace, the last number of the
 * line "NSpid:\t<host>\t...\t<inner>". False: no such line. */
bool process_status_inner_pid(const char *text, size_t n, uint64_t *pid);

/* Reads at most cap bytes of a file; the count, or a negative errno. Async-signal-safe. */
long read_small_file(const char *path, char *out, size_t cap);

#endif
