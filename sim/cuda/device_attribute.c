#include "sim/cuda/multicast.h"
#include "sim/cuda/state.h"

/* What a card answers: a fixed value, or a field of its description times `factor`. Attributes of the interface that
 * are not here are 0: what they ask for is not there. */
struct attribute {
	CUdevice_attribute attribute;
	int fixed;
	size_t field; /* offset of a uint32_t in struct sim_card_info; 0: fixed */
	int factor;
};
#define FIELD(name) offsetof(struct sim_card_info, name)
_Static_assert(FIELD(name) == 0, "offset 0 is the name, never a number");

static const struct attribute attributes[] = {
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 0, FIELD(shared_per_block), 1 },
	{ CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536 },
	{ CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32 },
	{ CU_DEVICE_ATTRIBUTE_MAX_PITCH, 0x7fffffff },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536 },
	{ CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 0, FIELD(sm_clock_mhz), 1000 },
	{ CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512 },
	{ CU_DEVICE_ATTRIBUTE_GPU_OVERLAP, 1 },
	{ CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0, FIELD(sms), 1 },
	{ CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT },
	{ CU_DEVICE_ATTRIBUTE_SURFACE_ALIGNMENT, 512 },
	{ CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1 },
	{ CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 0, FIELD(ecc), 1 },
	{ CU_DEVICE_ATTRIBUTE_PCI_BUS_ID, 0, FIELD(pci_bus), 1 },
	{ CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0, FIELD(pci_device), 1 },
	{ CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0, FIELD(pci_domain), 1 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 0, FIELD(memory_clock_mhz), 1000 },
	{ CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 0, FIELD(bus_width_bits), 1 },
	{ CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 0, FIELD(threads_per_sm), 1 },
	{ CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2 },
	{ CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0, FIELD(cc_major), 1 },
	{ CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0, FIELD(cc_minor), 1 },
	{ CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 0, FIELD(shared_per_sm), 1 },
	{ CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 0, FIELD(registers_per_sm), 1 },
	{ CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1 },
	{ CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1 },
	{ CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0, FIELD(shared_per_block_optin), 1 },
	{ CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 0, FIELD(blocks_per_sm), 1 },
	{ CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1 },
	{ CU_DEVICE_ATTRIBUTE_DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED, 1 },
};

static int value_of(const struct sim_card_info *info, CUdevice_attribute attribute)
{
	if (attribute == CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)
		return (int)info->l2_bytes;
	if (attribute == CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)
		return info->cc_major >= 6; /* Pascal was the first whose page faults the driver could serve */
	for (size_t i = 0; i < HM_COUNT(attributes); i++) {
		const struct attribute *a = &attributes[i];

		if (a->attribute != attribute)
			continue;
		if (a->field == 0)
			return a->fixed;
		return (int)*(const uint32_t *)(const void *)((const char *)info + a->field) * a->factor;
	}
	return 0;
}

CU_EXPORT CUresult cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice dev)
{
	struct cu_device *device;

	if (out == NULL || attribute < 1 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = attribute == CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED ? cu_multicast_supported((unsigned)dev)
								    : value_of(cu_info((unsigned)dev), attribute);
	return cu_leave(CUDA_SUCCESS);
}
