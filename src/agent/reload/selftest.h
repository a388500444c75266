/* Can late binding work here? A spec written where the container runtime does not look is worse than none: every pod
 * would wait for ever. Seen at start, refused with what to mount. */
#ifndef HM_AGENT_RELOAD_SELFTEST_H
#define HM_AGENT_RELOAD_SELFTEST_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "core/err.h"

struct selftest_facts {
	const char *mountinfo; /* text of /proc/self/mountinfo */
	size_t mountinfo_n;
	bool in_pod;                                  /* KUBERNETES_SERVICE_HOST is set */
	const char *cdi_dir, *plugin_dir, *state_dir; /* resolved: no symbolic links in them */
};

/* -HM_EINVAL where we run in a container (in a pod, or on an overlay root with the kubelet's folder mounted in from
 * elsewhere) and the CDI or the state folder is the container's own. Pure. */
int selftest_check(const struct selftest_facts *f, bool late, struct hm_err *e) HM_MUST_USE;

/* What an agent in a container does where not all is mounted from the node: without the CDI folder it binds classic,
 * without the state folder it keeps its state in a folder below the kubelet's plugin folder, which it always has. Pure;
 * the state folder counts only where it is the default one. */
struct selftest_choice {
	bool classic, state_below_plugins;
};
struct selftest_choice selftest_choose(const struct selftest_facts *f);

/* Settles what the options leave open on this machine: --binding=auto becomes late or classic, and the default state
 * folder another, each with a word in the log. After options were read, each time. */
int selftest_settle(struct agent_options *o, struct hm_err *e) HM_MUST_USE;

/* Makes our folders where they are missing, and selftest_check with this process's facts. */
int selftest_run(const struct agent_options *o, const struct agent_paths *p, struct hm_err *e) HM_MUST_USE;

#endif
