/* What a container with a vGPU finds inside. docs/contracts/container.md */
#ifndef HM_CONTRACT_CONTAINER_H
#define HM_CONTRACT_CONTAINER_H

/* Files, all mounted by the agent (CDI spec or Allocate answer). */
#define HM_CONTAINER_DIR "/run/hami-vgpu"
#define HM_CONTAINER_LIMITS "/run/hami-vgpu/limits" /* read-only; region/limit_file.h */
#define HM_CONTAINER_USAGE_DIR "/run/hami-vgpu/usage"
#define HM_CONTAINER_REGION "/run/hami-vgpu/usage/region" /* writable by any uid; contract/region_layout.h */
#define HM_CONTAINER_LIB "/run/hami-vgpu/libvgpu.so"      /* read-only */
#define HM_CONTAINER_PRELOAD "/etc/ld.so.preload"         /* read-only; one line: HM_CONTAINER_LIB */

/* Environment set by the agent. */
#define HM_ENV_VGPU_UUID "HAMI_VGPU_UUID"               /* "<GPU-UUID>/<number>" for each card, comma between */
#define HM_ENV_VISIBLE_DEVICES "NVIDIA_VISIBLE_DEVICES" /* GPU UUIDs, comma between */

/* Read by libvgpu only where no limit file is mounted (HAMi's plugin, or by hand). */
#define HM_ENV_MEMORY_LIMIT "CUDA_DEVICE_MEMORY_LIMIT" /* for all cards; _<i> for card i wins */
#define HM_ENV_CORES_LIMIT "CUDA_DEVICE_SM_LIMIT"      /* the same, percent of a card's time */
#define HM_ENV_PRIORITY "CUDA_TASK_PRIORITY"
#define HM_ENV_POLICY "GPU_CORE_UTILIZATION_POLICY"
#define HM_ENV_OVERSUBSCRIBE "CUDA_OVERSUBSCRIBE"
#define HM_ENV_SHARED_CACHE "CUDA_DEVICE_MEMORY_SHARED_CACHE" /* a path in a folder that all processes can write */

/* Read by libvgpu always. */
#define HM_ENV_LIBVGPU_LOG "HAMI_VGPU_LOG"

#endif
