/* One way to ask for a slice, as one resource of the kubelet: how the node's cards become device ids, what a set of ids
 * amounts to, and which ids are preferred. Its classes: offer_slices.c (hami.com/vgpu) and those that follow HAMi's
 * scheduler. Nothing here waits for NVML, the network or another pod. */
#ifndef HM_AGENT_SERVE_OFFER_H
#define HM_AGENT_SERVE_OFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/cards/fleet.h"
#include "agent/claims/prestart.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "kubelet/device_plugin.h"
#include "model/claim_text.h"

struct offer;

struct offer_class {
	const char *name;
	/* The kubelet's ids say what a container holds: one that lives keeps its ids from others (PreStart errs).
	 * False: the ids are counters. */
	bool ids_are_held;
	/* A container whose Allocate another plugin answered, before us, starts with what that gave it. */
	bool others_start;
	/* How long an Allocate call may wait for what `claim` says -HM_EAGAIN of; it blocks the kubelet. 0: not at
	 * all. */
	uint32_t allocate_wait_ms;

	/* The cards are these now; borrowed until the next take. -HM_EINVAL where they cannot be offered as configured:
	 * the former ones stay then. */
	int (*take)(struct offer *o, const struct fleet *f, struct hm_err *e);
	/* The device list; *out needs fleet_devices_fini. */
	int (*list)(const struct offer *o, struct fleet_devices *out, struct hm_err *e);
	/* GetPreferredAllocation of one container: up to req->size of the request's own strings to out (room for all
	 * available and must), *count of them. Never errs for what the kubelet says about devices. */
	int (*prefer)(struct offer *o, const struct dp_preferred_request *req, const char **out, size_t *count,
		      struct hm_err *e);
	/* An Allocate call begins; `claim` comes for each of its containers. May be NULL. */
	void (*call)(struct offer *o);
	/* Allocate: the claim that these ids make (state ALLOCATED; who it is for as far as it is known). Needs
	 * claim_fini on success. */
	int (*claim)(struct offer *o, const char *const *ids, size_t count, uint64_t number, struct claim *out,
		     struct hm_err *e);
	/* The answer to it is made, and all that it names is written; or not: the pod is rejected. May be NULL. */
	void (*answered)(struct offer *o, const struct claim *c, bool ok);
	/* PreStart: what the target holds. `old` is the claim with its number, or NULL. The caller sets state, pod and
	 * container. -HM_EAGAIN: trying again soon may help; the message is read by the pod's owner. Needs claim_fini
	 * on success. */
	int (*start)(struct offer *o, const struct prestart_target *target, const char *const *ids, size_t count,
		     const struct claim *old, struct claim *out, struct hm_err *e);
	/* The files of this claim are written: its container may start. May be NULL. */
	void (*started)(struct offer *o, const struct claim *c);
	void (*free)(struct offer *o);
};

/* The head of each class's own struct. */
struct offer {
	const struct offer_class *class;
	const char *resource; /* borrowed */
};

static inline void offer_free(struct offer *o)
{
	if (o != NULL)
		o->class->free(o);
}
HM_DEFINE_AUTO(offer, offer_free);

#endif
