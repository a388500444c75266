/* What MIG makes of a card. Devices are found by their handles, which any user may ask for; what only root is told (the
 * placement, and which of two profiles alike in size an instance is of) is missing where we are not. */
#include <string.h>

#include "core/fmt.h"
#include "gpu/driver.h"
#include "gpu/mig_internal.h"

/* ---- profiles */

/* What tells profiles of the same size apart, where the driver gives no name. */
static const char *suffix_of(unsigned profile)
{
	switch (profile) {
	case NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV1:
	case NVML_GPU_INSTANCE_PROFILE_2_SLICE_REV1: return "+me";
	case NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX:
	case NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX:
	case NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX:
	case NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX: return "+gfx";
	case NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME:
	case NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME: return "-me";
	case NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME:
	case NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME: return "+me.all";
	default: return "";
	}
}

/* "MIG 1g.10gb" without the word; false where it is no name that can stand in a resource's. */
static bool take_name(const char *name, char out[MIG_NAME_BYTES])
{
	static const char word[] = "MIG ", good[] = "abcdefghijklmnopqrstuvwxyz0123456789.+-";

	if (strncmp(name, word, sizeof word - 1) == 0)
		name += sizeof word - 1;
	return name[0] != '\0' && name[strspn(name, good)] == '\0' &&
	       hm_fmt(out, MIG_NAME_BYTES, "%s", name) < MIG_NAME_BYTES;
}

static void name_profile(struct gpu_driver *d, struct nvml_device *handle, unsigned number, const struct card *card,
			 struct mig_profile *p)
{
	struct nvml_gpu_instance_profile_v2 v2 = { .version = NVML_GPU_INSTANCE_PROFILE_V2 };

	if (NVML(d, nvmlDeviceGetGpuInstanceProfileInfoV, handle, number, &v2) == NVML_SUCCESS) {
		v2.name[sizeof v2.name - 1] = '\0';
		if (take_name(v2.name, p->name))
			return;
	}
	mig_make_name(p->slices, p->memory_mib, card->memory_bytes >> 20, suffix_of(number), p->name, sizeof p->name);
}

static void read_starts(struct gpu_driver *d, struct nvml_device *handle, struct mig_profile *p)
{
	struct nvml_gpu_instance_placement places[MIG_MAX_STARTS] = { 0 };
	unsigned count = HM_COUNT(places);

	if (NVML(d, nvmlDeviceGetGpuInstancePossiblePlacements_v2, handle, p->id, places, &count) != NVML_SUCCESS ||
	    count > HM_COUNT(places))
		return;
	for (unsigned i = 0; i < count; i++) {
		if (i == 0)
			p->size = places[i].size;
		if (places[i].size == p->size && p->size > 0)
			p->starts[p->start_count++] = places[i].start;
	}
}

static void read_profiles(struct gpu_driver *d, struct nvml_device *handle, struct card *card)
{
	struct mig_card *m = &card->mig;

	for (unsigned i = 0; i < MIG_MAX_PROFILES && m->profile_count < MIG_MAX_PROFILES; i++) {
		struct nvml_gpu_instance_profile info = { 0 };
		struct mig_profile *p = &m->profiles[m->profile_count];

		if (NVML(d, nvmlDeviceGetGpuInstanceProfileInfo, handle, i, &info) != NVML_SUCCESS)
			continue;
		*p = (struct mig_profile) { .id = info.id,
					    .slices = info.slices,
					    .instances = info.instances,
					    .multiprocessors = info.multiprocessors,
					    .memory_mib = info.memory_mib };
		name_profile(d, handle, i, card, p);
		read_starts(d, handle, p);
		m->profile_count++;
	}
}

/* ---- devices */

const struct mig_profile *mig_profile_by_id(const struct mig_card *m, unsigned id)
{
	for (size_t i = 0; i < m->profile_count; i++)
		if (m->profiles[i].id == id)
			return &m->profiles[i];
	return NULL;
}

/* By the GPU instance itself; else the first profile of its size. */
static void read_instance(struct gpu_driver *d, struct nvml_device *handle, const struct mig_card *m,
			  const struct nvml_device_attributes *a, struct mig_device *out)
{
	const struct mig_profile *p = NULL;
	struct nvml_gpu_instance *instance = NULL;
	struct nvml_gpu_instance_info info = { 0 };

	if (NVML(d, nvmlDeviceGetGpuInstanceById, handle, out->gi, &instance) == NVML_SUCCESS &&
	    NVML(d, nvmlGpuInstanceGetInfo, instance, &info) == NVML_SUCCESS) {
		out->at = (struct mig_placement) { info.placement.start, info.placement.size };
		p = mig_profile_by_id(m, info.profile_id);
	}
	for (size_t i = 0; p == NULL && i < m->profile_count; i++)
		if (m->profiles[i].slices == a->gpu_instance_slices && m->profiles[i].memory_mib == a->memory_mib)
			p = &m->profiles[i];
	if (p != NULL)
		hm_fmt(out->profile, sizeof out->profile, "%s", p->name);
}

bool mig_device_read(struct gpu_driver *d, struct nvml_device *card, const struct mig_card *m, struct nvml_device *mig,
		     struct mig_device *out)
{
	struct nvml_device_attributes a = { 0 };
	char uuid[NVML_UUID_BYTES] = { 0 };

	*out = (struct mig_device) { .gi = MIG_NO_ID, .ci = MIG_NO_ID };
	if (d->nvmlDeviceGetUUID(mig, uuid, sizeof uuid) != NVML_SUCCESS ||
	    !driver_plain_word(uuid, sizeof out->uuid) ||
	    NVML(d, nvmlDeviceGetGpuInstanceId, mig, &out->gi) != NVML_SUCCESS ||
	    NVML(d, nvmlDeviceGetComputeInstanceId, mig, &out->ci) != NVML_SUCCESS ||
	    NVML(d, nvmlDeviceGetAttributes_v2, mig, &a) != NVML_SUCCESS)
		return false;
	hm_fmt(out->uuid, sizeof out->uuid, "%s", uuid);
	out->memory_mib = a.memory_mib;
	out->whole = a.compute_instance_slices == a.gpu_instance_slices;
	read_instance(d, card, m, &a, out);
	return true;
}

static void read_devices(struct gpu_driver *d, struct nvml_device *handle, struct mig_card *m)
{
	unsigned count = 0;

	if (NVML(d, nvmlDeviceGetMaxMigDeviceCount, handle, &count) != NVML_SUCCESS)
		return;
	for (unsigned i = 0; i < count && m->device_count < MIG_MAX_DEVICES; i++) {
		struct nvml_device *mig = NULL;

		if (NVML(d, nvmlDeviceGetMigDeviceHandleByIndex, handle, i, &mig) == NVML_SUCCESS &&
		    mig_device_read(d, handle, m, mig, &m->devices[m->device_count]))
			m->device_count++;
	}
}

static bool has_device(const struct mig_card *m, unsigned gi)
{
	for (size_t i = 0; i < m->device_count; i++)
		if (m->devices[i].gi == gi)
			return true;
	return false;
}

static void read_bare(struct gpu_driver *d, struct nvml_device *handle, struct mig_card *m, const struct mig_profile *p)
{
	struct nvml_gpu_instance *gis[MIG_MAX_INSTANCES];
	struct nvml_gpu_instance_info info;
	unsigned count = 0;

	if (p->instances > MIG_MAX_INSTANCES ||
	    NVML(d, nvmlDeviceGetGpuInstances, handle, p->id, gis, &count) != NVML_SUCCESS)
		return;
	for (unsigned i = 0; i < count && m->bare_count < MIG_MAX_DEVICES; i++) {
		struct mig_device *out = &m->bare[m->bare_count];

		if (NVML(d, nvmlGpuInstanceGetInfo, gis[i], &info) != NVML_SUCCESS || has_device(m, info.id))
			continue;
		*out = (struct mig_device) { .gi = info.id,
					     .ci = MIG_NO_ID,
					     .at = { info.placement.start, info.placement.size },
					     .memory_mib = p->memory_mib };
		hm_fmt(out->profile, sizeof out->profile, "%s", p->name);
		m->bare_count++;
	}
}

void mig_read(struct gpu_driver *d, struct nvml_device *handle, struct card *card)
{
	struct mig_card *m = &card->mig;
	unsigned mode = 0, pending = 0;

	*m = (struct mig_card) { 0 };
	if (NVML(d, nvmlDeviceGetMigMode, handle, &mode, &pending) != NVML_SUCCESS)
		return;
	m->capable = true;
	m->enabled = mode == NVML_DEVICE_MIG_ENABLE;
	m->pending = pending == NVML_DEVICE_MIG_ENABLE;
	read_profiles(d, handle, card);
	if (!m->enabled)
		return;
	read_devices(d, handle, m);
	for (size_t i = 0; i < m->profile_count; i++)
		read_bare(d, handle, m, &m->profiles[i]);
}
