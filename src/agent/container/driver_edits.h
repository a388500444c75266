/* What of the driver a container with cards needs: libraries, device nodes, hooks. From the driver's own CDI spec,
 * where one is named, else from the driver and device roots; in mode hami those by HAMi's options, where we see the
 * driver at another path than the node does. */
#ifndef HM_AGENT_CONTAINER_DRIVER_EDITS_H
#define HM_AGENT_CONTAINER_DRIVER_EDITS_H

#include "agent/options/options.h"
#include "cdi/spec.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/claim_text.h"
#include "model/inventory.h"

struct driver_edits;

/* Options are borrowed. */
int driver_edits_new(const struct agent_options *o, struct driver_edits **out, struct hm_err *e) HM_MUST_USE;
void driver_edits_free(struct driver_edits *d);
HM_DEFINE_AUTO(driver_edits, driver_edits_free);

/* Append to *out: what every container gets; what comes with a card. `alone`: NVIDIA's runtime does not bring the
 * libraries, so that HAMi's driver root counts for them. The spec is read anew when it changed. -HM_EAGAIN
 * where the spec, the card in it or its device node is not there now. */
int driver_edits_common(struct driver_edits *d, bool alone, struct cdi_edits *out, struct hm_err *e) HM_MUST_USE;
int driver_edits_card(struct driver_edits *d, const struct card *card, struct cdi_edits *out,
		      struct hm_err *e) HM_MUST_USE;
/* What comes with a MIG device of the card: its nodes and, unless `beside` another of the same card that has brought
 * it, the card's own. A driver's spec may have it; else, as with one made since, the card's node is enough. */
int driver_edits_mig(struct driver_edits *d, const struct card *card, const struct claim_card *mig, bool beside,
		     struct cdi_edits *out, struct hm_err *e) HM_MUST_USE;

#endif
