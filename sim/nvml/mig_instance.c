/* GPU instances and compute instances: made, listed, ended. A handle is a place in the card's table. */
#include <string.h>

#include "sim/lib/sim_mig.h"
#include "sim/nvml/mig.h"

struct nvml_gpu_instance {
	char reserved;
};
struct nvml_compute_instance {
	char reserved;
};

enum { HANDLES = SIM_MAX_CARDS * SIM_MIG_INSTANCES };

static struct nvml_gpu_instance gis[HANDLES];
static struct nvml_compute_instance cis[HANDLES];

int mig_ask(struct sim_request q, struct sim_reply *reply)
{
	switch (sim_control(&q, reply)) {
	case SIM_OK: return (int)reply->a;
	case SIM_NO_NODE: return NVML_ERROR_DRIVER_NOT_LOADED;
	case SIM_FAILED: return NVML_ERROR_NO_PERMISSION;
	default: return NVML_ERROR_UNKNOWN;
	}
}

/* The card and the place behind a handle of either kind, which is alive. */
struct place {
	const struct sim_card *card;
	unsigned number, at;
};

static int enter_gi(const char *call, const struct nvml_gpu_instance *gi, struct place *p)
{
	int r;

	if (gi < gis || gi >= gis + HANDLES)
		return NVML_ERROR_INVALID_ARGUMENT;
	p->at = (unsigned)(gi - gis) % SIM_MIG_INSTANCES;
	r = card_enter(call, handle_of((unsigned)(gi - gis) / SIM_MIG_INSTANCES), &p->card, &p->number);
	if (r == NVML_SUCCESS && atomic_load(&p->card->mig_gis[p->at].live) == 0)
		r = NVML_ERROR_INVALID_ARGUMENT;
	return r;
}

static int enter_ci(const char *call, const struct nvml_compute_instance *ci, struct place *p)
{
	int r;

	if (ci < cis || ci >= cis + HANDLES)
		return NVML_ERROR_INVALID_ARGUMENT;
	p->at = (unsigned)(ci - cis) % SIM_MIG_INSTANCES;
	r = card_enter(call, handle_of((unsigned)(ci - cis) / SIM_MIG_INSTANCES), &p->card, &p->number);
	if (r == NVML_SUCCESS && atomic_load(&p->card->mig_cis[p->at].live) == 0)
		r = NVML_ERROR_INVALID_ARGUMENT;
	return r;
}

static const struct sim_mig_profile *profile_of(const struct place *p)
{
	return &p->card->info.mig_profiles[p->card->mig_gis[p->at].profile];
}

/* ---- GPU instances */

static int create(const char *call, struct nvml_device *device, unsigned profile_id, uint64_t start,
		  struct nvml_gpu_instance **out)
{
	struct sim_request q = { .op = SIM_OP_MIG_CREATE_GI, .a = profile_id, .b = start };
	const struct sim_card *c = NULL;
	struct sim_reply reply;
	int r = card_enter(call, device, &c, &q.card);

	if (r == NVML_SUCCESS && out == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		r = mig_ask(q, &reply);
	if (r == NVML_SUCCESS)
		*out = &gis[q.card * SIM_MIG_INSTANCES + reply.b];
	return r;
}

int nvmlDeviceCreateGpuInstance(struct nvml_device *device, unsigned profile_id, struct nvml_gpu_instance **out)
{
	return create(__func__, device, profile_id, SIM_MIG_ANY, out);
}

int nvmlDeviceCreateGpuInstanceWithPlacement(struct nvml_device *device, unsigned profile_id,
					     const struct nvml_gpu_instance_placement *placement,
					     struct nvml_gpu_instance **out)
{
	const struct sim_mig_profile *p;
	CARD(device, placement);

	p = sim_mig_profile(c, profile_id);
	if (p == NULL || placement->size != p->size)
		return NVML_ERROR_INVALID_ARGUMENT;
	return create("", device, profile_id, placement->start, out);
}

int nvmlGpuInstanceDestroy(struct nvml_gpu_instance *instance)
{
	struct sim_reply reply;
	struct place p;
	int r = enter_gi(__func__, instance, &p);

	return r == NVML_SUCCESS
		       ? mig_ask((struct sim_request) { .op = SIM_OP_MIG_DESTROY_GI, .card = p.number, .a = p.at },
				 &reply)
		       : r;
}

int nvmlDeviceGetGpuInstances(struct nvml_device *device, unsigned profile_id, struct nvml_gpu_instance **out,
			      unsigned *count)
{
	const struct sim_mig_profile *p;
	CARD(device, count);

	p = sim_mig_profile(c, profile_id);
	if (p == NULL || out == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (atomic_load(&c->mig_mode) == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*count = 0;
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		if (atomic_load(&c->mig_gis[i].live) != 0 && &c->info.mig_profiles[c->mig_gis[i].profile] == p)
			out[(*count)++] = &gis[number * SIM_MIG_INSTANCES + i];
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceById(struct nvml_device *device, unsigned id, struct nvml_gpu_instance **out)
{
	CARD(device, out);
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		if (atomic_load(&c->mig_gis[i].live) != 0 && c->mig_gis[i].id == id) {
			*out = &gis[number * SIM_MIG_INSTANCES + i];
			return NVML_SUCCESS;
		}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance, struct nvml_gpu_instance_info *info)
{
	struct place p;
	int r = enter_gi(__func__, instance, &p);

	if (r == NVML_SUCCESS && info == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*info = (struct nvml_gpu_instance_info) { .device = handle_of(p.number),
							  .id = p.card->mig_gis[p.at].id,
							  .profile_id = profile_of(&p)->profile_id,
							  .placement = { p.card->mig_gis[p.at].start,
									 profile_of(&p)->size } };
	return r;
}

/* ---- Compute instances. The driver's number of a profile is NVML's own here. */

static const unsigned ci_slices[] = {
	[NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE] = 1, [NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE] = 2,
	[NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE] = 3, [NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE] = 4,
	[NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE] = 7, [NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE] = 8,
	[NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE] = 6,
};

/* The slices of a profile that a GPU instance can have; 0: none. */
static unsigned slices_of(const struct place *p, unsigned profile)
{
	unsigned slices = profile < HM_COUNT(ci_slices) ? ci_slices[profile] : 0;

	return slices <= profile_of(p)->slices ? slices : 0;
}

static unsigned profile_of_slices(unsigned slices)
{
	for (unsigned i = 0; i < HM_COUNT(ci_slices); i++)
		if (ci_slices[i] == slices)
			return i;
	return 0;
}

int nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *instance, unsigned profile, unsigned engine,
						 struct nvml_compute_instance_profile *info)
{
	const struct sim_mig_profile *of;
	struct place p;
	int r = enter_gi(__func__, instance, &p);

	if (r != NVML_SUCCESS)
		return r;
	if (info == NULL || profile >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT ||
	    engine != NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (slices_of(&p, profile) == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	of = profile_of(&p);
	*info = (struct nvml_compute_instance_profile) {
		.id = profile,
		.slices = slices_of(&p, profile),
		.instances = of->slices / slices_of(&p, profile),
		.multiprocessors = of->sms * slices_of(&p, profile) / of->slices,
		.copy_engines = of->copy_engines,
		.decoders = of->decoders,
	};
	return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceRemainingCapacity(struct nvml_gpu_instance *instance, unsigned profile_id,
						       unsigned *count)
{
	struct place p;
	int r = enter_gi(__func__, instance, &p);

	if (r != NVML_SUCCESS)
		return r;
	if (count == NULL || slices_of(&p, profile_id) == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = sim_mig_free_slices(p.card, p.at) / slices_of(&p, profile_id);
	return NVML_SUCCESS;
}

int nvmlGpuInstanceCreateComputeInstance(struct nvml_gpu_instance *instance, unsigned profile_id,
					 struct nvml_compute_instance **out)
{
	struct sim_reply reply;
	struct place p;
	int r = enter_gi(__func__, instance, &p);

	if (r != NVML_SUCCESS)
		return r;
	if (out == NULL || slices_of(&p, profile_id) == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = mig_ask(
		(struct sim_request) {
			.op = SIM_OP_MIG_CREATE_CI, .card = p.number, .a = p.at, .b = slices_of(&p, profile_id) },
		&reply);
	if (r == NVML_SUCCESS)
		*out = &cis[p.number * SIM_MIG_INSTANCES + reply.b];
	return r;
}

int nvmlComputeInstanceDestroy(struct nvml_compute_instance *instance)
{
	struct sim_reply reply;
	struct place p;
	int r = enter_ci(__func__, instance, &p);

	return r == NVML_SUCCESS
		       ? mig_ask((struct sim_request) { .op = SIM_OP_MIG_DESTROY_CI, .card = p.number, .a = p.at },
				 &reply)
		       : r;
}

static bool belongs(const struct place *gi, unsigned ci)
{
	return atomic_load(&gi->card->mig_cis[ci].live) != 0 && gi->card->mig_cis[ci].gi == gi->at;
}

int nvmlGpuInstanceGetComputeInstances(struct nvml_gpu_instance *instance, unsigned profile_id,
				       struct nvml_compute_instance **out, unsigned *count)
{
	struct place p;
	int r = enter_gi(__func__, instance, &p);

	if (r != NVML_SUCCESS)
		return r;
	if (out == NULL || count == NULL || slices_of(&p, profile_id) == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = 0;
	for (unsigned i = 0; i < SIM_MIG_INSTANCES; i++)
		if (belongs(&p, i) && p.card->mig_cis[i].slices == slices_of(&p, profile_id))
			out[(*count)++] = &cis[p.number * SIM_MIG_INSTANCES + i];
	return NVML_SUCCESS;
}

int nvmlGpuInstanceGetComputeInstanceById(struct nvml_gpu_instance *instance, unsigned id,
					  struct nvml_compute_instance **out)
{
	struct place p;
	int r = enter_gi(__func__, instance, &p);

	if (r != NVML_SUCCESS)
		return r;
	for (unsigned i = 0; out != NULL && i < SIM_MIG_INSTANCES; i++)
		if (belongs(&p, i) && p.card->mig_cis[i].id == id) {
			*out = &cis[p.number * SIM_MIG_INSTANCES + i];
			return NVML_SUCCESS;
		}
	return out == NULL ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_NOT_FOUND;
}

int nvmlComputeInstanceGetInfo_v2(struct nvml_compute_instance *instance, struct nvml_compute_instance_info *info)
{
	const struct sim_mig_ci *ci;
	struct place p;
	int r = enter_ci(__func__, instance, &p);

	if (r != NVML_SUCCESS)
		return r;
	if (info == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	ci = &p.card->mig_cis[p.at];
	*info = (struct nvml_compute_instance_info) { .device = handle_of(p.number),
						      .gpu_instance = &gis[p.number * SIM_MIG_INSTANCES + ci->gi],
						      .id = ci->id,
						      .profile_id = profile_of_slices(ci->slices),
						      .placement = { ci->start, ci->slices } };
	return NVML_SUCCESS;
}
