/* The CDI specs of HAMi's plugin (and NVIDIA's), "k8s.device-plugin.nvidia.com-<class>.json": a device for each card
 * or MIG device, and for what comes besides the cards. Allocate answers of classic binding name them. With late binding
 * a container has a spec of its own, and of this only the extras. */
#ifndef HM_AGENT_CONTAINER_HAMI_CDI_H
#define HM_AGENT_CONTAINER_HAMI_CDI_H

#include "agent/container/driver_edits.h"
#include "agent/container/hami_answer.h"
#include "cdi/spec.h"
#include "core/err.h"
#include "model/inventory.h"

/* Writes the specs into the folder where their content is new, and removes those of extras that are not wanted or not
 * there; *extra_specs: which stand. A card that the driver's spec or /dev does not have is left out, with a word in the
 * log. At start and whenever the cards change. */
int hami_cdi_write(const struct hami_answer_config *a, struct driver_edits *driver, const struct inventory *inv,
		   const char *folder, unsigned *extra_specs, struct hm_err *e) HM_MUST_USE;

/* Adds the nodes and files of the extras, those that are there. */
int hami_cdi_add_extras(const struct hami_answer_config *a, struct cdi_edits *out, struct hm_err *e) HM_MUST_USE;

#endif
