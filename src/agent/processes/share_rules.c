#include "agent/processes/share_rules.h"

#include "core/macros.h"

static bool is_ahead(uint64_t at, uint64_t now)
{
	return at > now && at - now <= SHARE_KEEP_NS;
}

void share_note(struct share *s, uint64_t now, uint64_t spans_ns, const struct region_orders *stands)
{
	if (s->alpha.count > 0 && spans_ns != s->spans_ns) {
		s->at_work_ns = now;
		s->moved = true;
	}
	s->spans_ns = spans_ns;
	s->stands = *stands;
	alpha_note(&s->alpha, now, spans_ns);
	if (is_ahead(stands->open_until_ns, now))
		s->counted_ns = now + SHARE_SETTLE_NS;
}

void share_sample(struct share *s, const struct share_card *card, uint64_t now)
{
	unsigned percent = HM_MIN(s->used_percent, 100U);
	uint64_t used_ns = (card->to_ns - card->from_ns) * percent / 100;

	if (percent > 0)
		s->at_work_ns = now;
	s->busy_ns += HM_MAX(card->to_ns - card->from_ns, SHARE_SAMPLE_LEAST_NS) * percent / 100;
	if (percent > 0 || !s->moved)
		s->unseen = percent > 0 ? 0 : s->unseen;
	else if (s->unseen < SHARE_UNSEEN)
		s->unseen++;
	s->moved = false;
	if (card->from_ns < s->counted_ns)
		return;
	if (s->unseen == SHARE_UNSEEN)
		alpha_forget(&s->alpha);
	else if (card->used_percent == s->used_percent)
		alpha_sample_alone(&s->alpha, card->from_ns, card->to_ns, used_ns);
	else
		alpha_sample(&s->alpha, card->from_ns, card->to_ns, used_ns);
}

/* Written anew when half of it is over. */
static uint64_t keep(uint64_t until, uint64_t now)
{
	return is_ahead(until, now) && until - now > SHARE_KEEP_NS / 2 ? until : now + SHARE_KEEP_NS;
}

/* Policy default limits under contention only. Those of lower priority are held, and so none. */
static bool is_alone(const struct share *s, const struct share_card *card, uint64_t now)
{
	unsigned others = 0;

	for (unsigned p = 0; p <= s->priority; p++)
		others += card->at_work[p];
	return card->seen && !card->strangers && others - share_is_at_work(s->at_work_ns, now) == 0;
}

struct region_orders share_orders(const struct share *s, const struct share_card *card, uint64_t now)
{
	struct region_orders want = { .error_ns = s->error_base + (uint64_t)s->alpha.error_ns };

	if (share_is_limited(s) && s->alpha.value != 0) {
		want.alpha = s->alpha.value;
		want.alpha_until_ns = keep(s->stands.alpha_until_ns, now);
	}
	if (share_is_limited(s) && s->policy == LIMIT_POLICY_DEFAULT && is_alone(s, card, now))
		want.open_until_ns = keep(s->stands.open_until_ns, now);
	if ((s->priority > 0 && card->at_work[0] > 0) || (s->held && s->policy != LIMIT_POLICY_DISABLE))
		want.hold_until_ns = keep(s->stands.hold_until_ns, now);
	return want;
}
