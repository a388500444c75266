#include <stdio.h>
#include <string.h>

#include "abi/cuda_v1.h"
#include "sim/cuda/state.h"

CU_EXPORT CUresult cuDeviceGetCount(int *out)
{
	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	*out = (int)cu.count;
	return cu_leave(CUDA_SUCCESS);
}

/* A valid device's facts, for calls that only read them. */
static CUresult look(CUdevice dev, const void *out, const struct sim_card_info **info)
{
	struct cu_device *device;

	if (out == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter_device(dev, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	*info = cu_info((unsigned)dev);
	return cu_leave(CUDA_SUCCESS);
}

CU_EXPORT CUresult cuDeviceGet(CUdevice *out, int ordinal)
{
	const struct sim_card_info *info;
	CUresult rc = look(ordinal, out, &info);

	if (rc == CUDA_SUCCESS)
		*out = ordinal;
	return rc;
}

CU_EXPORT CUresult cuDeviceGetName(char *out, int cap, CUdevice dev)
{
	const struct sim_card_info *info;
	CUresult rc = look(dev, cap > 0 ? out : NULL, &info);

	if (rc == CUDA_SUCCESS)
		snprintf(out, (size_t)cap, "%s", info->name);
	return rc;
}

/* "GPU-" and 32 hexadecimal digits, dashes between. */
static void uuid_bytes(const char *uuid, CUuuid *out)
{
	size_t digits = 0;

	memset(out, 0, sizeof *out);
	for (const char *p = uuid + strcspn(uuid, "-"); *p != '\0' && digits < 2 * sizeof out->bytes; p++) {
		unsigned value;

		if (*p >= '0' && *p <= '9')
			value = (unsigned)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			value = (unsigned)(*p - 'a') + 10;
		else
			continue;
		unsigned char *byte = (unsigned char *)&out->bytes[digits / 2];

		*byte = (unsigned char)((unsigned)*byte << 4 | value);
		digits++;
	}
}

static CUresult get_uuid(CUuuid *out, CUdevice dev)
{
	const struct sim_card_info *info;
	CUresult rc = look(dev, out, &info);

	if (rc == CUDA_SUCCESS)
		uuid_bytes(info->uuid, out);
	return rc;
}

CU_EXPORT CUresult cuDeviceGetUuid(CUuuid *out, CUdevice dev)
{
	return get_uuid(out, dev);
}

CU_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice dev)
{
	return get_uuid(out, dev);
}

/* The driver's own part is not the program's to use: CUDA shows less than NVML. */
CU_EXPORT CUresult cuDeviceTotalMem_v2(size_t *out, CUdevice dev)
{
	const struct sim_card_info *info;
	CUresult rc = look(dev, out, &info);

	if (rc == CUDA_SUCCESS)
		*out = info->memory_bytes - info->reserved_bytes;
	return rc;
}

/* The CUDA 2 interface cannot say more than 4 GiB. */
CU_EXPORT CUresult cuDeviceTotalMem(unsigned *out, CUdevice dev)
{
	const struct sim_card_info *info;
	CUresult rc = look(dev, out, &info);

	if (rc == CUDA_SUCCESS)
		*out = (unsigned)HM_MIN(info->memory_bytes - info->reserved_bytes, (uint64_t)UINT32_MAX);
	return rc;
}

CU_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
	const struct sim_card_info *info;
	CUresult rc = look(dev, minor != NULL ? major : NULL, &info);

	if (rc != CUDA_SUCCESS)
		return rc;
	*major = (int)info->cc_major;
	*minor = (int)info->cc_minor;
	return rc;
}

CU_EXPORT CUresult cuDeviceGetPCIBusId(char *out, int cap, CUdevice dev)
{
	const struct sim_card_info *info;
	CUresult rc = look(dev, cap > 0 ? out : NULL, &info);

	if (rc == CUDA_SUCCESS)
		snprintf(out, (size_t)cap, "%04X:%02X:%02X.0", info->pci_domain, info->pci_bus, info->pci_device);
	return rc;
}

/* "domain:bus:device.function", "domain:bus:device" or "bus:device.function", hexadecimal. */
static bool parse_pci(const char *text, unsigned *domain, unsigned *bus, unsigned *device)
{
	unsigned long part[3];
	int count = 0, used = 0;

	if (sscanf(text, "%8lx:%2lx:%2lx%n", &part[0], &part[1], &part[2], &used) == 3 && used > 0) {
		count = 3;
	} else if (sscanf(text, "%2lx:%2lx%n", &part[1], &part[2], &used) == 2 && used > 0) {
		part[0] = 0;
		count = 2;
	}
	if (count == 0 || (text[used] != '\0' && strcmp(text + used, ".0") != 0))
		return false;
	*domain = (unsigned)part[0];
	*bus = (unsigned)part[1];
	*device = (unsigned)part[2];
	return true;
}

CU_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *pci)
{
	unsigned domain, bus, device;

	if (out == NULL || pci == NULL || !parse_pci(pci, &domain, &bus, &device))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult rc = cu_enter();

	if (rc != CUDA_SUCCESS)
		return rc;
	for (unsigned i = 0; i < cu.count; i++) {
		const struct sim_card_info *info = cu_info(i);

		if (info->pci_domain == domain && info->pci_bus == bus && info->pci_device == device) {
			*out = (CUdevice)i;
			return cu_leave(CUDA_SUCCESS);
		}
	}
	return cu_leave(CUDA_ERROR_INVALID_DEVICE);
}
