/* What a container with a vGPU is given: environment, mounts, device nodes, as CDI edits. Late binding writes them into
 * a spec, classic binding into the Allocate answer. docs/contracts/container.md */
#ifndef HM_AGENT_CONTAINER_EDITS_H
#define HM_AGENT_CONTAINER_EDITS_H

#include "agent/container/hami_answer.h"
#include "agent/options/options.h"
#include "agent/options/paths.h"
#include "cdi/spec.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/claim_text.h"
#include "model/inventory.h"

struct edits;

enum edits_way {
	EDITS_SPEC,  /* of a CDI spec: what it says wins over pod and image */
	EDITS_ANSWER /* of Allocate: its environment loses to the pod's */
};

/* All borrowed: options, paths, library (the installed libvgpu.so), and what HAMi's resources get besides (NULL where
 * slices are offered). */
int edits_new(const struct agent_options *o, const struct agent_paths *paths, const char *library,
	      const struct hami_answer_config *hami, struct edits **out, struct hm_err *e) HM_MUST_USE;
void edits_free(struct edits *m);
HM_DEFINE_AUTO(edits, edits_free);

/* The edits for this claim's cards, to be freed with cdi_edits_fini: the driver's own (agent/container/driver_edits.h;
 * not in HAMi's answer), then HAMi's, then ours, which come last and win. -HM_EAGAIN where a card or its device node is
 * not there now. */
int edits_make(struct edits *m, const struct claim *c, const struct inventory *inv, enum edits_way way,
	       struct cdi_edits *out, struct hm_err *e) HM_MUST_USE;

const struct hami_answer_config *edits_hami(const struct edits *m); /* NULL: slices */
struct driver_edits *edits_driver(struct edits *m);

#endif
