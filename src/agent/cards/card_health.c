#include "agent/cards/card_health.h"

#include <stdlib.h>
#include <string.h>

#include "abi/nvml.h"
#include "core/fmt.h"
#include "io/json_write.h"

struct card_health {
	struct health_policy policy;
	uint64_t recovery_ms;
	struct card_listener listener;
	bool no_driver;
	struct card_state cards[HM_MAX_CARDS];
	size_t count;
};

static struct card_state *find(const struct card_health *h, const char *uuid)
{
	for (size_t i = 0; i < h->count; i++)
		if (strcmp(h->cards[i].uuid, uuid) == 0)
			return (struct card_state *)(uintptr_t)&h->cards[i];
	return NULL;
}

/* ---- turning */

static void mark(struct card_health *h, struct card_state *s, enum xid_class class, unsigned xid, const char *why,
		 struct card_now now)
{
	bool first = !s->sick, reset = class == XID_RESET;

	s->well_ms = 0;
	if (reset)
		s->away = false; /* what was shown before says nothing of this error */
	if (!first && (s->needs_reset || !reset))
		return;
	s->needs_reset = reset;
	s->xid = xid;
	hm_fmt(s->why, sizeof s->why, "%s", why);
	if (!first) {
		h->listener.worse(h->listener.arg, s);
		return;
	}
	s->sick = true;
	s->away = false;
	s->since_wall_ms = now.wall_ms;
	s->turned_sick++;
	h->listener.turned(h->listener.arg, s);
}

static void heal(struct card_health *h, struct card_state *s)
{
	s->sick = s->needs_reset = false;
	s->recovered++;
	h->listener.turned(h->listener.arg, s);
	s->since_wall_ms = s->well_ms = 0;
}

/* ---- what was seen */

static void count_xid(struct card_state *s, unsigned xid, unsigned count)
{
	for (size_t i = 0; i < CARD_XIDS; i++) {
		/* The last place is for all that found none. */
		if (s->xids[i].count == 0)
			s->xids[i].xid = i + 1 < CARD_XIDS ? xid : 0;
		if (s->xids[i].xid != xid && i + 1 < CARD_XIDS)
			continue;
		s->xids[i].count += count;
		return;
	}
}

static void note_double_bit(struct card_health *h, struct card_state *s, const struct gpu_vitals *v,
			    struct card_now now)
{
	/* An error that the hardware contained is a program's; where the driver tells what it wants done, it knows. */
	bool contained = v != NULL && v->answer == GPU_ANSWERS && v->action == NVML_GPU_RECOVERY_ACTION_NONE;

	if (!contained && h->policy.ecc)
		mark(h, s, XID_CARD, 0, "uncorrectable ECC error", now);
}

/* Events of a MIG instance name it; the instances of a card fall with it, and nothing narrower is known of an error
 * that is the card's. */
static void note_event(struct card_health *h, struct card_state *s, const struct gpu_event *e,
		       const struct gpu_vitals *v, struct card_now now)
{
	enum xid_class class;
	char why[sizeof s->why];

	if (e->kind == GPU_EVENT_DOUBLE_BIT) {
		note_double_bit(h, s, v, now);
		return;
	}
	count_xid(s, e->xid, e->count);
	class = health_policy_class(&h->policy, e->xid);
	if (class < XID_CARD)
		return;
	hm_fmt(why, sizeof why, "Xid %u: %s", e->xid, xid_words(e->xid));
	mark(h, s, class, e->xid, why, now);
}

/* Counts begin anew at a reset. */
static void note_ecc(struct card_health *h, struct card_state *s, const struct gpu_vitals *v, bool has_events,
		     struct card_now now)
{
	if (!v->counts_ecc)
		return;
	if (s->ecc_known && v->uncorrected < s->uncorrected)
		s->away = true;
	if (s->ecc_known && v->uncorrected > s->uncorrected && !has_events)
		note_double_bit(h, s, v, now);
	s->ecc_known = true;
	s->uncorrected = v->uncorrected;
}

static bool is_reset(const struct card_state *s, const struct gpu_vitals *v)
{
	if (!s->needs_reset || v->action == NVML_GPU_RECOVERY_ACTION_NONE)
		return true;
	return s->away && !v->rows_pending && !v->rows_failed;
}

static void note_answer(struct card_health *h, struct card_state *s, const struct gpu_vitals *v, struct card_now now)
{
	char why[sizeof s->why];

	if (v->action > NVML_GPU_RECOVERY_ACTION_NONE && h->policy.lost) {
		bool reset = v->action != NVML_GPU_RECOVERY_ACTION_DRAIN_P2P;

		hm_fmt(why, sizeof why, "the driver asks for: %s", gpu_action_text(v->action));
		mark(h, s, reset ? XID_RESET : XID_CARD, 0, why, now);
		return;
	}
	if (!s->sick)
		return;
	if (!is_reset(s, v) || v->action > NVML_GPU_RECOVERY_ACTION_NONE) {
		s->well_ms = 0;
		return;
	}
	if (s->well_ms == 0 || now.ms - s->asked_ms > CARD_GAP_MS)
		s->well_ms = now.ms;
	if (h->recovery_ms > 0 && now.ms - s->well_ms >= h->recovery_ms)
		heal(h, s);
}

static void note_vitals(struct card_health *h, struct card_state *s, const struct gpu_vitals *v, bool has_events,
			struct card_now now)
{
	char why[sizeof s->why];

	if (v->answer == GPU_ANSWERS) {
		note_ecc(h, s, v, has_events, now);
		note_answer(h, s, v, now);
		s->asked_ms = now.ms;
		return;
	}
	s->well_ms = 0;
	if (v->answer == GPU_DRIVER_GONE || !h->policy.lost)
		return;
	hm_fmt(why, sizeof why, "%s: %s", v->answer == GPU_LOST ? "lost" : "it errs", v->why);
	mark(h, s, XID_CARD, 0, why, now);
	s->away |= v->answer == GPU_LOST;
}

void card_health_note(struct card_health *h, const char *uuid, const struct gpu_event *events, size_t count,
		      const struct gpu_vitals *vitals, bool has_events, struct card_now now)
{
	struct card_state *s = find(h, uuid);

	if (s == NULL)
		return;
	for (size_t i = 0; i < count; i++)
		note_event(h, s, &events[i], vitals, now);
	if (vitals != NULL)
		note_vitals(h, s, vitals, has_events, now);
}

/* ---- scans */

static struct card_state *place_for(struct card_health *h, const struct inventory *scanned)
{
	if (h->count < HM_MAX_CARDS)
		return &h->cards[h->count++];
	for (size_t i = 0; i < h->count; i++)
		if (inventory_find(scanned, h->cards[i].uuid) == NULL)
			return &h->cards[i];
	return NULL;
}

static void new_driver(struct card_health *h)
{
	h->no_driver = false;
	for (size_t i = 0; i < h->count; i++) {
		h->cards[i].away = true;
		h->cards[i].ecc_known = false;
		h->cards[i].well_ms = 0;
	}
}

void card_health_recall(struct card_health *h, const struct card_state *sick)
{
	struct card_state *s;

	if (h->count == HM_MAX_CARDS || find(h, sick->uuid) != NULL)
		return;
	s = &h->cards[h->count++];
	*s = (struct card_state) { .sick = true,
				   .recalled = true,
				   .needs_reset = sick->needs_reset,
				   .xid = sick->xid,
				   .since_wall_ms = sick->since_wall_ms,
				   .ecc_known = sick->ecc_known,
				   .uncorrected = sick->uncorrected };
	hm_fmt(s->uuid, sizeof s->uuid, "%s", sick->uuid);
	hm_fmt(s->why, sizeof s->why, "%s", sick->why);
}

static void settle_recalled(struct card_health *h, const struct inventory *scanned)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->count; i++) {
		bool found = inventory_find(scanned, h->cards[i].uuid) != NULL;

		if (h->cards[i].recalled && !found)
			continue;
		h->cards[i].recalled = false;
		h->cards[kept++] = h->cards[i];
	}
	h->count = kept;
}

void card_health_scanned(struct card_health *h, const struct inventory *scanned, struct card_now now)
{
	if (scanned == NULL) {
		h->no_driver = true;
		return;
	}
	settle_recalled(h, scanned);
	if (h->no_driver)
		new_driver(h);
	for (size_t i = 0; i < h->count && h->policy.lost; i++) {
		if (inventory_find(scanned, h->cards[i].uuid) != NULL)
			continue;
		mark(h, &h->cards[i], XID_CARD, 0, "lost", now);
		h->cards[i].away = true;
	}
	for (size_t i = 0; i < scanned->count; i++) {
		struct card_state *s;

		if (find(h, scanned->cards[i].uuid) != NULL || (s = place_for(h, scanned)) == NULL)
			continue;
		*s = (struct card_state) { .sick = false };
		hm_fmt(s->uuid, sizeof s->uuid, "%s", scanned->cards[i].uuid);
	}
}

/* ---- asking */

bool card_health_is_sick(const struct card_health *h, const char *uuid)
{
	const struct card_state *s = find(h, uuid);

	return s != NULL && s->sick;
}

size_t card_health_count(const struct card_health *h)
{
	return h->count;
}

const struct card_state *card_health_at(const struct card_health *h, size_t i)
{
	return &h->cards[i];
}

void card_health_json(const struct card_health *h, struct str *out)
{
	bool first = true;

	str_addc(out, '[');
	for (size_t i = 0; i < h->count; i++) {
		const struct card_state *s = &h->cards[i];

		if (!s->sick)
			continue;
		str_add(out, first ? "{" : ",{");
		first = false;
		json_add_member(out, "id", s->uuid);
		json_add_member(out, "reason", s->why);
		if (s->xid != 0)
			str_addf(out, ",\"xid\":%u", s->xid);
		str_addf(out, ",\"needsReset\":%s,\"since\":\"", s->needs_reset ? "true" : "false");
		str_add_utc(out, s->since_wall_ms);
		str_add(out, "Z\"}");
	}
	str_addc(out, ']');
}

/* ---- */

int card_health_new(const struct health_policy *policy, uint64_t recovery_ms, const struct card_listener *listener,
		    struct card_health **out, struct hm_err *e)
{
	struct card_health *h = calloc(1, sizeof *h);

	if (h == NULL)
		return hm_err_set(e, HM_ENOMEM, "health of the cards");
	h->policy = *policy;
	h->recovery_ms = recovery_ms;
	h->listener = *listener;
	*out = h;
	return 0;
}

void card_health_free(struct card_health *h)
{
	free(h);
}
