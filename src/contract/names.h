/* Names that two programs, or a program and Kubernetes, agree on. docs/contracts/names.md */
#ifndef HM_CONTRACT_NAMES_H
#define HM_CONTRACT_NAMES_H

#define HM_RESOURCE_VGPU "hami.com/vgpu"

/* Kubelet device id of a slot: "<GPU-UUID>::<slot number>". */
#define HM_DEVICE_ID_SEPARATOR "::"
enum { HM_DEVICE_ID_BYTES = 96, HM_UUID_BYTES = 64 }; /* with the NUL */

/* CDI: each Allocate answers one name of its own, "hami.io/vgpu=v.<number>"; its spec is
 * "<cdi folder>/hami-vgpu-v.<number>.json". */
#define HM_CDI_KIND "hami.io/vgpu"
#define HM_CDI_DEVICE_PREFIX "v."
#define HM_CDI_FILE_PREFIX "hami-vgpu-v."
#define HM_CDI_FILE_SUFFIX ".json"

/* Limits of what one node and one container may have. */
enum {
	HM_MAX_CARDS = 16,            /* of a node, and of a container */
	HM_MAX_SLOTS_PER_CARD = 1000, /* HAMI_VGPU_CORES_PER_DEVICE at most */
};

#endif
