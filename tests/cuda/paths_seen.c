/* What a free gives back the container's other processes see with the next synchronisation, before this one looks at
 * anything itself: where both are of the thread's own default stream. */
#include "fill.h"
#include "paths.h"
#include "views.h"

/* The other process: each time that it is asked, it tells what it sees in use of card 0. */
static void role_looker(int sock)
{
	check_use(0);
	for (;;) {
		size_t used = check_bare() ? 0 : views_used(0);

		child_tell(sock, &used, sizeof used, -1);
		child_await(sock);
	}
}

static size_t seen(struct child *looker)
{
	size_t used = 0;

	(void)child_hear(looker->sock, &used, sizeof used);
	return used;
}

static void run_free_per_thread(void)
{
	CUdeviceptr p;

	NEED(cuMemAllocAsync_ptsz);
	check_use_with_pools();
	struct child looker = child_start("looker");
	size_t start = seen(&looker);

	OK(cuMemAllocAsync_ptsz(&p, 64 * MIB, NULL));
	OK(cuMemFreeAsync_ptsz(p, NULL));
	OK(cuStreamSynchronize_ptsz(NULL));
	child_nod(looker.sock);
	size_t used = seen(&looker);

	HOLDS(check_bare() || used == start, "%zu of what was given back is still seen", used - start);
	child_kill(&looker);
	fill_expect_room(0);
}

const struct path paths_seen[] = {
	{ "pool-seen-per-thread", run_free_per_thread, BARE_BREAKS },
	{ 0 },
};
const struct role roles_seen[] = { { "looker", role_looker }, { 0 } };
