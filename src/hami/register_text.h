/* hami.io/node-nvidia-register: a node's cards as HAMi's scheduler wants them, JSON since v2.8. Fields come in HAMi's
 * order, zero ones are left out, to the byte as HAMi's plugin writes them; "custominfo":{"binding":"late"} is ours.
 * docs/contracts/hami-annotations.md */
#ifndef HM_HAMI_REGISTER_TEXT_H
#define HM_HAMI_REGISTER_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "contract/names.h"
#include "core/cleanup.h"
#include "core/err.h"

enum {
	REGISTER_TEXT_MAX_BYTES = 256 * 1024,
	REGISTER_MAX_DEVICES = 1024,
	REGISTER_MAX_PROFILES = 64,   /* of a device */
	REGISTER_MAX_PLACEMENTS = 64, /* of a profile */
	REGISTER_TYPE_BYTES = 128,
	REGISTER_MODE_BYTES = 32,
	REGISTER_PROFILE_BYTES = 32,
};

struct register_placement {
	uint32_t start, size; /* memory slices */
};

/* A MIG profile that a card in mode "mig" offers. */
struct register_profile {
	char name[REGISTER_PROFILE_BYTES]; /* "1g.5gb" */
	int32_t memory_mib;
	int32_t cores; /* percent of the card */
	int32_t slices;
	size_t first_placement, placement_count; /* set by register_add_profile */
};

struct register_device {
	char id[HM_UUID_BYTES]; /* of the GPU; static MIG: of the MIG device */
	uint32_t index;         /* NVML's */
	int32_t count;          /* replicas */
	int32_t memory_mib;     /* scaled */
	int32_t cores;          /* percent, scaled */
	char type[REGISTER_TYPE_BYTES];
	int32_t numa;
	char mode[REGISTER_MODE_BYTES]; /* HAMI_MODE_* */
	bool healthy;
	bool late_binding;                   /* custominfo says so */
	size_t first_profile, profile_count; /* kept by register_add_profile */
};

struct node_register {
	struct register_device *devices; /* owned, as are the others */
	size_t device_count, device_cap;
	struct register_profile *profiles;
	size_t profile_count, profile_cap;
	struct register_placement *placements;
	size_t placement_count, placement_cap;
};

void node_register_fini(struct node_register *r);
static inline void node_register_auto_fini(struct node_register *r)
{
	node_register_fini(r);
}
/* A local: hm_auto_node_register r = { 0 }; */
#define hm_auto_node_register __attribute__((cleanup(node_register_auto_fini))) struct node_register

/* Appends a device (without profiles yet), and a profile to the device added last. -HM_ENOMEM. */
int register_add_device(struct node_register *r, const struct register_device *device, struct hm_err *e) HM_MUST_USE;
int register_add_profile(struct node_register *r, const struct register_profile *profile,
			 const struct register_placement *placements, size_t count, struct hm_err *e) HM_MUST_USE;

/* Appends the annotation's value; "[]" where there is no device. */
void register_text_write(const struct node_register *r, struct str *out);

/* Unknown members are ignored, absent ones are zero. -HM_EPROTO (no JSON, or HAMi's text from before v2.8, which is
 * named), -HM_EINVAL with the place of a member of another kind or range, -HM_ELIMIT, -HM_ENOMEM: nothing of the text
 * is taken then. *out needs node_register_fini on success. */
int register_text_parse(const char *text, struct node_register *out, struct hm_err *e) HM_MUST_USE;

/* NVML's product name as the register text has it: "NVIDIA-" before it unless it begins with "NVIDIA". False where it
 * does not fit. */
bool register_type(const char *product, char out[REGISTER_TYPE_BYTES]) HM_MUST_USE;

#endif
