/* Who still lives: which containers, seen from the host's /proc. A container lives as long as a process has its usage
 * folder mounted; what the kubelet forgot is found this way too. Needs the host's pid namespace to see other pods. A
 * container all of whose processes left its root by chroot is not seen. */
#ifndef HM_AGENT_PROCESSES_HOLDERS_H
#define HM_AGENT_PROCESSES_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "region/region.h"

struct holders;

/* One look at /proc (another folder in tests). Processes that may not be looked into are left out. Waits for nobody:
 * see agent/processes/mounts.h. */
int holders_scan(const char *proc, struct holders **out, struct hm_err *e) HM_MUST_USE;
void holders_free(struct holders *h);
HM_DEFINE_AUTO(holders, holders_free);

/* True where a live process has this host file or folder mounted at one of the container's paths: usage folder or
 * libvgpu.so. */
bool holders_mounted(const struct holders *h, const char *host_path);
size_t holders_containers(const struct holders *h); /* roots with a usage folder of somebody's */

/* Answers region_reap's question, whether a process lives, by one look at /proc, taken when it is first asked. */
struct holder_pids;
int holder_pids_new(const char *proc, struct holder_pids **out, struct hm_err *e) HM_MUST_USE;
void holder_pids_free(struct holder_pids *h);
HM_DEFINE_AUTO(holder_pids, holder_pids_free);
/* True where that look saw a process in another pid namespace than ours; false without hostPID. */
bool holder_pids_sees_containers(const struct holder_pids *h);
bool holder_pids_alive(const struct region_process *p, void *pids);

#endif
