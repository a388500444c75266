/* --mig-strategy=mixed: a resource for each profile that the node's MIG devices have, "nvidia.com/mig-<profile>", with
 * a registration and a socket of its own. One that was there stays, with no devices where there are none any more: the
 * kubelet has no way to be told that a resource is gone. */
#ifndef HM_AGENT_SERVE_MIG_STATIC_H
#define HM_AGENT_SERVE_MIG_STATIC_H

#include "agent/cards/fleet.h"
#include "agent/serve/resource.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"

enum { MIG_STATIC_MAX = 32 };

struct mig_static;

/* `resource` is each resource's, but socket; what it points at is borrowed. */
int mig_static_new(struct loop *l, const struct resource_config *resource, struct mig_static **out,
		   struct hm_err *e) HM_MUST_USE;
void mig_static_free(struct mig_static *m);
HM_DEFINE_AUTO(mig_static, mig_static_free);

/* The cards are these now; borrowed until the next take. New resources are made and registered. */
int mig_static_take(struct mig_static *m, const struct fleet *f, struct hm_err *e) HM_MUST_USE;
void mig_static_stop(struct mig_static *m);

size_t mig_static_count(const struct mig_static *m);
struct resource *mig_static_at(const struct mig_static *m, size_t i);

#endif
