/* Where the agent keeps things on the node, below its state folder (--state-dir). docs/contracts/host.md */
#ifndef HM_CONTRACT_HOST_H
#define HM_CONTRACT_HOST_H

#define HM_STATE_DIR "/var/lib/hami-vgpu"
#define HM_STATE_BELOW_PLUGINS "hami-vgpu" /* in the kubelet's plugin folder, where HM_STATE_DIR is not mounted */
#define HM_STATE_LIB "lib"       /* lib/libvgpu.so.<sha256, 16 digits>: content-addressed, swapped by rename */
#define HM_STATE_ALLOC "alloc"   /* alloc/<number>/limits, alloc/<number>/usage/region, alloc/<number>/ld.so.preload */
#define HM_STATE_CLAIMS "claims" /* claims/<number>: model/claim_text.h */
#define HM_STATE_COUNTER "counter" /* the next unused block of Allocate numbers */
#define HM_STATE_RUNTIME "runtime" /* versions of kubelet and container runtime: agent/options/runtime.h */
#define HM_STATE_HEALTH "health"   /* which cards are sick: agent/cards/card_memory.h */
#define HM_STATE_NODE "node"       /* how the agent has cut the cards: model/node_text.h */

#define HM_ALLOC_LIMITS "limits"
#define HM_ALLOC_USAGE "usage"
#define HM_ALLOC_REGION "usage/region"
#define HM_ALLOC_PRELOAD "ld.so.preload"

#define HM_DEVICE_PLUGIN_DIR "/var/lib/kubelet/device-plugins"
#define HM_KUBELET_SOCKET "kubelet.sock"
#define HM_PLUGIN_SOCKET "hami-vgpu.sock"
#define HM_CHECKPOINT_FILE "kubelet_internal_checkpoint"
#define HM_POD_RESOURCES_SOCKET "/var/lib/kubelet/pod-resources/kubelet.sock"
#define HM_CDI_DIR "/var/run/cdi"

#endif
