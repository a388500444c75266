#include "agent/pid_owners.h"

bool pid_owners_folder(struct pid_owners *o, unsigned pid, uint64_t now_ns, struct file_identity *out)
{
	__typeof__(&o->known[0]) at = &o->known[pid % PID_OWNERS];

	if (at->pid != pid || at->until_ns <= now_ns) {
		at->pid = pid;
		at->has = holder_usage_folder(o->proc, pid, &at->folder);
		at->until_ns = now_ns + PID_OWNERS_KEEP_MS * UINT64_C(1000000);
	}
	*out = at->folder;
	return at->has;
}
