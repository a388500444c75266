/* For nodes that keep HAMi's vGPUmonitor: its folder of containers, <folder>/<pod UID>_<container>/, with a file for
 * each active claim (agent/processes/hami_file.h), brought up to date as often as the monitor looks. */
#ifndef HM_AGENT_PROCESSES_HAMI_MONITOR_H
#define HM_AGENT_PROCESSES_HAMI_MONITOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/claims/claims.h"
#include "agent/options/paths.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

enum { HAMI_MONITOR_EVERY_MS = 5000 };

struct hami_monitor;

/* The folder is made where missing. Paths and claims are borrowed. */
int hami_monitor_new(struct loop *l, const char *folder, const struct agent_paths *paths, const struct claims *claims,
		     struct hami_monitor **out, struct hm_err *e) HM_MUST_USE;
void hami_monitor_free(struct hami_monitor *m);
HM_DEFINE_AUTO(hami_monitor, hami_monitor_free);

/* One round now: files are written, those of ended claims removed. How many were written. */
size_t hami_monitor_round(struct hami_monitor *m);
/* What the driver's samples found the container at work on a card since they began, or began anew: as a shares_teller.
 * Its launches are known by that, and where there is none by what libvgpu charges, which is nothing without a limit. */
void hami_monitor_note_busy(void *monitor, uint64_t number, const char *uuid, uint64_t busy_ns);
/* True where the monitor's last word is that this container may not launch. */
bool hami_monitor_holds(const struct hami_monitor *m, uint64_t number);

#endif
