/* Which usage folder the processes of the host have mounted, remembered for a while: they are asked for several times a
 * second. A fixed table; a pid that is used again is noticed when the answer is old. */
#ifndef HM_AGENT_PID_OWNERS_H
#define HM_AGENT_PID_OWNERS_H

#include "agent/holders.h"

enum { PID_OWNERS = 1024, PID_OWNERS_KEEP_MS = 2000 };

struct pid_owners {
	const char *proc; /* /proc; another folder in tests */
	struct {
		unsigned pid; /* 0: free */
		bool has;
		uint64_t until_ns;
		struct file_identity folder;
	} known[PID_OWNERS];
};

/* False: it has none, as the processes outside our containers. now: any clock that runs on. */
bool pid_owners_folder(struct pid_owners *o, unsigned pid, uint64_t now_ns, struct file_identity *out);

#endif
