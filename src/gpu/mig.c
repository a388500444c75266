#include "gpu/mig.h"

#include <string.h>

#include "core/fmt.h"
#include "gpu/events.h"
#include "gpu/mig_internal.h"

static int error(struct gpu_driver *d, int result, const char *call, const char *uuid, struct hm_err *e)
{
	driver_error(d, result, call, e);
	return hm_err_wrap(e, "GPU %s", uuid);
}

/* What a card is, and its handle. */
struct target {
	struct gpu_driver *d;
	const char *uuid;
	struct nvml_device *handle;
	struct card card; /* its memory and MIG alone */
};

static int find(struct gpu_driver *d, const char *uuid, struct target *t, struct hm_err *e)
{
	struct nvml_memory memory = { 0 };
	int r, result;

	*t = (struct target) { .d = d, .uuid = uuid };
	r = driver_card(d, uuid, &t->handle, e);
	if (r < 0)
		return r;
	result = d->nvmlDeviceGetMemoryInfo(t->handle, &memory);
	if (result != NVML_SUCCESS)
		return error(d, result, "nvmlDeviceGetMemoryInfo", uuid, e);
	t->card.memory_bytes = memory.total;
	mig_read(d, t->handle, &t->card);
	return 0;
}

int gpu_mig_read(struct gpu_driver *d, const char *uuid, struct mig_card *out, struct hm_err *e)
{
	struct target t;
	int r = find(d, uuid, &t, e);

	if (r == 0)
		*out = t.card.mig;
	return r;
}

int gpu_mig_enable(struct gpu_driver *d, const char *uuid, struct hm_err *e)
{
	int activation = NVML_SUCCESS, result;
	struct target t;
	int r = find(d, uuid, &t, e);

	if (r < 0)
		return r;
	if (!t.card.mig.capable)
		return hm_err_set(e, HM_EUNSUPPORTED, "GPU %s has no MIG", uuid);
	if (t.card.mig.enabled && t.card.mig.pending)
		return 0;
	if (t.card.mig.enabled != t.card.mig.pending)
		return hm_err_set(e, HM_EAGAIN,
				  "GPU %s: its MIG mode is to change; a reset of the card must come first", uuid);
	gpu_events_release(d, uuid); /* the card must be held open by nobody */
	result = NVML(d, nvmlDeviceSetMigMode, t.handle, NVML_DEVICE_MIG_ENABLE, &activation);
	if (result != NVML_SUCCESS)
		return error(d, result, "nvmlDeviceSetMigMode", uuid, e);
	if (activation != NVML_SUCCESS)
		return hm_err_set(e, HM_EAGAIN, "GPU %s: MIG mode waits: NVML says %s (%d)", uuid,
				  driver_error_text(d, activation), activation);
	mig_read(d, t.handle, &t.card);
	if (!t.card.mig.enabled)
		return hm_err_set(e, HM_EAGAIN, "GPU %s: MIG mode was set and is not on; a reset must come first",
				  uuid);
	return 0;
}

/* ---- ending */

/* The compute instances of a GPU instance, of every profile; a profile that it does not have has none. */
static int end_compute(struct gpu_driver *d, struct nvml_gpu_instance *gi)
{
	for (unsigned i = 0; i < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; i++) {
		struct nvml_compute_instance *cis[MIG_MAX_INSTANCES];
		struct nvml_compute_instance_profile p = { 0 };
		unsigned count = 0;

		if (NVML(d, nvmlGpuInstanceGetComputeInstanceProfileInfo, gi, i,
			 NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &p) != NVML_SUCCESS ||
		    p.instances > MIG_MAX_INSTANCES)
			continue;
		if (NVML(d, nvmlGpuInstanceGetComputeInstances, gi, p.id, cis, &count) != NVML_SUCCESS)
			continue;
		for (unsigned k = 0; k < count; k++) {
			int result = NVML(d, nvmlComputeInstanceDestroy, cis[k]);

			if (result != NVML_SUCCESS && result != NVML_ERROR_NOT_FOUND)
				return result;
		}
	}
	return NVML_SUCCESS;
}

static int end_instance(struct target *t, struct nvml_gpu_instance *gi, struct hm_err *e)
{
	int result = end_compute(t->d, gi);

	if (result != NVML_SUCCESS)
		return error(t->d, result, "nvmlComputeInstanceDestroy", t->uuid, e);
	result = NVML(t->d, nvmlGpuInstanceDestroy, gi);
	if (result != NVML_SUCCESS && result != NVML_ERROR_NOT_FOUND)
		return error(t->d, result, "nvmlGpuInstanceDestroy", t->uuid, e);
	return 0;
}

int gpu_mig_destroy(struct gpu_driver *d, const char *uuid, unsigned gi, struct mig_placement at, struct hm_err *e)
{
	struct nvml_gpu_instance *instance = NULL;
	struct nvml_gpu_instance_info info = { 0 };
	struct target t;
	int r = find(d, uuid, &t, e), result;

	if (r < 0)
		return r;
	result = NVML(d, nvmlDeviceGetGpuInstanceById, t.handle, gi, &instance);
	if (result == NVML_SUCCESS)
		result = NVML(d, nvmlGpuInstanceGetInfo, instance, &info);
	if (result == NVML_ERROR_NOT_FOUND || (result == NVML_ERROR_NOT_SUPPORTED && !t.card.mig.enabled) ||
	    (result == NVML_SUCCESS && (info.placement.start != at.start || info.placement.size != at.size)))
		return hm_err_set(e, HM_ENOTFOUND, "GPU %s: GPU instance %u at %u:%u is gone", uuid, gi, at.start,
				  at.size);
	if (result != NVML_SUCCESS)
		return error(d, result, "nvmlDeviceGetGpuInstanceById", uuid, e);
	return end_instance(&t, instance, e);
}

int gpu_mig_clear(struct gpu_driver *d, const char *uuid, struct hm_err *e)
{
	struct target t;
	int r = find(d, uuid, &t, e);

	if (r < 0 || !t.card.mig.enabled)
		return r;
	for (size_t i = 0; i < t.card.mig.profile_count; i++) {
		const struct mig_profile *p = &t.card.mig.profiles[i];
		struct nvml_gpu_instance *gis[MIG_MAX_INSTANCES];
		unsigned count = 0;
		int result = p->instances > MIG_MAX_INSTANCES
				     ? NVML_ERROR_INSUFFICIENT_SIZE
				     : NVML(d, nvmlDeviceGetGpuInstances, t.handle, p->id, gis, &count);

		if (result != NVML_SUCCESS)
			return error(d, result, "nvmlDeviceGetGpuInstances", uuid, e);
		for (unsigned k = 0; k < count; k++)
			if ((r = end_instance(&t, gis[k], e)) < 0)
				return r;
	}
	return 0;
}

/* ---- making */

static const struct mig_profile *wanted_profile(const struct target *t, const char *name, struct mig_placement at,
						struct hm_err *e)
{
	const struct mig_profile *p = mig_find_profile(&t->card.mig, name);

	if (p == NULL) {
		hm_err_set(e, HM_EINVAL, "unsupported MIG profile \"%s\"", name);
		return NULL;
	}
	if (!mig_may_stand(p, at)) {
		hm_err_set(e, HM_EINVAL, "scheduler selected invalid placement {Start:%u Size:%u} for profile %s",
			   at.start, at.size, name);
		return NULL;
	}
	return p;
}

/* The GPU instance of this profile that stands there already; NULL: none. */
static int existing(struct target *t, const struct mig_profile *p, struct mig_placement at,
		    struct nvml_gpu_instance **out, struct nvml_gpu_instance_info *info, struct hm_err *e)
{
	struct nvml_gpu_instance *gis[MIG_MAX_INSTANCES];
	unsigned count = 0;
	int result = p->instances > MIG_MAX_INSTANCES
			     ? NVML_ERROR_INSUFFICIENT_SIZE
			     : NVML(t->d, nvmlDeviceGetGpuInstances, t->handle, p->id, gis, &count);

	*out = NULL;
	if (result != NVML_SUCCESS)
		return error(t->d, result, "nvmlDeviceGetGpuInstances", t->uuid, e);
	for (unsigned i = 0; i < count; i++)
		if (NVML(t->d, nvmlGpuInstanceGetInfo, gis[i], info) == NVML_SUCCESS &&
		    info->placement.start == at.start && info->placement.size == at.size) {
			*out = gis[i];
			return 0;
		}
	return 0;
}

static int make(struct target *t, const struct mig_profile *p, struct mig_placement at, struct nvml_gpu_instance **out,
		struct nvml_gpu_instance_info *info, struct hm_err *e)
{
	const struct nvml_gpu_instance_placement place = { at.start, at.size };
	int result = NVML(t->d, nvmlDeviceCreateGpuInstanceWithPlacement, t->handle, p->id, &place, out);

	if (result == NVML_ERROR_INSUFFICIENT_RESOURCES)
		return hm_err_set(e, HM_ELIMIT, "GPU %s: the place %u:%u of a %s is taken", t->uuid, at.start, at.size,
				  p->name);
	if (result != NVML_SUCCESS)
		return error(t->d, result, "nvmlDeviceCreateGpuInstanceWithPlacement", t->uuid, e);
	result = NVML(t->d, nvmlGpuInstanceGetInfo, *out, info);
	if (result == NVML_SUCCESS)
		return 0;
	(void)NVML(t->d, nvmlGpuInstanceDestroy, *out); /* what cannot be undone is found again by its place */
	return error(t->d, result, "nvmlGpuInstanceGetInfo", t->uuid, e);
}

/* The compute instance of all slices: the profile whose slices are the GPU instance's. */
static int make_compute(struct target *t, struct nvml_gpu_instance *gi, unsigned slices, struct hm_err *e)
{
	int result = NVML_ERROR_NOT_SUPPORTED;

	for (unsigned i = 0; i < NVML_COMPUTE_INSTANCE_PROFILE_COUNT; i++) {
		struct nvml_compute_instance_profile p = { 0 };
		struct nvml_compute_instance *made = NULL;

		if (NVML(t->d, nvmlGpuInstanceGetComputeInstanceProfileInfo, gi, i,
			 NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED, &p) != NVML_SUCCESS ||
		    p.slices != slices)
			continue;
		result = NVML(t->d, nvmlGpuInstanceCreateComputeInstance, gi, p.id, &made);
		break;
	}
	return result == NVML_SUCCESS ? 0 : error(t->d, result, "nvmlGpuInstanceCreateComputeInstance", t->uuid, e);
}

static const struct mig_device *device_of(const struct mig_card *m, unsigned gi)
{
	for (size_t i = 0; i < m->device_count; i++)
		if (m->devices[i].gi == gi)
			return &m->devices[i];
	return NULL;
}

/* Its MIG device, made where it lacks. */
static int complete(struct target *t, const struct mig_profile *p, struct nvml_gpu_instance *gi, unsigned id,
		    struct mig_device *out, struct hm_err *e)
{
	unsigned slices = p->slices; /* p lies in what is read again */
	const struct mig_device *device = device_of(&t->card.mig, id);
	int r;

	if (device == NULL) {
		r = make_compute(t, gi, slices, e);
		if (r < 0)
			return r;
		mig_read(t->d, t->handle, &t->card);
		device = device_of(&t->card.mig, id);
	}
	if (device == NULL)
		return hm_err_set(e, HM_EIO, "GPU %s: GPU instance %u shows no MIG device", t->uuid, id);
	if (!device->whole)
		return hm_err_set(e, HM_ELIMIT, "GPU %s: GPU instance %u is cut further by somebody else", t->uuid, id);
	*out = *device;
	return 0;
}

int gpu_mig_ensure(struct gpu_driver *d, const char *uuid, const char *profile, struct mig_placement at,
		   struct mig_device *out, struct hm_err *e)
{
	struct nvml_gpu_instance_info info = { 0 };
	struct nvml_gpu_instance *gi = NULL;
	const struct mig_profile *p;
	struct hm_err ignored;
	struct target t;
	bool made = false;
	int r = find(d, uuid, &t, e);

	if (r < 0)
		return r;
	if (!t.card.mig.enabled)
		return hm_err_set(e, HM_EAGAIN, "GPU %s: its MIG mode is not on", uuid);
	p = wanted_profile(&t, profile, at, e);
	if (p == NULL)
		return -e->code;
	r = existing(&t, p, at, &gi, &info, e);
	if (r == 0 && gi == NULL) {
		r = make(&t, p, at, &gi, &info, e);
		made = r == 0;
	}
	if (r == 0)
		r = complete(&t, p, gi, info.id, out, e);
	if (r < 0 && made && end_instance(&t, gi, &ignored) < 0)
		return hm_err_wrap(e, "and it could not be undone (%s)", ignored.msg);
	return r;
}
