/* What is different between the options in force and those read anew, and what it takes to put them into force. */
#ifndef HM_AGENT_RELOAD_OPTIONS_CHANGE_H
#define HM_AGENT_RELOAD_OPTIONS_CHANGE_H

#include "agent/options/options.h"
#include "base/str.h"
#include "core/err.h"

enum options_change {
	OPTIONS_SAME,
	OPTIONS_LIVE,    /* whoever reads the options sees the new values: sizes, counts, scaling, log level, filter */
	OPTIONS_RESTART, /* parts are made of the old ones: they must be made anew */
};

/* The names of what differs go to *names, with spaces between (cleared first). Both were read by agent_options_read and
 * settled. */
enum options_change options_change_of(struct agent_options *old, struct agent_options *fresh, struct str *names);

/* Of a change that is live: the values, in place. `fresh` then has the old ones, so that a second call undoes it. */
void options_change_swap(struct agent_options *old, struct agent_options *fresh);

/* The options as `old` was read, once more: *fresh shares old's texts, and needs options_change_fini. A config.json
 * that was good and is no more is an error here, as any file is that cannot be used. */
int options_change_read(const struct agent_options *old, struct agent_options *fresh, struct hm_err *e) HM_MUST_USE;
void options_change_fini(struct agent_options *fresh);

#endif
