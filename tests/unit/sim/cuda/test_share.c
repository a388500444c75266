#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/macros.h"
#include "fixture.h"

/* Another process, which does on the card what it is asked to: it must be there before cuInit. */
enum op {
	OPEN,
	OPEN_V2,
	CLOSE,
	FREE,
	READ,
	WRITE,
	IMPORT,
	RELEASE,
	MAP,
	POOL_IMPORT,
	POINTER_IMPORT,
	POOL_ALLOC,
	GET_HANDLE,
	ALLOC,
	RESET
};

struct message {
	int op, rc;
	uint64_t value, bytes;
	unsigned char byte;
	union {
		CUipcMemHandle handle;
		CUmemPoolPtrExportData data;
	};
};

static int channel = -1;
static pid_t child = -1;
#define ROOM (ROOM_BYTES - CONTEXT_BYTES) /* the other process has a context too */

static void send_to(int to, const struct message *m, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .room = { 0 } };
	struct iovec part = { (void *)m, sizeof *m };
	struct msghdr h = { .msg_iov = &part, .msg_iovlen = 1 };

	if (fd >= 0) {
		h.msg_control = control.room;
		h.msg_controllen = sizeof control.room;
		control.head = (struct cmsghdr) { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
	}
	if (sendmsg(to, &h, 0) != (ssize_t)sizeof *m)
		_exit(9);
}

static bool receive(int from, struct message *m, int *fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = { m, sizeof *m };
	struct msghdr h = {
		.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.room, .msg_controllen = sizeof control.room
	};

	*fd = -1;
	if (recvmsg(from, &h, 0) != (ssize_t)sizeof *m)
		return false;
	if (CMSG_FIRSTHDR(&h) != NULL)
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&h)), sizeof *fd);
	return true;
}

static CUresult map(struct message *m)
{
	CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr at;
	CUresult rc = cuMemAddressReserve(&at, m->bytes, 0, 0, 0);

	if (rc == CUDA_SUCCESS)
		rc = cuMemMap(at, m->bytes, 0, m->value, 0);
	if (rc == CUDA_SUCCESS)
		rc = cuMemSetAccess(at, m->bytes, &access, 1);
	m->value = at;
	return rc;
}

static CUresult obey(struct message *m, int fd)
{
	static CUmemoryPool pool;
	CUdeviceptr ptr = 0;
	CUresult rc;

	switch (m->op) {
	case OPEN: rc = cuIpcOpenMemHandle(&ptr, m->handle, 1); break;
	case OPEN_V2: rc = cuIpcOpenMemHandle_v2(&ptr, m->handle, 1); break;
	case CLOSE: return cuIpcCloseMemHandle(m->value);
	case FREE: return cuMemFree_v2(m->value);
	case READ: return cuMemcpyDtoH_v2(&m->byte, m->value, 1);
	case WRITE: return cuMemsetD8_v2(m->value, m->byte, m->bytes);
	case IMPORT:
		rc = cuMemImportFromShareableHandle(&ptr, (void *)(intptr_t)fd,
						    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
		break;
	case RELEASE: return cuMemRelease(m->value);
	case MAP: return map(m);
	case POOL_IMPORT:
		return cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)fd,
							  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	case POINTER_IMPORT: rc = cuMemPoolImportPointer(&ptr, pool, &m->data); break;
	case POOL_ALLOC: return cuMemAllocFromPoolAsync(&ptr, 1, pool, NULL);
	case GET_HANDLE: return cuIpcGetMemHandle(&m->handle, m->value);
	case ALLOC: rc = cuMemAlloc_v2(&ptr, m->bytes); break;
	default: return cuDevicePrimaryCtxReset_v2(0);
	}
	m->value = ptr;
	return rc;
}

static void serve(int with)
{
	struct message m;
	CUcontext ctx;
	int fd;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	m.rc = cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&ctx, 0) != CUDA_SUCCESS ||
	       cuCtxSetCurrent(ctx) != CUDA_SUCCESS;
	send_to(with, &m, -1);
	while (receive(with, &m, &fd)) {
		m.rc = obey(&m, fd);
		if (fd >= 0)
			close(fd);
		send_to(with, &m, -1);
	}
	_exit(0);
}

static void start_child(void)
{
	int pair[2], fd;
	struct message m;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		close(pair[0]);
		serve(pair[1]);
	}
	close(pair[1]);
	channel = pair[0];
	assert_true(receive(channel, &m, &fd));
	assert_int_equal(m.rc, 0);
}

static int group_up(void **state)
{
	node_up(state);
	start_child();
	assert_cuda(cuInit(0));
	return 0;
}

static int group_down(void **state)
{
	if (channel >= 0)
		close(channel);
	waitpid(child, NULL, 0);
	return node_down(state);
}

static int up(void **state)
{
	CUcontext ctx;

	(void)state;
	assert_cuda(cuDevicePrimaryCtxRetain(&ctx, 0));
	assert_cuda(cuCtxSetCurrent(ctx));
	assert_int_equal(free_bytes(), ROOM);
	return 0;
}

static int down(void **state)
{
	(void)state;
	assert_int_equal(free_bytes(), ROOM);
	assert_cuda(cuDevicePrimaryCtxRelease_v2(0));
	assert_cuda(cuCtxSetCurrent(NULL));
	return 0;
}

static CUresult ask(struct message *m, int fd)
{
	int none;

	send_to(channel, m, fd);
	assert_true(receive(channel, m, &none));
	return m->rc;
}

static CUresult ask_value(enum op op, uint64_t value)
{
	return ask(&(struct message) { .op = (int)op, .value = value }, -1);
}

static unsigned char there(CUdeviceptr at)
{
	struct message m = { .op = READ, .value = at };

	assert_cuda(ask(&m, -1));
	return m.byte;
}

static unsigned char here(CUdeviceptr at)
{
	unsigned char byte;

	assert_cuda(cuMemcpyDtoH_v2(&byte, at, 1));
	return byte;
}

/* Both see the same bytes; all is charged once. */
static void ipc(void **state HM_UNUSED)
{
	static const size_t sizes[] = { 1000, 20 * MIB };

	for (size_t i = 0; i < HM_COUNT(sizes); i++) {
		CUdeviceptr pad, a, got;
		struct message m = { .op = i == 0 ? OPEN : OPEN_V2 };
		size_t left, size;

		assert_cuda(cuMemAlloc_v2(&pad, 512)); /* so that a small one does not start its page */
		assert_cuda(cuMemAlloc_v2(&a, sizes[i]));
		left = free_bytes();
		assert_cuda(cuMemsetD8_v2(a, 3, sizes[i]));
		assert_cuda(cuIpcGetMemHandle(&m.handle, a));
		assert_int_equal(here(a), 3); /* moved to where others can see it */
		CUipcMemHandle handle = m.handle;

		assert_int_equal(cuIpcOpenMemHandle_v2(&got, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
		assert_int_equal(cuIpcOpenMemHandle_v2(&got, handle, 0), CUDA_ERROR_INVALID_VALUE);
		assert_cuda(ask(&m, -1));
		uint64_t theirs = m.value;

		assert_int_equal(there(theirs), 3);
		assert_cuda(ask(&(struct message) { .op = WRITE, .value = theirs, .bytes = sizes[i], .byte = 8 }, -1));
		assert_int_equal(here(a + sizes[i] - 1), 8);
		assert_int_equal(ask(&(struct message) { .op = WRITE, .value = theirs, .bytes = 20 * MIB + 1 }, -1),
				 CUDA_ERROR_INVALID_VALUE);
		assert_cuda(cuMemsetD8_v2(a, 0, sizes[i])); /* zeroing shared pages is seen as well */
		assert_int_equal(there(theirs), 0);
		assert_int_equal(free_bytes(), left);
		m = (struct message) { .op = OPEN, .handle = handle };
		assert_cuda(ask(&m, -1)); /* once more: the same address */
		assert_int_equal(m.value, theirs);
		assert_int_equal(ask_value(FREE, theirs), CUDA_ERROR_INVALID_VALUE); /* not by this call */
		assert_cuda(ask_value(CLOSE, theirs));
		assert_int_equal(there(theirs), 0);
		assert_cuda(ask_value(CLOSE, theirs));
		assert_int_equal(ask_value(CLOSE, theirs), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(ask_value(READ, theirs), CUDA_ERROR_INVALID_VALUE);
		assert_int_equal(free_bytes(), left);
		assert_cuda(cuMemGetAddressRange_v2(NULL, &size, a));
		assert_cuda(cuMemFree_v2(a));
		assert_cuda(cuMemFree_v2(pad));
		m = (struct message) { .op = OPEN, .handle = handle };
		assert_int_equal(ask(&m, -1), CUDA_ERROR_INVALID_VALUE); /* what it named is gone */
		assert_int_equal(free_bytes(), ROOM);
	}
}

static void ipc_of_what_has_none(void **state HM_UNUSED)
{
	CUdeviceptr managed, pooled, plain;
	CUipcMemHandle handle;
	unsigned char capable = 9;

	assert_cuda(cuMemAllocManaged(&managed, 10, CU_MEM_ATTACH_GLOBAL));
	assert_cuda(cuMemAllocAsync(&pooled, 10, NULL));
	assert_cuda(cuMemAlloc_v2(&plain, 1024));
	assert_int_equal(cuIpcGetMemHandle(&handle, managed), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuIpcGetMemHandle(&handle, pooled), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuIpcGetMemHandle(&handle, plain + 512), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuIpcCloseMemHandle(plain), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, plain));
	assert_int_equal(capable, 1);
	assert_cuda(cuPointerGetAttribute(&capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, pooled));
	assert_int_equal(capable, 0);
	assert_int_equal(cuIpcGetMemHandle(NULL, plain), CUDA_ERROR_INVALID_VALUE);
	memset(&handle, 7, sizeof handle);
	struct message m = { .op = OPEN, .handle = handle };

	assert_int_equal(ask(&m, -1), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFree_v2(managed));
	assert_cuda(cuMemFreeAsync(pooled, NULL));
	assert_cuda(cuMemFree_v2(plain));
	assert_cuda(cuCtxSynchronize());
}

static const CUmemAllocationProp shareable = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
};

static void physical_memory(void **state HM_UNUSED)
{
	CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemAllocationProp plain = shareable, got;
	CUmemGenericAllocationHandle h, other, again;
	struct message m = { .op = IMPORT };
	CUdeviceptr at;
	int fd = -1, supported = 0;

	assert_cuda(
		cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 0));
	assert_int_equal(supported, 1);
	assert_cuda(cuMemCreate(&h, 6 * MIB, &shareable, 0));
	assert_int_equal(free_bytes(), ROOM - 6 * MIB);
	assert_cuda(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	assert_int_equal(cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuMemExportToShareableHandle(NULL, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemExportToShareableHandle(&supported, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(ask(&m, fd));
	uint64_t theirs = m.value;

	m = (struct message) { .op = MAP, .value = theirs, .bytes = 6 * MIB };
	assert_cuda(ask(&m, -1));
	assert_cuda(ask(&(struct message) { .op = WRITE, .value = m.value, .bytes = 6 * MIB, .byte = 4 }, -1));
	assert_int_equal(free_bytes(), ROOM - 6 * MIB);
	assert_cuda(cuMemAddressReserve(&at, 6 * MIB, 0, 0, 0));
	assert_cuda(cuMemMap(at, 6 * MIB, 0, h, 0));
	assert_cuda(cuMemSetAccess(at, 6 * MIB, &access, 1));
	assert_int_equal(here(at + 6 * MIB - 1), 4);
	/* Imported where it was made: another handle, no more memory. */
	assert_cuda(
		cuMemImportFromShareableHandle(&again, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	assert_int_not_equal(again, h);
	assert_cuda(cuMemGetAllocationPropertiesFromHandle(&got, again));
	assert_int_equal(got.requestedHandleTypes, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	assert_int_equal(free_bytes(), ROOM - 6 * MIB);
	assert_cuda(cuMemRelease(again));
	assert_cuda(cuMemRelease(h));
	assert_int_equal(free_bytes(), ROOM - 6 * MIB);
	assert_cuda(cuMemUnmap(at, 6 * MIB));
	assert_int_equal(free_bytes(), ROOM); /* the other's mapping holds nothing of ours */
	assert_int_equal(there(m.value), 4);
	assert_cuda(cuMemAddressFree(at, 6 * MIB));
	assert_cuda(ask_value(RELEASE, theirs));
	assert_int_equal(free_bytes(), ROOM);
	assert_int_equal(close(fd), 0); /* the exporter's descriptor was its own to close */
	plain.requestedHandleTypes = 0;
	assert_cuda(cuMemCreate(&other, PAGE, &plain, 0));
	assert_int_equal(cuMemExportToShareableHandle(&fd, other, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemRelease(other));
	plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	assert_int_equal(cuMemCreate(&other, PAGE, &plain, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(
		cuMemImportFromShareableHandle(&other, (void *)(intptr_t)0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(free_bytes(), ROOM);
}

static void pools(void **state HM_UNUSED)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	struct message m = { .op = POINTER_IMPORT };
	CUmemoryPool pool, closed;
	CUmemPoolPtrExportData data;
	CUdeviceptr a, pad, other;
	int fd = -1;

	assert_cuda(cuMemPoolCreate(&pool, &props));
	props.handleTypes = 0;
	assert_cuda(cuMemPoolCreate(&closed, &props));
	assert_cuda(cuMemAllocFromPoolAsync(&pad, 512, pool, NULL));
	assert_cuda(cuMemAllocFromPoolAsync(&a, MIB, pool, NULL));
	assert_cuda(cuMemsetD8_v2(a, 5, MIB));
	assert_cuda(cuMemPoolExportToShareableHandle(&fd, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	assert_cuda(ask(&(struct message) { .op = POOL_IMPORT }, fd));
	close(fd);
	assert_int_equal(ask_value(POOL_ALLOC, 0), CUDA_ERROR_INVALID_VALUE); /* it is not theirs */
	assert_cuda(cuMemPoolExportPointer(&m.data, a));
	data = m.data;
	assert_cuda(ask(&m, -1));
	assert_int_equal(there(m.value), 5);
	assert_int_equal(ask_value(CLOSE, m.value), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(free_bytes(), ROOM - 32 * MIB);
	assert_cuda(ask_value(FREE, m.value));
	assert_int_equal(free_bytes(), ROOM - 32 * MIB);
	assert_int_equal(cuMemPoolImportPointer(&other, pool, &data), CUDA_ERROR_INVALID_VALUE); /* not imported */
	assert_int_equal(cuMemPoolExportToShareableHandle(&fd, closed, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemAllocFromPoolAsync(&other, 512, closed, NULL));
	assert_int_equal(cuMemPoolExportPointer(&data, other), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuMemFreeAsync(other, NULL));
	assert_cuda(cuMemFreeAsync(pad, NULL));
	assert_cuda(cuMemFreeAsync(a, NULL));
	assert_cuda(cuMemPoolDestroy(pool));
	assert_cuda(cuMemPoolDestroy(closed));
	assert_cuda(cuCtxSynchronize());
}

static void external_memory(void **state HM_UNUSED)
{
	CUDA_EXTERNAL_MEMORY_HANDLE_DESC desc = { .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .size = 3 * MIB };
	CUDA_EXTERNAL_MEMORY_BUFFER_DESC part = { .offset = MIB, .size = MIB }, whole = { .size = 3 * MIB };
	CUexternalMemory e;
	CUdeviceptr a, b;
	int fd = memfd_create("vulkan", MFD_CLOEXEC);
	unsigned char byte = 0;

	assert_int_equal(ftruncate(fd, 3 * MIB), 0);
	int watch = dup(fd);

	desc.handle.fd = fd;
	assert_cuda(cuImportExternalMemory(&e, &desc));
	assert_cuda(cuExternalMemoryGetMappedBuffer(&a, e, &part));
	assert_cuda(cuExternalMemoryGetMappedBuffer(&b, e, &whole));
	assert_int_equal(free_bytes(), ROOM); /* the other interface's */
	assert_cuda(cuMemsetD8_v2(a, 6, MIB));
	assert_int_equal(pread(watch, &byte, 1, 2 * MIB - 1), 1);
	assert_int_equal(byte, 6);
	assert_int_equal(here(b + MIB), 6);
	assert_int_equal(cuMemsetD8_v2(a, 6, MIB + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuExternalMemoryGetMappedBuffer(NULL, e, &part), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuExternalMemoryGetMappedBuffer(&a, e, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuImportExternalMemory(NULL, &desc), CUDA_ERROR_INVALID_VALUE);
	part.offset = 1;
	assert_int_equal(cuExternalMemoryGetMappedBuffer(&a, e, &part), CUDA_ERROR_INVALID_VALUE);
	part.offset = MIB;
	part.size = 2 * MIB + 1;
	assert_int_equal(cuExternalMemoryGetMappedBuffer(&a, e, &part), CUDA_ERROR_INVALID_VALUE);
	assert_cuda(cuDestroyExternalMemory(e));
	assert_int_equal(close(fd), -1); /* it was the driver's */
	assert_int_equal(cuDestroyExternalMemory(e), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(here(b + MIB), 6);
	assert_cuda(cuMemFree_v2(a));
	assert_cuda(cuMemFree_v2(b));
	assert_int_equal(cuMemFree_v2(b), CUDA_ERROR_INVALID_VALUE);
	desc.handle.fd = watch;
	desc.size = 3 * MIB + 1;
	assert_int_equal(cuImportExternalMemory(&e, &desc), CUDA_ERROR_INVALID_VALUE);
	desc.type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_DMABUF_FD;
	assert_int_equal(cuImportExternalMemory(&e, &desc), CUDA_ERROR_NOT_SUPPORTED);
	close(watch);
}

/* The importer's context goes, then the owner: what is charged goes with the owner alone. */
static void deaths(void **state HM_UNUSED)
{
	struct message m = { .op = ALLOC, .bytes = 10 * MIB };
	CUdeviceptr ours, mine;

	assert_cuda(ask(&m, -1));
	m.op = GET_HANDLE;
	assert_cuda(ask(&m, -1));
	assert_cuda(cuIpcOpenMemHandle(&ours, m.handle, 1));
	assert_cuda(cuMemAlloc_v2(&mine, 4 * MIB));
	struct message back = { .op = OPEN_V2 };

	assert_cuda(cuIpcGetMemHandle(&back.handle, mine));
	assert_cuda(ask(&back, -1));
	assert_int_equal(free_bytes(), ROOM - 14 * MIB);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	/* All of the dead process's, and its context; ours stays ours, mapped there or not. */
	for (int i = 0; i < 500 && free_bytes() != ROOM_BYTES - 4 * MIB; i++)
		usleep(10000);
	assert_int_equal(free_bytes(), ROOM_BYTES - 4 * MIB);
	assert_cuda(cuMemsetD8_v2(ours, 1, 10 * MIB)); /* the mapping outlives its owner, and counts for nobody */
	assert_cuda(cuIpcCloseMemHandle(ours));
	assert_cuda(cuMemFree_v2(mine));
	assert_int_equal(free_bytes(), ROOM_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)
		TEST(ipc),   TEST(ipc_of_what_has_none), TEST(physical_memory),
		TEST(pools), TEST(external_memory),      cmocka_unit_test_setup(deaths, up),
	};
	return cmocka_run_group_tests(tests, group_up, group_down);
}
