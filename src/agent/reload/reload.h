/* The configuration read again: at SIGHUP, and when one of its files is another. A ConfigMap's volume is swapped as a
 * whole (the link "..data"); a file mounted by subPath never changes in a running pod, whatever is done to the
 * ConfigMap. What is read is compared with what is in force:
 *
 *  - nothing differs: nothing happens
 *  - a file cannot be used, or what it says: the former configuration stays, with an error in the log
 *  - what differs is looked at anew by its readers: changed in place, and told
 *  - anything else: the agent is to be taken down and made anew, in the same process; running pods keep what they have
 */
#ifndef HM_AGENT_RELOAD_RELOAD_H
#define HM_AGENT_RELOAD_RELOAD_H

#include <stdint.h>

#include "agent/options/options.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

struct reload_config {
	struct agent_options *options; /* in force; changed in place */
	/* The options have changed. Negative: they cannot be used after all, and are put back. */
	int (*changed)(void *arg, struct hm_err *e);
	void (*restart)(void *arg);
	void (*refused)(void *arg, const struct hm_err *why);
	void *arg;
};

struct reload;

int reload_new(struct loop *l, const struct reload_config *config, struct reload **out, struct hm_err *e) HM_MUST_USE;
void reload_free(struct reload *r);
HM_DEFINE_AUTO(reload, reload_free);

struct reload_stats {
	uint64_t applied, refused;
	const char *trouble; /* why a file is not used as it stands; "": all are */
};
struct reload_stats reload_stats(const struct reload *r);

/* Reads now. */
void reload_now(struct reload *r);

#endif
