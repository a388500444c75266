/* What HAMi's plugin gives a container, beside our own files (agent/container/edits.h): the environment, mounts and
 * devices that programs, images and NVIDIA's runtime look for. Nothing that limits rests on any of it. Which of HAMi's
 * mounts are left out, and why: docs/contracts/container.md. Pure but for looking whether files are there. */
#ifndef HM_AGENT_CONTAINER_HAMI_ANSWER_H
#define HM_AGENT_CONTAINER_HAMI_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "cdi/spec.h"
#include "core/err.h"
#include "model/claim_text.h"
#include "model/inventory.h"

/* --device-list-strategy: how NVIDIA's runtime is told the cards; several may be on. */
enum hami_list_strategy {
	HAMI_LIST_ENVVAR = 1 << 0,
	HAMI_LIST_VOLUME_MOUNTS = 1 << 1, /* wins over envvar */
	HAMI_LIST_CDI_ANNOTATIONS = 1 << 2,
	HAMI_LIST_CDI_CRI = 1 << 3,

	HAMI_LIST_NVIDIA = HAMI_LIST_ENVVAR | HAMI_LIST_VOLUME_MOUNTS,
	HAMI_LIST_CDI = HAMI_LIST_CDI_ANNOTATIONS | HAMI_LIST_CDI_CRI,
};

/* Besides the cards. */
enum hami_extra {
	HAMI_EXTRA_IMEX = 1 << 0, /* channel 0 */
	HAMI_EXTRA_GDRCOPY = 1 << 1,
	HAMI_EXTRA_GDS = 1 << 2,
	HAMI_EXTRA_MOFED = 1 << 3,
};

/* All borrowed; NULL texts are not told. */
struct hami_answer_config {
	const char *hook_path;         /* HOOK_PATH: "/usr/local" */
	unsigned strategies;           /* of enum hami_list_strategy */
	bool ids_by_index;             /* cards by NVML's index, not by UUID */
	bool pass_device_specs;        /* classic binding: device nodes in the answer */
	unsigned extras;               /* of enum hami_extra */
	unsigned extra_specs;          /* those of which hami_cdi_write has written a spec */
	bool disable_core_limit;       /* disableCoreLimit of device-config.yaml */
	const char *log_level;         /* libCudaLogLevel */
	const char *dev_root;          /* the host's folder that holds dev/nvidia*; NULL: "/" */
	const char *annotation_prefix; /* of cdi-annotations: "cdi.k8s.io/" */
};

/* Adds to *out. `cards` are the claim's, one for one, as the node has them; `library` is the installed libvgpu.so,
 * mounted where HAMi has its own too. With late binding the edits stand in a CDI spec, which wins over the pod's own:
 * there the cards are always named, and device nodes are not ours to add. -HM_ENOMEM alone. */
int hami_answer_edits(const struct hami_answer_config *a, const struct claim *c, const struct card *const *cards,
		      const char *library, bool late, struct cdi_edits *out, struct hm_err *e) HM_MUST_USE;

/* How the card is named: by UUID or index. */
void hami_answer_device_id(const struct hami_answer_config *a, const struct card *card, char out[HM_UUID_BYTES]);

enum { HAMI_ANSWER_NAMES = HM_MAX_CARDS + 4, HAMI_ANSWER_NAME_BYTES = 128 };

/* Classic binding with a CDI strategy: the names of HAMi's own CDI devices (agent/container/hami_cdi.h) for the
 * claim's cards or MIG devices; `cards` as above. Returns how many; 0 without such a strategy. */
size_t hami_answer_cdi_names(const struct hami_answer_config *a, const struct claim *c, const struct card *const *cards,
			     char (*names)[HAMI_ANSWER_NAME_BYTES]);

#endif
