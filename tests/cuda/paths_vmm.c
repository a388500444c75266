/* Virtual memory management: handles, their references and mappings; multicast objects. */
#include "vmm.h"

#include "fill.h"
#include "paths.h"
#include "views.h"

static CUresult take_handle(uint64_t *out, size_t bytes)
{
	CUmemGenericAllocationHandle handle = 0;
	CUresult rc = vmm_create(&handle, bytes, 0, 0);

	*out = handle;
	return rc;
}

static CUresult give_handle(uint64_t what)
{
	return cuMemRelease(what);
}

static void run_create(void)
{
	vmm_need();
	fill_and_empty_here(0, &(struct way) { .take = take_handle, .give = give_handle });
}

/* Mapped, then released: the mapping alone keeps the memory. What a range needs to be unmapped is noted aside. */
static struct {
	CUdeviceptr at;
	size_t bytes;
} mapped[512];

static CUresult take_mapped(uint64_t *out, size_t bytes)
{
	CUmemGenericAllocationHandle handle;
	CUresult rc = vmm_create(&handle, bytes, 0, 0);
	size_t i = 0;

	if (rc != CUDA_SUCCESS)
		return rc;
	while (mapped[i].at != 0)
		i++;
	mapped[i].at = vmm_map(handle, bytes, 0);
	mapped[i].bytes = bytes;
	OK(cuMemRelease(handle));
	*out = i;
	return CUDA_SUCCESS;
}

static CUresult give_mapped(uint64_t what)
{
	vmm_unmap(mapped[what].at, mapped[what].bytes);
	mapped[what].at = 0;
	return CUDA_SUCCESS;
}

static void run_mapped(void)
{
	vmm_need();
	fill_and_empty_here(0, &(struct way) { .take = take_mapped, .give = give_mapped });
}

/* A reference that was retained keeps the memory when the first one and the mapping are gone. */
static void run_retain(void)
{
	CUmemGenericAllocationHandle handle, again;
	size_t bytes = fill_piece();

	NEED(cuMemRetainAllocationHandle);
	vmm_need();
	size_t start = views_match_books(0);

	OK(vmm_create(&handle, bytes, 0, 0));
	CUdeviceptr at = vmm_map(handle, bytes, 0);

	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
	OK(cuMemRelease(handle));
	vmm_unmap(at, bytes);
	HOLDS(check_same(views_match_books(0), start + bytes), "with one reference left: %zu", views_used(0) - start);
	fill_expect_room(0);
	OK(cuMemRelease(again));
	HOLDS(check_same(views_match_books(0), start), "with none left: %zu", views_used(0) - start);
	fill_expect_room(0);
}

/* Two mappings of one handle: charged once, until the last one goes. */
static void run_mapped_twice(void)
{
	CUmemGenericAllocationHandle handle;
	size_t bytes = fill_piece();

	vmm_need();
	size_t start = views_match_books(0);

	OK(vmm_create(&handle, bytes, 0, 0));
	CUdeviceptr one = vmm_map(handle, bytes, 0), two = vmm_map(handle, bytes, 0);

	OK(cuMemRelease(handle));
	vmm_unmap(one, bytes);
	HOLDS(check_same(views_match_books(0), start + bytes), "one mapping left: %zu", views_used(0) - start);
	fill_expect_room(0);
	vmm_unmap(two, bytes);
	HOLDS(check_same(views_match_books(0), start), "none left: %zu", views_used(0) - start);
}

/* Memory of another card is charged there, whatever context is current. */
static void run_other_card(void)
{
	CUmemGenericAllocationHandle handle;

	check_use(1);
	vmm_need(); /* card 0's context is current now */
	size_t here = views_match_books(0), there = views_match_books(1), bytes = fill_piece();

	OK(vmm_create(&handle, bytes, 1, 0));
	HOLDS(check_same(views_match_books(0), here) && check_same(views_match_books(1), there + bytes),
	      "on card 1: %zu", views_used(1) - there);
	CUresult rc = vmm_create(&handle, check_limit(), 1, 0);

	HOLDS(rc == CUDA_ERROR_OUT_OF_MEMORY, "card 1's limit and more: %d", rc);
	OK(cuMemRelease(handle));
	HOLDS(check_same(views_match_books(1), there), "after the release: %zu", views_used(1) - there);
}

static CUmemGenericAllocationHandle multicast_of(size_t bytes)
{
	CUmulticastObjectProp prop = { .numDevices = 2,
				       .size = bytes,
				       .handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
	CUmemGenericAllocationHandle object;

	SUPPORTED(cuMulticastCreate(&object, &prop));
	OK(cuMulticastAddDevice(object, 0));
	OK(cuMulticastAddDevice(object, 1));
	return object;
}

static size_t multicast_piece(void)
{
	CUmulticastObjectProp prop = { .numDevices = 2, .size = 2 * MIB };
	size_t granularity = 0;
	int there = 0;

	NEED(cuMulticastCreate);
	vmm_need();
	check_use(1);
	check_use(0);
	OK(cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
	if (there == 0)
		check_not_available("this card has no multicast");
	OK(cuMulticastGetGranularity(&granularity, &prop, CU_MULTICAST_GRANULARITY_RECOMMENDED));
	return HM_MAX(fill_piece() / granularity, (size_t)1) * granularity;
}

/* Bound memory stays on the card when its handle is released, until it is unbound or the object goes. */
static void run_multicast(void)
{
	size_t bytes = multicast_piece(), start = views_match_books(0);
	CUmemGenericAllocationHandle object = multicast_of(bytes), handle;

	OK(vmm_create(&handle, bytes, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	OK(cuMulticastBindMem(object, 0, handle, 0, bytes, 0));
	OK(cuMemRelease(handle));
	HOLDS(check_same(views_match_books(0), start + bytes), "bound and released: %zu", views_used(0) - start);
	fill_expect_room(0);
	OK(cuMulticastUnbind(object, 0, 0, bytes));
	HOLDS(check_same(views_match_books(0), start), "unbound: %zu", views_used(0) - start);
	OK(vmm_create(&handle, bytes, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	OK(cuMulticastBindMem(object, 0, handle, 0, bytes, 0));
	OK(cuMemRelease(handle));
	OK(cuMemRelease(object));
	HOLDS(check_same(views_match_books(0), start), "with the object gone: %zu", views_used(0) - start);
	fill_expect_room(0);
}

/* The same by the address of a mapping. */
static void run_multicast_address(void)
{
	size_t bytes = multicast_piece(), start = views_match_books(0);
	CUmemGenericAllocationHandle object = multicast_of(bytes), handle;

	NEED(cuMulticastBindAddr);
	OK(vmm_create(&handle, bytes, 0, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	CUdeviceptr at = vmm_map(handle, bytes, 0);

	OK(cuMulticastBindAddr(object, 0, at, bytes, 0));
	OK(cuMemRelease(handle));
	vmm_unmap(at, bytes);
	HOLDS(check_same(views_match_books(0), start + bytes), "bound, unmapped and released: %zu",
	      views_used(0) - start);
	fill_expect_room(0);
	OK(cuMulticastUnbind(object, 0, 0, bytes));
	HOLDS(check_same(views_match_books(0), start), "unbound: %zu", views_used(0) - start);
	OK(cuMemRelease(object));
}

const struct path paths_vmm[] = {
	{ "vmm", run_create, BARE_BREAKS },
	{ "vmm-released-while-mapped", run_mapped, BARE_BREAKS },
	{ "vmm-retain", run_retain, BARE_BREAKS },
	{ "vmm-mapped-twice", run_mapped_twice, BARE_BREAKS },
	{ "vmm-other-card", run_other_card, BARE_BREAKS },
	{ "multicast", run_multicast, BARE_BREAKS },
	{ "multicast-address", run_multicast_address, BARE_BREAKS },
	{ 0 },
};
