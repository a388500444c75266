/* A claim: who holds what. One file each in <state>/claims/<number>, written by the agent, read by hami-smi.
 * Format and versions: docs/contracts/claims.md. Text, one "key=value" a line, values of `text` kind escaped (\n,
 * \\ ...):
 *
 *     hami-vgpu-claim 2                                                (1 is read: without the keys marked 2)
 *     number=17
 *     state=active
 *     pod_uid=... / pod_namespace=... / pod_name=... / container=...   (empty where not known)
 *     resource=hami.com/vgpu
 *     cdi=hami.io/vgpu=v.17                                            (empty in classic binding)
 *     created_ms=1764447654123                                         (wall clock)
 *     device=<device id>                                               (one line each)
 *     entry=0                                                          (index among the pod's entries; 0 for slices)
 *     priority=<0|1> policy=... oversubscribe=<0|1>                    (2; a line each, as in the limit file)
 *     uncontrolled=<0|1> signature=...                                 (2; libvgpu is left out; the pod's accepted
 *                                                                       signature, may be empty)
 *     card=<uuid> memory=<bytes> cores=<percent> slot=<first number>   (one line each; 2: " mig=<uuid> gi=<n> ci=<n>"
 * may follow) end
 */
#ifndef HM_MODEL_CLAIM_TEXT_H
#define HM_MODEL_CLAIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "contract/names.h"
#include "core/cleanup.h"
#include "core/err.h"

enum {
	CLAIM_MAX_DEVICES = HM_MAX_CARDS * HM_MAX_SLOTS_PER_CARD,
	CLAIM_MAX_BYTES = 2 << 20, /* of a file; a reader refuses larger ones */
	CLAIM_SIGNATURE_BYTES = 256,
};

enum claim_state {
	CLAIM_ALLOCATED, /* Allocate answered (classic: already written); its container has not started */
	CLAIM_ACTIVE,    /* PreStart wrote the container's files */
	CLAIM_ENDED      /* the holder is gone, the files are being removed */
};

/* As the limit file's policy. */
enum claim_policy { CLAIM_POLICY_DEFAULT, CLAIM_POLICY_FORCE, CLAIM_POLICY_DISABLE };

struct claim_card {
	char uuid[HM_UUID_BYTES]; /* of the GPU */
	char mig[HM_UUID_BYTES];  /* of the MIG device on it that the container gets; "": none */
	unsigned gi, ci;          /* its numbers */
	uint64_t memory_bytes;
	unsigned cores;
	unsigned slot;
};

struct claim {
	uint64_t number;
	enum claim_state state;
	char pod_uid[64], pod_namespace[256], pod_name[256], container[256];
	char resource[256];
	char cdi[64];
	uint64_t created_ms;
	unsigned entry;
	unsigned priority; /* 0: high, 1: low, the usual */
	enum claim_policy policy;
	bool oversubscribe;
	bool uncontrolled; /* libvgpu is not preloaded: the pod asked for that and --compat grants it */
	char signature[CLAIM_SIGNATURE_BYTES];
	char (*devices)[HM_DEVICE_ID_BYTES]; /* owned */
	size_t device_count;
	struct claim_card cards[HM_MAX_CARDS];
	size_t card_count;
};

void claim_fini(struct claim *c);

/* It holds MIG devices: the card itself keeps their limits, libvgpu has none to keep. */
bool claim_is_mig(const struct claim *c);

/* Appends the file's text. */
void claim_write(const struct claim *c, struct str *out);
/* Reads one; -HM_EPROTO names line and reason, -HM_EUNSUPPORTED an unknown version. *out needs claim_fini on success.
 */
int claim_parse(const char *text, size_t n, struct claim *out, struct hm_err *e) HM_MUST_USE;

const char *claim_state_name(enum claim_state state);    /* "allocated", "active", "ended" */
const char *claim_policy_name(enum claim_policy policy); /* "default", "force", "disable" */
/* False for any other text. */
bool claim_policy_of(const char *name, enum claim_policy *out) HM_MUST_USE;

#endif
