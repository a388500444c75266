/* MIG: the mode, profiles, and MIG devices as what reads them sees them. Instances are made in mig_instance.c. */
#include <string.h>

#include "core/fmt.h"
#include "sim/lib/sim_mig.h"
#include "sim/lib/sim_visible.h"
#include "sim/nvml/mig.h"

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
	CARD(device, current);
	if (pending == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->info.mig_capable == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = atomic_load(&c->mig_mode) != 0 ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
	*pending = atomic_load(&c->mig_pending) != 0 ? NVML_DEVICE_MIG_ENABLE : NVML_DEVICE_MIG_DISABLE;
	return NVML_SUCCESS;
}

int nvmlDeviceSetMigMode(struct nvml_device *device, unsigned mode, int *activation)
{
	struct sim_reply reply;
	int r;
	CARD(device, activation);

	if (mode != NVML_DEVICE_MIG_DISABLE && mode != NVML_DEVICE_MIG_ENABLE)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = mig_ask((struct sim_request) { .op = SIM_OP_MIG_MODE, .card = number, .a = mode }, &reply);
	*activation = (int)reply.b;
	return r;
}

ANSWER(nvmlDeviceGetMaxMigDeviceCount, atomic_load(&c->mig_mode) != 0 ? SIM_MIG_INSTANCES : 0)

/* ---- MIG devices */

int nvmlDeviceGetMigDeviceHandleByIndex(struct nvml_device *device, unsigned index, struct nvml_device **mig)
{
	CARD(device, mig);
	if (index >= SIM_MIG_INSTANCES)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (atomic_load(&c->mig_mode) == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	if (atomic_load(&c->mig_cis[index].live) == 0 || !sim_visible_shows_mig(sim_node(), number, index))
		return NVML_ERROR_NOT_FOUND;
	*mig = mig_handle_of(number, index);
	return NVML_SUCCESS;
}

int nvmlDeviceIsMigDeviceHandle(struct nvml_device *device, unsigned *is)
{
	DEVICE(device, is);
	*is = m != NULL;
	return NVML_SUCCESS;
}

int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *mig, struct nvml_device **device)
{
	DEVICE(mig, device);
	if (m == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*device = handle_of(number);
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceId(struct nvml_device *mig, unsigned *id)
{
	DEVICE(mig, id);
	if (m == NULL)
		return NVML_ERROR_NOT_SUPPORTED;
	*id = c->mig_gis[m->gi].id;
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeInstanceId(struct nvml_device *mig, unsigned *id)
{
	DEVICE(mig, id);
	if (m == NULL)
		return NVML_ERROR_NOT_SUPPORTED;
	*id = m->id;
	return NVML_SUCCESS;
}

int nvmlDeviceGetAttributes_v2(struct nvml_device *mig, struct nvml_device_attributes *attributes)
{
	const struct sim_mig_profile *p;
	DEVICE(mig, attributes);

	if (m == NULL)
		return NVML_ERROR_NOT_SUPPORTED;
	p = &c->info.mig_profiles[c->mig_gis[m->gi].profile];
	*attributes = (struct nvml_device_attributes) { .multiprocessors = p->sms * m->slices / p->slices,
							.copy_engines = p->copy_engines,
							.decoders = p->decoders,
							.gpu_instance_slices = p->slices,
							.compute_instance_slices = m->slices,
							.memory_mib = p->memory_mib };
	return NVML_SUCCESS;
}

/* ---- Profiles */

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

/* Placements and what is left, by the driver's number. */
#define PROFILE(device, out)                                                                                           \
	const struct sim_mig_profile *p = NULL;                                                                        \
	CARD(device, out);                                                                                             \
                                                                                                                       \
	p = sim_mig_profile(c, profile_id);                                                                            \
	if (p == NULL)                                                                                                 \
		return NVML_ERROR_INVALID_ARGUMENT;                                                                    \
	if (atomic_load(&c->mig_mode) == 0)                                                                            \
	return NVML_ERROR_NOT_SUPPORTED

static void put_placements(const struct sim_mig_profile *p, struct nvml_gpu_instance_placement *out, unsigned *count)
{
	for (unsigned i = 0; i < p->start_count; i++)
		out[i] = (struct nvml_gpu_instance_placement) { p->starts[i], p->size };
	*count = p->start_count;
}

int nvmlDeviceGetGpuInstancePossiblePlacements(struct nvml_device *device, unsigned profile_id,
					       struct nvml_gpu_instance_placement *placements, unsigned *count)
{
	PROFILE(device, count);
	if (placements == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	put_placements(p, placements, count);
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstancePossiblePlacements_v2(struct nvml_device *device, unsigned profile_id,
						  struct nvml_gpu_instance_placement *placements, unsigned *count)
{
	PROFILE(device, count);
	if (placements != NULL && *count < p->start_count)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	if (placements != NULL)
		put_placements(p, placements, count);
	*count = p->start_count;
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceRemainingCapacity(struct nvml_device *device, unsigned profile_id, unsigned *count)
{
	PROFILE(device, count);
	*count = sim_mig_capacity(c, p);
	return NVML_SUCCESS;
}
