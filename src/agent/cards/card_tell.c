#include "agent/cards/card_tell.h"

#include <string.h>

#include "base/log.h"

static bool holds(const struct claim *c, const char *uuid)
{
	for (size_t i = 0; c->state != CLAIM_ENDED && i < c->card_count; i++)
		if (strcmp(c->cards[i].uuid, uuid) == 0)
			return true;
	return false;
}

/* Containers of one pod say the same, and equal events are one. */
static void tell_pods(struct cluster *c, const struct claims *claims, const struct card_state *s)
{
	for (size_t i = 0; i < claims_count(claims); i++) {
		const struct claim *claim = claims_at(claims, i);
		const struct cluster_pod pod = { claim->pod_namespace, claim->pod_name, claim->pod_uid };

		if (!holds(claim, s->uuid) || pod.name[0] == '\0' || pod.uid[0] == '\0')
			continue;
		if (s->sick)
			cluster_tell_pod(c, &pod, "Warning", "GPUUnhealthy", "a GPU of this pod is sick: %s: %s",
					 s->uuid, s->why);
		else
			cluster_tell_pod(c, &pod, "Normal", "GPUHealthy", "a GPU of this pod is well again: %s",
					 s->uuid);
	}
}

void card_tell(struct cluster *c, const struct claims *claims, const struct card_state *s, struct card_now now)
{
	if (s->sick) {
		log_error("a card is sick: no new pods on it", KV("uuid", s->uuid), KV("why", s->why),
			  KV("well_again", s->needs_reset ? "after a reset" : "when it has answered for a while"));
		cluster_tell_node(c, "Warning", "GPUUnhealthy", "%s: %s", s->uuid, s->why);
	} else {
		log_info("a card is well again", KV("uuid", s->uuid), KV("was", s->why),
			 KV_U64("sick_s", (now.wall_ms - s->since_wall_ms) / 1000));
		cluster_tell_node(c, "Normal", "GPUHealthy", "%s is well again (was: %s)", s->uuid, s->why);
	}
	tell_pods(c, claims, s);
}
