#include "agent/container/library_clean.h"

#include "agent/container/library.h"
#include "agent/processes/holders.h"
#include "base/log.h"

/* Late binding keeps old libraries that a container has mounted, or may mount: a spec of a container not yet made. */
static bool library_in_use(const char *path, void *arg)
{
	return holders_mounted(arg, path);
}

/* Classic answers lie in the kubelet's checkpoint and name the library by its path: a container that is between two
 * starts has nothing mounted and still needs it there. */
static bool any_classic(const struct claims *claims)
{
	for (size_t i = 0; i < claims_count(claims); i++)
		if (claims_at(claims, i)->state != CLAIM_ENDED && claims_at(claims, i)->cdi[0] == '\0')
			return true;
	return false;
}

void library_clean(const struct agent_paths *paths, const char *current, const struct claims *claims)
{
	hm_auto(holders) *seen = NULL;
	struct hm_err e;

	if (any_classic(claims))
		return;
	if (holders_scan("/proc", &seen, &e) < 0) {
		log_warn("cannot see which libvgpu are in use; all are kept", KV_ERR(&e));
		return;
	}
	library_remove_unused(paths->lib.s, current, library_in_use, seen);
}
