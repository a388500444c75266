/* core/v1 Events, best effort and never in anybody's way. The same event again (object, type, reason, message) raises
 * the first one's count instead of making another (by a patch, or an update where patching is not allowed). An object
 * that says too much is cut: a burst of 25, then one each 5 minutes, as client-go does. While the API server is away
 * they wait, counting; KUBE_MAX_EVENTS different ones are kept, the oldest go first. */
#ifndef HM_KUBE_EVENT_H
#define HM_KUBE_EVENT_H

#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "kube/client.h"

enum { KUBE_MAX_EVENTS = 512, KUBE_EVENT_BURST = 25, KUBE_EVENT_REFILL_MS = 300000 };

struct kube_events;

/* What an event is about. All borrowed. */
struct kube_event_object {
	const char *api_version, *kind; /* "v1", "Pod" */
	const char *name_space;         /* NULL or "": none, its events are in "default" */
	const char *name, *uid;
};

struct kube_events_state {
	uint64_t sent;    /* POST and PATCH that the server took */
	uint64_t merged;  /* raised another's count */
	uint64_t limited; /* cut by the rate */
	uint64_t dropped; /* refused by the server, or pushed out by newer ones unsent */
};

/* `component` and `host` say who reports; copied. The client outlives it. */
int kube_events_new(struct kube_client *c, const char *component, const char *host, struct kube_events **out,
		    struct hm_err *e) HM_MUST_USE;
void kube_events_free(struct kube_events *events); /* what is unsent is lost */
HM_DEFINE_AUTO(kube_events, kube_events_free);

/* type: "Normal" or "Warning"; reason: a word, "GPULost"; message: cut after 1,000 bytes. Sent from the loop. What
 * fails is counted. */
void kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
		      const char *reason, const char *message);

void kube_events_state(const struct kube_events *events, struct kube_events_state *out);

#endif
