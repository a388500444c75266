/* What a container with a vGPU is given: environment, mounts, device nodes, as CDI edits. Late binding writes them into
 * a spec, classic binding into the Allocate answer. docs/contracts/container.md */
#ifndef HM_AGENT_EDITS_H
#define HM_AGENT_EDITS_H

#include "agent/options.h"
#include "agent/paths.h"
#include "cdi/spec.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/claim_text.h"
#include "model/inventory.h"

struct edits;

/* Options, paths and library (the installed libvgpu.so) are borrowed. */
int edits_new(const struct agent_options *o, const struct agent_paths *paths, const char *library, struct edits **out,
	      struct hm_err *e) HM_MUST_USE;
void edits_free(struct edits *m);
HM_DEFINE_AUTO(edits, edits_free);

/* The edits for this claim's cards, to be freed with cdi_edits_fini. The driver's own come from its CDI spec (read anew
 * when it changed), where one is named, else from the driver and device roots; ours come last and win. -HM_EAGAIN where
 * a card or its device node is not there now. */
int edits_make(struct edits *m, const struct claim *c, const struct inventory *inv, struct cdi_edits *out,
	       struct hm_err *e) HM_MUST_USE;

#endif
