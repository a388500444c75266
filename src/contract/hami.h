/* HAMi's names, as v2.8 to v2.10 use them: annotations, resources, environment, mounts. Formats of the values:
 * src/hami. docs/contracts/hami-annotations.md says who writes and who reads each. */
#ifndef HM_CONTRACT_HAMI_H
#define HM_CONTRACT_HAMI_H

/* Annotations of a node. */
#define HAMI_NODE_REGISTER "hami.io/node-nvidia-register"
#define HAMI_NODE_SCORE "hami.io/node-nvidia-score"
#define HAMI_NODE_HANDSHAKE "hami.io/node-handshake" /* the scheduler's alone since v2.8 */
#define HAMI_NODE_LOCK "hami.io/mutex.lock"
#define HAMI_NODE_HEALTH "hami.io/node-nvidia-health" /* ours: the sick cards, and why */
#define HAMI_NODE_CORDON "hami.io/device-cordon"      /* GPU UUIDs, comma between; the scheduler's to obey */

/* Annotations of a pod. */
#define HAMI_POD_TO_ALLOCATE "hami.io/vgpu-devices-to-allocate"
#define HAMI_TO_ALLOCATE_TAIL "-devices-to-allocate"        /* of every vendor's key */
#define HAMI_POD_ALLOCATED "hami.io/vgpu-devices-allocated" /* never changed by an agent */
#define HAMI_POD_MIG_ALLOCATIONS "hami.io/vgpu-mig-allocations"
#define HAMI_POD_NODE "hami.io/vgpu-node" /* also a label */
#define HAMI_POD_TIME "hami.io/vgpu-time" /* decimal Unix seconds, as is bind-time */
#define HAMI_POD_BIND_TIME "hami.io/bind-time"
#define HAMI_POD_BIND_PHASE "hami.io/bind-phase"
#define HAMI_POD_SIGNATURE "hami.io/vgpu-signature" /* ours */

/* Labels of the scheduler's own pods: which of them leads, by which the chart's Service finds it; and those of all. */
#define HAMI_POD_ROLE "hami.io/scheduler-role"
#define HAMI_ROLE_LEADER "leader"
#define HAMI_ROLE_FOLLOWER "follower"
#define HAMI_SCHEDULER_SELECTOR "app.kubernetes.io/component=hami-scheduler"
#define HAMI_POD_TERM "hami.io/scheduler-term" /* an annotation, ours: new with each leader */

/* What a pod's author may wish: annotations for the scheduler. */
#define HAMI_WISH_NODE_POLICY "hami.io/node-scheduler-policy"
#define HAMI_WISH_CARD_POLICY "hami.io/gpu-scheduler-policy"
#define HAMI_WISH_WEIGHTS "hami.io/device-scoring-weights"
#define HAMI_WISH_USE_TYPE "nvidia.com/use-gputype"
#define HAMI_WISH_NO_TYPE "nvidia.com/nouse-gputype"
#define HAMI_WISH_USE_UUID "nvidia.com/use-gpuuuid"
#define HAMI_WISH_NO_UUID "nvidia.com/nouse-gpuuuid"
#define HAMI_WISH_NUMA "nvidia.com/numa-bind"
#define HAMI_WISH_MODE "nvidia.com/vgpu-mode"

/* Values of HAMI_POD_BIND_PHASE. */
#define HAMI_PHASE_ALLOCATING "allocating"
#define HAMI_PHASE_SUCCESS "success"
#define HAMI_PHASE_FAILED "failed"

/* The type word of the pod's device strings. */
#define HAMI_DEVICE_TYPE "NVIDIA"

/* Resources (defaults of device-config.yaml's resource*Name). */
#define HAMI_RESOURCE_GPU "nvidia.com/gpu"
#define HAMI_RESOURCE_MEMORY "nvidia.com/gpumem" /* MiB */
#define HAMI_RESOURCE_MEMORY_PERCENT "nvidia.com/gpumem-percentage"
#define HAMI_RESOURCE_CORES "nvidia.com/gpucores" /* percent */
#define HAMI_RESOURCE_PRIORITY "nvidia.com/priority"
#define HAMI_RESOURCE_MIG_PREFIX "nvidia.com/mig-" /* static MIG, mixed: + profile, '+' as '.' */

/* Kubelet device id of a replica: "<GPU-UUID>-<i>"; of a time-slicing replica "<GPU-UUID>::<i>". */
#define HAMI_REPLICA_SEPARATOR "-"

/* Operating modes of a node's cards ("mode" of the register text). */
#define HAMI_MODE_CORE "hami-core"
#define HAMI_MODE_MIG "mig"
#define HAMI_MODE_MPS "mps"

/* "custominfo" of the register text: an agent that binds late says so (ours). */
#define HAMI_CUSTOM_BINDING "binding"
#define HAMI_CUSTOM_BINDING_LATE "late"

/* Environment of a container, besides contract/container.h's. */
#define HAMI_ENV_DISABLE_CONTROL "CUDA_DISABLE_CONTROL" /* the pod's own; literal value, Go's ParseBool */
#define HAMI_ENV_LIBCUDA_LOG_LEVEL "LIBCUDA_LOG_LEVEL"
#define HAMI_ENV_IMEX_CHANNELS "NVIDIA_IMEX_CHANNELS"
#define HAMI_ENV_GDRCOPY "NVIDIA_GDRCOPY"
#define HAMI_ENV_GDS "NVIDIA_GDS"
#define HAMI_ENV_MOFED "NVIDIA_MOFED"
#define HAMI_ENV_ENABLED "enabled"

/* Device list strategy volume-mounts: HM_ENV_VISIBLE_DEVICES is this folder, one empty file a device in it. */
#define HAMI_VOLUME_MOUNT_DIR "/var/run/nvidia-container-devices"

/* Below HOOK_PATH, on the node and in the container alike. */
#define HAMI_HOOK_VGPU "vgpu"
#define HAMI_HOOK_CONTAINERS "vgpu/containers" /* + "/<pod UID>_<container name>": the usage cache's folder */
#define HAMI_HOOK_LIBRARY "vgpu/libvgpu.so"
#define HAMI_HOOK_PRELOAD "vgpu/ld.so.preload"
#define HAMI_HOOK_LICENSE "vgpu/license"
#define HAMI_HOOK_VALIDATOR "vgpu/vgpuvalidator"
#define HAMI_CACHE_SUFFIX ".cache"

/* On the node: there while MIG changes the cards; HAMi's monitor watches the folder and lets NVML go meanwhile. */
#define HAMI_APPLY_LOCK_DIR "/tmp/hami"
#define HAMI_APPLY_LOCK "hami-mig-apply.lock"

/* Paths in a container. */
#define HAMI_CONTAINER_LOCK_DIR "/tmp/vgpulock"
#define HAMI_CONTAINER_LICENSE "/tmp/license"
#define HAMI_CONTAINER_VALIDATOR "/usr/bin/vgpuvalidator"

/* The only IMEX channel that may be asked for. */
#define HAMI_DEV_IMEX_CHANNEL "/dev/nvidia-caps-imex-channels/channel0"

/* CDI names and files of HAMi's plugin: "<vendor>/<class>=<device>", "<vendor>-<class>.json". */
#define HAMI_CDI_VENDOR "k8s.device-plugin.nvidia.com"
#define HAMI_CDI_CLASS_GPU "gpu"
#define HAMI_CDI_CLASS_IMEX "imex-channel"
#define HAMI_CDI_CLASS_GDRCOPY "gdrcopy"
#define HAMI_CDI_CLASS_GDS "gds"
#define HAMI_CDI_CLASS_MOFED "mofed"
#define HAMI_CDI_ALL "all"
#define HAMI_CDI_ANNOTATION_PREFIX "cdi.k8s.io/"
#define HAMI_CDI_ANNOTATION_NAME "nvidia-device-plugin_" /* + a random uuid */

/* Kubelet socket of resource "<domain>/<name>": "nvidia-<name>.sock" in the device-plugins folder. */
#define HAMI_SOCKET_PREFIX "nvidia-"
#define HAMI_SOCKET_SUFFIX ".sock"

#endif
