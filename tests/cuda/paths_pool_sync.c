/* What a synchronisation makes a pool give back, the container's other processes can have at once: each call that
 * waits. */
#include "fill.h"
#include "paths.h"
#include "views.h"

static CUresult by_context(CUstream stream, CUevent event)
{
	(void)stream;
	(void)event;
	return cuCtxSynchronize();
}
static CUresult by_named_context(CUstream stream, CUevent event)
{
	CUcontext ctx;

	(void)stream;
	(void)event;
	OK(cuCtxGetCurrent(&ctx));
	return cuCtxSynchronize_v2(ctx);
}
static CUresult by_stream(CUstream stream, CUevent event)
{
	(void)event;
	return cuStreamSynchronize(stream);
}
static CUresult by_stream_ptsz(CUstream stream, CUevent event)
{
	(void)event;
	return cuStreamSynchronize_ptsz(stream);
}
static CUresult by_event(CUstream stream, CUevent event)
{
	OK(cuEventRecord(event, stream));
	return cuEventSynchronize(event);
}

/* The other process: its pool has taken a piece; told to go on, it frees and waits for the card. */
static void giver(int sock, CUresult (*wait)(CUstream, CUevent))
{
	CUdeviceptr p;
	CUstream stream;
	CUevent event;
	char go = 1;

	check_use(0);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuMemAllocAsync(&p, 64 * MIB, stream));
	OK(cuStreamSynchronize(stream));
	child_tell(sock, &go, 1, -1);
	(void)child_hear(sock, &go, 1);
	OK(cuMemFreeAsync(p, stream));
	OK(wait(stream, event));
	child_tell(sock, &go, 1, -1);
	child_wait(sock);
}

static void pool_given_back(const char *role)
{
	char go = 1;
	int there = 0;

	NEED(cuMemAllocAsync);
	check_use(0);
	OK(cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 0));
	if (there == 0)
		check_not_available("this card has no memory pools");
	struct child c = child_start(role);

	(void)child_hear(c.sock, &go, 1);
	size_t with = views_match_books(0);

	child_tell(c.sock, &go, 1, -1);
	(void)child_hear(c.sock, &go, 1);
	HOLDS(views_match_books(0) + 64 * MIB <= with, "of %zu only %zu came back", 64 * MIB, with - views_used(0));
	fill_expect_room(0);
	child_end(&c);
}

#define SYNC(name, role_name, wait)                                                                                    \
	static void role_##name(int sock)                                                                              \
	{                                                                                                              \
		giver(sock, wait);                                                                                     \
	}                                                                                                              \
	static void run_##name(void)                                                                                   \
	{                                                                                                              \
		pool_given_back(role_name);                                                                            \
	}
SYNC(context, "sync-context", by_context)
SYNC(stream, "sync-stream", by_stream)
SYNC(event, "sync-event", by_event)
SYNC(stream_ptsz, "sync-stream-ptsz", by_stream_ptsz)
SYNC(named_context, "sync-named-context", by_named_context)

static void run_named_context_if_there(void)
{
	NEED(cuCtxSynchronize_v2);
	run_named_context();
}

const struct path paths_pool_sync[] = {
	{ "pool-back-by-context", run_context, BARE_BREAKS },
	{ "pool-back-by-named-context", run_named_context_if_there, BARE_BREAKS },
	{ "pool-back-by-stream", run_stream, BARE_BREAKS },
	{ "pool-back-by-stream-per-thread", run_stream_ptsz, BARE_BREAKS },
	{ "pool-back-by-event", run_event, BARE_BREAKS },
	{ 0 },
};
const struct role roles_pool_sync[] = {
	{ "sync-context", role_context }, { "sync-named-context", role_named_context },
	{ "sync-stream", role_stream },   { "sync-stream-ptsz", role_stream_ptsz },
	{ "sync-event", role_event },     { 0 },
};
