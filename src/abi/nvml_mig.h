/* NVML's MIG: GPU instances (a share of a card's memory and compute slices), compute instances (a share of a GPU
 * instance's compute slices), and MIG devices (a compute instance as programs see it; its handle is an nvmlDevice_t).
 * The mode and the profiles are in nvml.h. */
#ifndef HM_ABI_NVML_MIG_H
#define HM_ABI_NVML_MIG_H

#include "abi/nvml.h"

/* Profiles of the same size with other engines; the plain ones are in nvml.h. */
enum {
	NVML_GPU_INSTANCE_PROFILE_1_SLICE_GFX = 10,
	NVML_GPU_INSTANCE_PROFILE_2_SLICE_GFX = 11,
	NVML_GPU_INSTANCE_PROFILE_4_SLICE_GFX = 12,
	NVML_GPU_INSTANCE_PROFILE_1_SLICE_NO_ME = 13,
	NVML_GPU_INSTANCE_PROFILE_2_SLICE_NO_ME = 14,
	NVML_GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME = 15,
	NVML_GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME = 16,
	NVML_GPU_INSTANCE_PROFILE_3_SLICE_GFX = 17, /* since 13 */
};

enum {
	NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE = 0,
	NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE = 1,
	NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE = 2,
	NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE = 3,
	NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE = 4,
	NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE = 5,
	NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE = 6,
	NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1 = 7,
	NVML_COMPUTE_INSTANCE_PROFILE_COUNT = 9, /* 8 before 13 */
	NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED = 0,
};

struct nvml_gpu_instance; /* nvmlGpuInstance_t is a pointer to it */
struct nvml_compute_instance;

struct nvml_gpu_instance_placement {
	unsigned start, size; /* in memory slices */
};
_Static_assert(sizeof(struct nvml_gpu_instance_placement) == 8, "nvmlGpuInstancePlacement_t");

struct nvml_gpu_instance_info {
	struct nvml_device *device;
	unsigned id;
	unsigned profile_id; /* the driver's */
	struct nvml_gpu_instance_placement placement;
};
_Static_assert(sizeof(struct nvml_gpu_instance_info) == 24, "nvmlGpuInstanceInfo_t");

struct nvml_compute_instance_placement {
	unsigned start, size; /* in compute slices of the GPU instance */
};
_Static_assert(sizeof(struct nvml_compute_instance_placement) == 8, "nvmlComputeInstancePlacement_t");

struct nvml_compute_instance_profile {
	unsigned id; /* the driver's */
	unsigned slices, instances, multiprocessors;
	unsigned copy_engines, decoders, encoders, jpegs, ofas; /* shared */
};
_Static_assert(sizeof(struct nvml_compute_instance_profile) == 36, "nvmlComputeInstanceProfileInfo_t");

struct nvml_compute_instance_info {
	struct nvml_device *device;
	struct nvml_gpu_instance *gpu_instance;
	unsigned id, profile_id;
	struct nvml_compute_instance_placement placement;
};
_Static_assert(sizeof(struct nvml_compute_instance_info) == 32, "nvmlComputeInstanceInfo_t");

struct nvml_device_attributes {
	unsigned multiprocessors;
	unsigned copy_engines, decoders, encoders, jpegs, ofas; /* shared */
	unsigned gpu_instance_slices, compute_instance_slices;
	unsigned long long memory_mib;
};
_Static_assert(sizeof(struct nvml_device_attributes) == 40, "nvmlDeviceAttributes_t");

/* *activation: what came of it; NVML_ERROR_IN_USE leaves the mode pending. */
int nvmlDeviceSetMigMode(struct nvml_device *device, unsigned mode, int *activation);
/* `profile_id` is the driver's number below, NVML's own in ...ProfileInfo. Counts are out only: room is taken for
 * granted for as many as the profile allows. */
int nvmlDeviceGetGpuInstancePossiblePlacements(struct nvml_device *device, unsigned profile_id,
					       struct nvml_gpu_instance_placement *placements, unsigned *count);
/* Here *count is room as well; placements NULL: the count alone. */
int nvmlDeviceGetGpuInstancePossiblePlacements_v2(struct nvml_device *device, unsigned profile_id,
						  struct nvml_gpu_instance_placement *placements, unsigned *count);
int nvmlDeviceGetGpuInstanceRemainingCapacity(struct nvml_device *device, unsigned profile_id, unsigned *count);
int nvmlDeviceCreateGpuInstance(struct nvml_device *device, unsigned profile_id, struct nvml_gpu_instance **out);
int nvmlDeviceCreateGpuInstanceWithPlacement(struct nvml_device *device, unsigned profile_id,
					     const struct nvml_gpu_instance_placement *placement,
					     struct nvml_gpu_instance **out);
int nvmlGpuInstanceDestroy(struct nvml_gpu_instance *instance);
int nvmlDeviceGetGpuInstances(struct nvml_device *device, unsigned profile_id, struct nvml_gpu_instance **out,
			      unsigned *count);
int nvmlDeviceGetGpuInstanceById(struct nvml_device *device, unsigned id, struct nvml_gpu_instance **out);
int nvmlGpuInstanceGetInfo(struct nvml_gpu_instance *instance, struct nvml_gpu_instance_info *info);

int nvmlGpuInstanceGetComputeInstanceProfileInfo(struct nvml_gpu_instance *instance, unsigned profile, unsigned engine,
						 struct nvml_compute_instance_profile *info);
int nvmlGpuInstanceGetComputeInstanceRemainingCapacity(struct nvml_gpu_instance *instance, unsigned profile_id,
						       unsigned *count);
int nvmlGpuInstanceCreateComputeInstance(struct nvml_gpu_instance *instance, unsigned profile_id,
					 struct nvml_compute_instance **out);
int nvmlComputeInstanceDestroy(struct nvml_compute_instance *instance);
int nvmlGpuInstanceGetComputeInstances(struct nvml_gpu_instance *instance, unsigned profile_id,
				       struct nvml_compute_instance **out, unsigned *count);
int nvmlGpuInstanceGetComputeInstanceById(struct nvml_gpu_instance *instance, unsigned id,
					  struct nvml_compute_instance **out);
int nvmlComputeInstanceGetInfo_v2(struct nvml_compute_instance *instance, struct nvml_compute_instance_info *info);

/* Of a MIG device's handle. */
int nvmlDeviceGetGpuInstanceId(struct nvml_device *mig, unsigned *id);
int nvmlDeviceGetComputeInstanceId(struct nvml_device *mig, unsigned *id);
int nvmlDeviceGetAttributes_v2(struct nvml_device *mig, struct nvml_device_attributes *attributes);
int nvmlDeviceGetDeviceHandleFromMigDeviceHandle(struct nvml_device *mig, struct nvml_device **device);

#endif
