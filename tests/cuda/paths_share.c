/* Memory that two processes share: charged once, to whoever allocated it. */
#include <unistd.h>

#include "fill.h"
#include "paths.h"
#include "views.h"
#include "vmm.h"

/* The peer of every path here tells what it sees in use of the card: when its context is there, when it has imported,
 * and, once it was told to go on, when it has let go. Then it waits for the end. */
static void done(int sock)
{
	size_t used = check_bare() ? 0 : views_used(0);

	child_tell(sock, &used, sizeof used, -1);
}

static size_t after_peer(struct child *c)
{
	size_t used;

	(void)child_hear(c->sock, &used, sizeof used);
	return used;
}

/* With the importer's context up, memory of `bytes` shared by `share` is charged once; and once it is closed, still;
 * and not any more when its owner frees it. */
static void share(const char *role, size_t bytes, void (*give_away)(struct child *, size_t), void (*take_back)(void))
{
	struct child c = child_start(role);

	after_peer(&c); /* its context is there */
	size_t start = views_match_books(0);

	give_away(&c, bytes);
	size_t seen = after_peer(&c); /* imported */

	HOLDS(check_same(views_match_books(0), start + bytes), "imported: charged %zu for %zu", views_used(0) - start,
	      bytes);
	HOLDS(check_bare() || seen == start + bytes, "the importer sees %zu, the owner %zu", seen, start + bytes);
	fill_expect_room(0);
	child_nod(c.sock);
	(void)after_peer(&c); /* closed */
	HOLDS(check_same(views_match_books(0), start + bytes), "closed by the importer: charged %zu for %zu",
	      views_used(0) - start, bytes);
	take_back();
	HOLDS(check_same(views_match_books(0), start), "freed by the owner: still %zu", views_used(0) - start);
	child_end(&c);
	fill_expect_room(0);
}

static void peer_ready(int sock)
{
	check_use(0);
	done(sock);
}

/* ---- IPC */

static CUdeviceptr shared;

static void give_ipc(struct child *c, size_t bytes)
{
	CUipcMemHandle handle;

	OK(cuMemAlloc_v2(&shared, bytes));
	SUPPORTED(cuIpcGetMemHandle(&handle, shared));
	child_tell(c->sock, &handle, sizeof handle, -1);
}

static void free_shared(void)
{
	OK(cuMemFree_v2(shared));
}

static void import_ipc(int sock, CUresult (*open_handle)(CUdeviceptr *, CUipcMemHandle, unsigned))
{
	CUipcMemHandle handle;
	CUdeviceptr p;

	peer_ready(sock);
	(void)child_hear(sock, &handle, sizeof handle);
	OK(open_handle(&p, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	done(sock);
	child_await(sock);
	OK(cuIpcCloseMemHandle(p));
	done(sock);
	child_wait(sock);
}

static void role_ipc(int sock)
{
	import_ipc(sock, cuIpcOpenMemHandle_v2);
}
static void role_ipc_1(int sock)
{
	import_ipc(sock, cuIpcOpenMemHandle);
}

static void run_ipc(void)
{
	check_use(0);
	share("ipc", fill_piece(), give_ipc, free_shared);
}
static void run_ipc_1(void)
{
	check_use(0);
	share("ipc-1", fill_piece(), give_ipc, free_shared);
}

/* ---- handles by descriptor */

static CUmemGenericAllocationHandle shared_handle;

static void give_handle(struct child *c, size_t bytes)
{
	int fd = -1;

	OK(vmm_create(&shared_handle, bytes, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	OK(cuMemExportToShareableHandle(&fd, shared_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	child_tell(c->sock, &bytes, sizeof bytes, fd);
	close(fd);
}

static void release_shared(void)
{
	OK(cuMemRelease(shared_handle));
}

static void role_handle(int sock)
{
	CUmemGenericAllocationHandle handle;
	size_t bytes = 0;

	peer_ready(sock);
	int fd = child_hear(sock, &bytes, sizeof bytes);

	OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CUdeviceptr at = vmm_map(handle, bytes, 0);

	close(fd);
	done(sock);
	child_await(sock);
	vmm_unmap(at, bytes);
	OK(cuMemRelease(handle));
	done(sock);
	child_wait(sock);
}

static void need_descriptors(void)
{
	int there = 0;

	vmm_need();
	OK(cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
	if (there == 0)
		check_not_available("handles cannot be exported by descriptor here");
}

static void run_handle(void)
{
	need_descriptors();
	share("handle", fill_piece(), give_handle, release_shared);
}

/* A process that imports what it exported has one reference more, and pays once. */
static void run_own_handle(void)
{
	CUmemGenericAllocationHandle handle, again;
	size_t bytes = fill_piece();
	int fd = -1;

	need_descriptors();
	size_t start = views_match_books(0);

	OK(vmm_create(&handle, bytes, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	OK(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	HOLDS(check_same(views_match_books(0), start + bytes), "imported by its owner: %zu", views_used(0) - start);
	OK(cuMemRelease(handle));
	(void)views_match_books(0); /* whether the import keeps the memory is the driver's to say */
	fill_expect_room(0);
	OK(cuMemRelease(again));
	HOLDS(check_same(views_match_books(0), start), "with none left: %zu", views_used(0) - start);
}

/* ---- the same as external memory */

static void role_external(int sock)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = { .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD };
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC buffer = { 0 };
	CUexternalMemory memory;
	CUdeviceptr p;
	size_t bytes = 0;

	peer_ready(sock);
	desc.handle.fd = child_hear(sock, &bytes, sizeof bytes);
	desc.size = buffer.size = bytes;
	CUresult rc = cuImportExternalMemory(&memory, &desc);

	if (rc != CUDA_SUCCESS)
		check_not_available("this driver imports no memory of CUDA's own: %d", rc);
	OK(cuExternalMemoryGetMappedBuffer(&p, memory, &buffer));
	done(sock);
	child_await(sock);
	OK(cuMemFree_v2(p));
	OK(cuDestroyExternalMemory(memory));
	done(sock);
	child_wait(sock);
}

static void run_external(void)
{
	NEED(cuImportExternalMemory);
	need_descriptors();
	share("external", fill_piece(), give_handle, release_shared);
}

/* ---- pools */

static CUmemoryPool pool;

static void give_pool(struct child *c, size_t bytes)
{
	CUmemPoolPtrExportData data;
	int fd = -1;

	OK(cuMemAllocFromPoolAsync(&shared, bytes, pool, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	OK(cuMemPoolExportPointer(&data, shared));
	child_tell(c->sock, &data, sizeof data, fd);
	close(fd);
}

static void free_pooled(void)
{
	OK(cuMemFreeAsync(shared, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemPoolTrimTo(pool, 0));
}

static void role_pool(int sock)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool imported;
	CUdeviceptr p;

	peer_ready(sock);
	int fd = child_hear(sock, &data, sizeof data);

	OK(cuMemPoolImportFromShareableHandle(&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					      0));
	close(fd);
	OK(cuMemPoolImportPointer(&p, imported, &data));
	done(sock);
	child_await(sock);
	OK(cuMemFree_v2(p));
	OK(cuMemPoolDestroy(imported));
	done(sock);
	child_wait(sock);
}

static void run_pool(void)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

	NEED(cuMemPoolExportPointer);
	need_descriptors();
	SUPPORTED(cuMemPoolCreate(&pool, &props));
	share("pool", HM_MAX(fill_piece() / (32 * MIB), (size_t)1) * 32 * MIB, give_pool, free_pooled);
}

const struct path paths_share[] = {
	{ "ipc", run_ipc, BARE_BREAKS },
	{ "ipc-first-version", run_ipc_1, BARE_BREAKS },
	{ "handle-import", run_handle, BARE_BREAKS },
	{ "handle-own-import", run_own_handle, BARE_BREAKS },
	{ "external-memory", run_external, BARE_BREAKS },
	{ "pool-import", run_pool, BARE_BREAKS },
	{ 0 },
};
const struct role roles_share[] = {
	{ "ipc", role_ipc },           { "ipc-1", role_ipc_1 }, { "handle", role_handle },
	{ "external", role_external }, { "pool", role_pool },   { 0 },
};
