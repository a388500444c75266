/* MIG instances of the described cards. Numbers and UUIDs are made as the NVML made them that HAMi's answers were
 * recorded with: GPU instances are counted by card from 1 and never again, compute instances are all 0, and a UUID says
 * card, number and profile. */
#include <stdio.h>
#include <string.h>

#include "described_nvml.h"

static struct instance {
	struct nvml_device *card; /* NULL: free */
	unsigned id, profile;
	struct nvml_gpu_instance_placement at;
	int computes;
	char uuid[64];
} instances[CARDS][MIG_DEVICES];
static unsigned made[CARDS];

/* Handles of an instance, its compute instance and its MIG device are all the struct itself. */
static struct instance *instance_of(void *handle)
{
	return handle;
}

const char *described_mig_uuid(struct nvml_device *device)
{
	const char *at = (const char *)(void *)device, *begin = (const char *)instances;

	return at >= begin && at < begin + sizeof instances ? instance_of(device)->uuid : NULL;
}

#pragma GCC visibility push(default)

int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, unsigned *number)
{
	(void)device;
	*number = MIG_DEVICES;
	return NVML_SUCCESS;
}

int nvmlDeviceCreateGpuInstanceWithPlacement(struct nvml_device *device, unsigned id,
					     const struct nvml_gpu_instance_placement *at,
					     struct nvml_gpu_instance **out)
{
	unsigned card = described_index(device);
	struct instance *spot = NULL;

	for (struct instance *i = instances[card]; i < instances[card] + MIG_DEVICES; i++) {
		if (i->card == NULL)
			spot = i;
		else if (at->start < i->at.start + i->at.size && i->at.start < at->start + at->size)
			return NVML_ERROR_INSUFFICIENT_RESOURCES;
	}
	if (spot == NULL || described_profile(id) == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*spot = (struct instance) { .card = device, .id = ++made[card], .profile = id, .at = *at };
	snprintf(spot->uuid, sizeof spot->uuid, "MIG-%08x-%04x-5000-8000-%012x", card, spot->id, id);
	*out = (struct nvml_gpu_instance *)(void *)spot;
	return NVML_SUCCESS;
}

int nvmlGpuInstanceDestroy(struct nvml_gpu_instance *instance)
{
	instance_of(instance)->card = NULL;
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstances(struct nvml_device *device, unsigned id, struct nvml_gpu_instance **out, unsigned *number)
{
	*number = 0;
	for (size_t i = 0; i < MIG_DEVICES; i++) {
		struct instance *it = &instances[described_index(device)][i];

		if (it->card != NULL && it->profile == id)
			out[(*number)++] = (struct nvml_gpu_instance *)(void *)it;
	}
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceById(struct nvml_device *device, unsigned id, struct nvml_gpu_instance **out)
{
	for (size_t i = 0; i < MIG_DEVICES; i++) {
		struct instance *it = &instances[described_index(device)][i];

		*out = (struct nvml_gpu_instance *)(void *)it;
		if (it->card != NULL && it->id == id)
			return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance, struct nvml_gpu_instance_info *info)
{
	const struct instance *i = instance_of(instance);

	*info = (struct nvml_gpu_instance_info) { i->card, i->id, i->profile, i->at };
	return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *instance, unsigned number, unsigned engine,
						 struct nvml_compute_instance_profile *info)
{
	const struct profile *p = described_profile(instance_of(instance)->profile);

	if (number != instance_of(instance)->profile || engine != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED ||
	    p == NULL)
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (struct nvml_compute_instance_profile) { .id = number, .slices = p->slices, .instances = 1 };
	return NVML_SUCCESS;
}

int nvmlGpuInstanceCreateComputeInstance(struct nvml_gpu_instance *instance, unsigned id,
					 struct nvml_compute_instance **out)
{
	(void)id;
	instance_of(instance)->computes = 1;
	*out = (struct nvml_compute_instance *)(void *)instance;
	return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstances(struct nvml_gpu_instance *instance, unsigned id,
				       struct nvml_compute_instance **out, unsigned *number)
{
	(void)id;
	*number = instance_of(instance)->computes != 0;
	*out = (struct nvml_compute_instance *)(void *)instance;
	return NVML_SUCCESS;
}

int nvmlComputeInstanceDestroy(struct nvml_compute_instance *instance)
{
	instance_of(instance)->computes = 0;
	return NVML_SUCCESS;
}

/* ---- MIG devices */

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned index, struct nvml_device **out)
{
	struct instance *i = &instances[described_index(device)][index];

	*out = (struct nvml_device *)(void *)i;
	return i->card != NULL && i->computes != 0 ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetGpuInstanceId(struct nvml_device *mig, unsigned *id)
{
	*id = instance_of(mig)->id;
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(struct nvml_device *mig, unsigned *id)
{
	(void)mig;
	*id = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *mig, struct nvml_device_attributes *out)
{
	const struct profile *p = described_profile(instance_of(mig)->profile);

	*out = (struct nvml_device_attributes) { .gpu_instance_slices = p->slices,
						 .compute_instance_slices = p->slices,
						 .memory_mib = p->mib };
	return NVML_SUCCESS;
}
