/* The daemon: its parts, made in order, tied together, run, and taken down in order. */
#ifndef HM_AGENT_AGENT_H
#define HM_AGENT_AGENT_H

#include "agent/options.h"
#include "core/err.h"

/* Runs until SIGTERM or SIGINT. 0, or why it could not start or go on. */
int agent_run(const struct agent_options *o, struct hm_err *e) HM_MUST_USE;

#endif
