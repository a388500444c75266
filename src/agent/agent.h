/* The daemon: its parts, made in order, tied together, run, and taken down in order. */
#ifndef HM_AGENT_AGENT_H
#define HM_AGENT_AGENT_H

#include "agent/options/options.h"
#include "core/err.h"

/* Runs until a signal asks it to end: 0, or why it could not start or go on. AGENT_RUN_AGAIN: the configuration has
 * changed in a way that only a new run with newly read options can follow. Options that can change live are changed in
 * place.
 */
enum { AGENT_RUN_AGAIN = 1 };
int agent_run(struct agent_options *o, struct hm_err *e) HM_MUST_USE;

#endif
