/* Whose the processes of the host are: the number of the container whose usage folder they have mounted, remembered for
 * a while, as it is asked for several times a second. A fixed table; a pid that is used again is noticed when the
 * answer is old. Waits for nobody: see agent/processes/mounts.h. */
#ifndef HM_AGENT_PROCESSES_PID_OWNERS_H
#define HM_AGENT_PROCESSES_PID_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

enum { PID_OWNERS = 1024, PID_OWNERS_KEEP_MS = 2000 };

struct pid_owners {
	const char *proc;  /* /proc; another folder in tests */
	const char *alloc; /* the folder of all containers' */
	struct str name;   /* its own, as agent/processes/mounts.h has it; empty: not known yet */
	struct str text;
	struct {
		unsigned pid; /* 0: free */
		uint64_t number;
		uint64_t until_ns;
	} known[PID_OWNERS];
};

void pid_owners_fini(struct pid_owners *o);

/* 0: nobody's, as the processes outside our containers. now: any clock that runs on. */
uint64_t pid_owners_number(struct pid_owners *o, unsigned pid, uint64_t now_ns);

#endif
