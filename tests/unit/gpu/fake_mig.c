/* The fake's MIG: a table of instances a card, any placement that a profile lists and nobody has. */
#include <stdio.h>
#include <string.h>

#include "abi/nvml_mig.h"
#include "unit/gpu/fake_nvml.h"

#pragma GCC visibility push(default)

extern struct fake fake;

/* A GPU instance's handle is its place; a compute instance's and a MIG device's the same place, told apart by type. */
static struct fake_card *owner(const void *handle, struct fake_mig **mig)
{
	for (unsigned i = 0; i < FAKE_CARDS; i++) {
		struct fake_card *c = &fake.cards[i];

		if ((const char *)handle >= (const char *)c->migs &&
		    (const char *)handle < (const char *)(c->migs + FAKE_MIGS)) {
			*mig = (struct fake_mig *)(void *)handle;
			return c;
		}
	}
	return NULL;
}

static struct fake_card *card_of(struct nvml_device *device)
{
	return (struct fake_card *)(void *)device;
}

static const struct fake_profile *profile(const struct fake_card *c, unsigned id)
{
	for (unsigned i = 0; i < FAKE_PROFILES; i++)
		if (c->profiles[i].slices > 0 && c->profiles[i].id == id)
			return &c->profiles[i];
	return NULL;
}

#define FAULT(card)                                                                                                    \
	do {                                                                                                           \
		int result_ = fake_answer(__func__, card);                                                             \
		if (result_ != NVML_SUCCESS)                                                                           \
			return result_;                                                                                \
	} while (0)

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
	FAULT(device);
	*current = card_of(device)->mig;
	*pending = card_of(device)->mig_pending;
	return NVML_SUCCESS;
}

int nvmlDeviceSetMigMode(struct nvml_device *device, unsigned mode, int *activation)
{
	FAULT(device);
	*activation = card_of(device)->activation;
	card_of(device)->mig_pending = mode;
	if (*activation == NVML_SUCCESS)
		card_of(device)->mig = mode;
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, unsigned number,
					struct nvml_gpu_instance_profile *info)
{
	const struct fake_profile *p = number < FAKE_PROFILES ? &card_of(device)->profiles[number] : NULL;

	FAULT(device);
	if (p == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (p->slices == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (struct nvml_gpu_instance_profile) { .id = p->id,
						     .slices = p->slices,
						     .instances = p->instances,
						     .multiprocessors = 14 * p->slices,
						     .memory_mib = p->memory_mib };
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, unsigned number,
					 struct nvml_gpu_instance_profile_v2 *info)
{
	const struct fake_profile *p = &card_of(device)->profiles[number];

	FAULT(device);
	snprintf(info->name, sizeof info->name, "MIG %s", p->name);
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstancePossiblePlacements_v2(struct nvml_device *device, unsigned id,
						  struct nvml_gpu_instance_placement *out, unsigned *count)
{
	const struct fake_profile *p = profile(card_of(device), id);

	FAULT(device);
	for (*count = 0; *count < p->starts; (*count)++)
		out[*count] = (struct nvml_gpu_instance_placement) { *count * p->size, p->size };
	return NVML_SUCCESS;
}

int nvmlDeviceCreateGpuInstanceWithPlacement(struct nvml_device *device, unsigned id,
					     const struct nvml_gpu_instance_placement *at,
					     struct nvml_gpu_instance **out)
{
	struct fake_card *c = card_of(device);
	struct fake_mig *free_place = NULL;

	FAULT(device);
	for (unsigned i = 0; i < FAKE_MIGS; i++) {
		if (!c->migs[i].gi)
			free_place = free_place == NULL ? &c->migs[i] : free_place;
		else if (at->start < c->migs[i].start + c->migs[i].size && c->migs[i].start < at->start + at->size)
			return NVML_ERROR_INSUFFICIENT_RESOURCES;
	}
	*free_place = (struct fake_mig) { .gi = true, .id = id, .start = at->start, .size = at->size };
	free_place->number = (unsigned)(free_place - c->migs) + 3;
	*out = (struct nvml_gpu_instance *)(void *)free_place;
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstances(struct nvml_device *device, unsigned id, struct nvml_gpu_instance **out, unsigned *count)
{
	struct fake_card *c = card_of(device);

	FAULT(device);
	*count = 0;
	for (unsigned i = 0; i < FAKE_MIGS; i++)
		if (c->migs[i].gi && c->migs[i].id == id)
			out[(*count)++] = (struct nvml_gpu_instance *)(void *)&c->migs[i];
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceById(struct nvml_device *device, unsigned number, struct nvml_gpu_instance **out)
{
	struct fake_card *c = card_of(device);

	FAULT(device);
	for (unsigned i = 0; i < FAKE_MIGS; i++)
		if (c->migs[i].gi && c->migs[i].number == number) {
			*out = (struct nvml_gpu_instance *)(void *)&c->migs[i];
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance, struct nvml_gpu_instance_info *info)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(instance, &m);

	FAULT(c);
	*info = (struct nvml_gpu_instance_info) {
		(struct nvml_device *)(void *)c, m->number, m->id, { m->start, m->size }
	};
	return NVML_SUCCESS;
}

int nvmlGpuInstanceDestroy(struct nvml_gpu_instance *instance)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(instance, &m);

	FAULT(c);
	if (m->ci)
		return NVML_ERROR_IN_USE;
	m->gi = false;
	return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *instance, unsigned number, unsigned engine,
						 struct nvml_compute_instance_profile *info)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(instance, &m);
	unsigned slices = number + 1; /* as far as the tests go */

	FAULT(c);
	if (engine != 0 || slices > profile(c, m->id)->slices)
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (struct nvml_compute_instance_profile) { .id = 100 + number, .slices = slices, .instances = 1 };
	return NVML_SUCCESS;
}

int nvmlGpuInstanceCreateComputeInstance(struct nvml_gpu_instance *instance, unsigned id,
					 struct nvml_compute_instance **out)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(instance, &m);

	FAULT(c);
	m->ci = true;
	m->slices = id - 99;
	*out = (struct nvml_compute_instance *)(void *)m;
	return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstances(struct nvml_gpu_instance *instance, unsigned id,
				       struct nvml_compute_instance **out, unsigned *count)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(instance, &m);

	FAULT(c);
	*count = m->ci && m->slices == id - 99;
	if (*count > 0)
		*out = (struct nvml_compute_instance *)(void *)m;
	return NVML_SUCCESS;
}

int nvmlComputeInstanceDestroy(struct nvml_compute_instance *instance)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(instance, &m);

	FAULT(c);
	if (m->busy)
		return NVML_ERROR_IN_USE;
	m->ci = false;
	return NVML_SUCCESS;
}

/* ---- MIG devices */

int nvmlDeviceGetMaxMigDeviceCount(struct nvml_device *device, unsigned *count)
{
	FAULT(device);
	*count = FAKE_MIGS;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned index, struct nvml_device **out)
{
	FAULT(device);
	if (!card_of(device)->migs[index].ci)
		return NVML_ERROR_NOT_FOUND;
	*out = (struct nvml_device *)(void *)&card_of(device)->migs[index];
	return NVML_SUCCESS;
}

int fake_mig_uuid(struct nvml_device *device, char *uuid, unsigned length)
{
	struct fake_mig *m = NULL;

	if (owner(device, &m) == NULL)
		return -1;
	snprintf(uuid, length, "MIG-%u", m->number);
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(struct nvml_device *device, unsigned *id)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(device, &m);

	FAULT(c);
	*id = m->number;
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(struct nvml_device *device, unsigned *id)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(device, &m);

	FAULT(c);
	*id = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *device, struct nvml_device_attributes *out)
{
	struct fake_mig *m = NULL;
	struct fake_card *c = owner(device, &m);
	const struct fake_profile *p;

	FAULT(c);
	p = profile(c, m->id);
	*out = (struct nvml_device_attributes) { .gpu_instance_slices = p->slices,
						 .compute_instance_slices = m->slices,
						 .memory_mib = p->memory_mib };
	return NVML_SUCCESS;
}
