/* MIG: the mode and the profiles; instances are not modelled. */
#include <string.h>

#include "core/fmt.h"
#include "sim/nvml/handle.h"

enum { MAX_INSTANCES = 7 };

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
	CARD(device, current);
	if (pending == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->info.mig_capable == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = *pending = c->info.mig_enabled != 0 ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

ANSWER(nvmlDeviceGetMaxMigDeviceCount, c->info.mig_enabled != 0 ? MAX_INSTANCES : 0)
ANSWER(nvmlDeviceIsMigDeviceHandle, 0)

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned index, struct nvml_device **mig)
{
	CARD(device, mig);
	if (index >= MAX_INSTANCES)
		return NVML_ERROR_INVALID_ARGUMENT;
	return c->info.mig_enabled != 0 ? NVML_ERROR_NOT_FOUND : NVML_ERROR_NOT_SUPPORTED;
}

static int find_profile(const struct sim_card *c, unsigned profile, const struct sim_mig_profile **out)
{
	if (profile >= NVML_GPU_INSTANCE_PROFILE_COUNT)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < c->info.mig_profile_count; i++)
		if (c->info.mig_profiles[i].id == profile) {
			*out = &c->info.mig_profiles[i];
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, unsigned profile,
					struct nvml_gpu_instance_profile *info)
{
	const struct sim_mig_profile *p = NULL;
	int r;
	CARD(device, info);

	r = find_profile(c, profile, &p);
	if (r == NVML_SUCCESS)
		*info = (struct nvml_gpu_instance_profile) { .id = p->profile_id,
							     .slices = p->slices,
							     .instances = p->count,
							     .multiprocessors = p->sms,
							     .copy_engines = p->copy_engines,
							     .decoders = p->decoders,
							     .memory_mib = p->memory_mib };
	return r;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, unsigned profile,
					 struct nvml_gpu_instance_profile_v2 *info)
{
	const struct sim_mig_profile *p = NULL;
	int r;
	CARD(device, info);

	if (info->version != NVML_GPU_INSTANCE_PROFILE_V2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	r = find_profile(c, profile, &p);
	if (r != NVML_SUCCESS)
		return r;
	*info = (struct nvml_gpu_instance_profile_v2) { .version = NVML_GPU_INSTANCE_PROFILE_V2,
							.id = p->profile_id,
							.slices = p->slices,
							.instances = p->count,
							.multiprocessors = p->sms,
							.copy_engines = p->copy_engines,
							.decoders = p->decoders,
							.memory_mib = p->memory_mib };
	hm_fmt(info->name, sizeof info->name, "MIG %s", p->name);
	return NVML_SUCCESS;
}
