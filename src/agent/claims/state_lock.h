/* One agent for one state folder: two would give the same Allocate numbers and clean up behind each other's containers.
 * A lock of the kernel's, gone with the process however it ends. */
#ifndef HM_AGENT_CLAIMS_STATE_LOCK_H
#define HM_AGENT_CLAIMS_STATE_LOCK_H

#include <signal.h>
#include <stdint.h>

#include "core/err.h"

enum { STATE_LOCK_WAIT_MS = 5000 }; /* for a predecessor that is ending */

/* Makes the folder where it is missing, and holds the lock while *fd (close-on-exec) is open. -HM_EEXIST where another
 * agent still has it after wait_ms; 1 where a signal of state_lock_signals came meanwhile, which the caller has
 * blocked: the first process of a pod has no default action to end it. Waits; called before there is a loop. */
int state_lock(const char *folder, uint32_t wait_ms, int *fd, struct hm_err *e) HM_MUST_USE;

/* Those that ask us to end: SIGTERM, SIGINT, SIGQUIT. */
void state_lock_signals(sigset_t *out);

#endif
