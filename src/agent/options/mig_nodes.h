/* The device nodes that open a MIG instance: /dev/nvidia-caps/nvidia-cap<minor>, whose numbers the driver lists in
 * /proc/driver/nvidia-caps/mig-minors as "gpu0/gi3/access 31" and "gpu0/gi3/ci0/access 32" (gpu: the card's minor). */
#ifndef HM_AGENT_OPTIONS_MIG_NODES_H
#define HM_AGENT_OPTIONS_MIG_NODES_H

#include <stddef.h>

#include "cdi/spec.h"
#include "core/err.h"
#include "core/macros.h"

#define MIG_MINORS "/proc/driver/nvidia-caps/mig-minors"

/* An instance of the card with this minor. */
struct mig_node {
	unsigned card_minor, gi, ci;
};

/* The two minors, in the list's text. -HM_ENOTFOUND: it has no such instance. */
int mig_nodes_find(const char *text, size_t n, const struct mig_node *of, unsigned *gi_minor, unsigned *ci_minor,
		   struct hm_err *e) HM_MUST_USE;

/* Appends both nodes to *out; `root` (NULL: "/") holds dev on the node. -HM_EAGAIN where list or instance is not there.
 */
int mig_nodes_add(const char *list, const char *root, const struct mig_node *of, struct cdi_edits *out,
		  struct hm_err *e) HM_MUST_USE;

#endif
