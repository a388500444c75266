#include "vmm.h"

void vmm_need(void)
{
	int there = 0;

	NEED(cuMemCreate);
	check_use(0);
	OK(cuDeviceGetAttribute(&there, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	if (there == 0)
		check_not_available("this card has no virtual memory management");
}

CUresult vmm_create(CUmemGenericAllocationHandle *out, size_t bytes, int card, int handle_types)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .requestedHandleTypes = handle_types,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, card } };

	return cuMemCreate(out, bytes, &prop, 0);
}

CUdeviceptr vmm_map(CUmemGenericAllocationHandle handle, size_t bytes, int card)
{
	CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, card }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUdeviceptr at;

	OK(cuMemAddressReserve(&at, bytes, 0, 0, 0));
	OK(cuMemMap(at, bytes, 0, handle, 0));
	OK(cuMemSetAccess(at, bytes, &access, 1));
	return at;
}

void vmm_unmap(CUdeviceptr at, size_t bytes)
{
	OK(cuMemUnmap(at, bytes));
	OK(cuMemAddressFree(at, bytes));
}
