#include "sched/lead/election.h"

#include <string.h>

#include "core/check.h"
#include "core/fmt.h"

/* Identities of client-go's programs: "<host>_<UUID>". No host name has one. */
static const char identity_separator = '_';

int election_check_rules(const struct election_rules *r, struct hm_err *e)
{
	if (r->duration_ms < 1000 || r->duration_ms % 1000 != 0 || r->duration_ms / 1000 > KUBE_LEASE_MAX_S)
		return hm_err_set(e, HM_EINVAL, "lease duration %u ms: whole seconds, 1 to %d", r->duration_ms,
				  (int)KUBE_LEASE_MAX_S);
	if (r->renew_ms >= r->duration_ms)
		return hm_err_set(e, HM_EINVAL, "renew deadline %u ms is not shorter than the lease duration of %u ms",
				  r->renew_ms, r->duration_ms);
	if (r->retry_ms == 0 || r->retry_ms >= r->renew_ms)
		return hm_err_set(e, HM_EINVAL,
				  "retry period %u ms: at least 1, and shorter than the renew deadline of %u ms",
				  r->retry_ms, r->renew_ms);
	return 0;
}

void election_init(struct election *v, const struct election_rules *rules, const char *me)
{
	*v = (struct election) { .rules = *rules };
	CHECK(me[0] != '\0');
	hm_fmt(v->me, sizeof v->me, "%s", me);
}

void election_init_follow(struct election *v, const struct election_rules *rules, const char *host)
{
	election_init(v, rules, host);
	v->follows = true;
}

/* The version is left out: whoever puts a label on the Lease renews nothing. */
static bool is_same(const struct kube_lease *a, const struct kube_lease *b)
{
	return strcmp(a->holder, b->holder) == 0 && strcmp(a->renewed, b->renewed) == 0 &&
	       strcmp(a->acquired, b->acquired) == 0 && a->duration_s == b->duration_s &&
	       a->transitions == b->transitions;
}

static bool is_ours(const struct election *v, const struct kube_lease *lease)
{
	size_t n = strlen(v->me);

	if (!v->follows)
		return strcmp(lease->holder, v->me) == 0;
	return strncmp(lease->holder, v->me, n) == 0 && lease->holder[n] == identity_separator;
}

static bool is_mine(const struct election *v)
{
	return is_ours(v, &v->seen);
}

static bool is_anothers(const struct election *v, const struct kube_lease *lease)
{
	return lease->holder[0] != '\0' && !is_ours(v, lease);
}

static uint64_t duration_ms(const struct election *v)
{
	return v->seen.duration_s > 0 ? (uint64_t)v->seen.duration_s * 1000 : v->rules.duration_ms;
}

static void wait_until(struct election *v, uint64_t ms)
{
	v->from_ms = HM_MAX(v->from_ms, ms);
}

/* A Lease that was left says a duration of a second. */
static uint64_t unseen_ms(const struct election *v, const struct kube_lease *next)
{
	uint64_t longest_ms = HM_MAX((uint64_t)next->duration_s * 1000, (uint64_t)v->rules.duration_ms);

	return v->seen_ms != 0 ? HM_MAX(longest_ms, duration_ms(v)) : longest_ms;
}

/* Whether somebody may have led whom we did not see. At first sight that is a former process of ours, beside a
 * kube-scheduler that went on. Of another's that is seen now we shall see the end. */
static bool is_past_unknown(const struct election *v, const struct kube_lease *next)
{
	if (v->seen_ms == 0)
		return !v->absent && !is_anothers(v, next);
	return v->blind && (strcmp(next->holder, v->seen.holder) != 0 || next->transitions != v->seen.transitions);
}

/* One that is gone may have been renewed after we last saw it; of one that has another holder we saw all, unless we
 * were blind. */
static void note_end(struct election *v, const struct kube_lease *next, uint64_t now_ms)
{
	if (v->follows && next != NULL && is_past_unknown(v, next))
		wait_until(v, now_ms + unseen_ms(v, next));
	if (v->seen_ms == 0 || v->absent || !is_anothers(v, &v->seen))
		return;
	if (next == NULL)
		wait_until(v, now_ms + duration_ms(v));
	else if (strcmp(next->holder, v->seen.holder) != 0)
		wait_until(v, v->seen_ms + duration_ms(v));
}

void election_be_blind(struct election *v, bool blind)
{
	v->blind = blind;
}

void election_see(struct election *v, const struct kube_lease *lease, uint64_t now_ms)
{
	note_end(v, lease, now_ms);
	if (lease == NULL) {
		v->absent = true;
		v->known = false;
		v->until_ms = 0;
		return;
	}
	if (v->absent || v->seen_ms == 0 || !is_same(lease, &v->seen))
		v->seen_ms = now_ms;
	v->seen = *lease;
	v->known = true;
	v->absent = false;
	if (!is_mine(v))
		v->until_ms = 0;
}

enum election_step election_next(const struct election *v, uint64_t now_ms)
{
	if (v->absent)
		return ELECTION_MAKE;
	if (!v->known)
		return ELECTION_READ;
	if (is_mine(v) && now_ms < v->until_ms)
		return ELECTION_RENEW;
	if (v->seen.holder[0] == '\0' || is_mine(v) || now_ms - v->seen_ms >= duration_ms(v))
		return ELECTION_TAKE;
	return ELECTION_WAIT;
}

void election_write(const struct election *v, enum election_step step, uint64_t wall_ms, struct kube_lease_write *out)
{
	*out = (struct kube_lease_write) {
		.holder = v->me,
		.duration_s = v->rules.duration_ms / 1000,
		.transitions = v->seen.transitions,
		.acquired_ms = step != ELECTION_RENEW ? wall_ms : 0,
		.renewed_ms = wall_ms,
	};
	if (step == ELECTION_MAKE)
		out->transitions = 0;
	else if (!is_mine(v) && out->transitions < INT32_MAX)
		out->transitions++;
}

/* A duration of 0 is refused by the API server. */
void election_write_release(const struct election *v, uint64_t wall_ms, struct kube_lease_write *out)
{
	*out = (struct kube_lease_write) {
		.holder = "",
		.duration_s = 1,
		.transitions = v->seen.transitions,
		.renewed_ms = wall_ms,
	};
}

void election_won(struct election *v, const struct kube_lease *answer, uint64_t sent_ms)
{
	bool was_left = v->known && v->seen.holder[0] == '\0';

	election_see(v, answer, sent_ms);
	if (!is_mine(v))
		return;
	if (was_left)
		v->from_ms = 0;
	v->until_ms = sent_ms + v->rules.renew_ms;
	v->free_ms = sent_ms + v->rules.duration_ms;
}

void election_conflict(struct election *v)
{
	v->known = v->absent = false;
}

void election_resign(struct election *v)
{
	v->until_ms = 0;
	v->known = v->absent = false;
}

void election_follow(struct election *v, uint64_t renewed_ms)
{
	uint64_t since_ms = HM_MIN(v->seen_ms, renewed_ms);

	v->until_ms = 0;
	if (!v->known || !is_mine(v))
		return;
	v->until_ms = since_ms + duration_ms(v) * 2 / 3;
	v->free_ms = since_ms + duration_ms(v);
}
