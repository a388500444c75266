/* Who leads, by a Lease: the rules alone. Reads no clock and asks nobody.
 *
 *  1. A Lease is the holder's for its duration, counted on our own clock from when we first saw it as it is. What it
 *     says of times is another clock's and is only compared for being another text.
 *  2. It may be taken when it is nobody's, ours, or was not renewed for its duration; always under the version that was
 *     read, so that of two who try one gets a conflict.
 *  3. Who took or renewed it leads for the renewal limit, counted from when the request was SENT, and stops by itself
 *     then. The limit is shorter than the duration. Nobody else leads before the whole duration is over, counted from
 *     the same moment (election_alone_ms): what a leader sends is to be over by then.
 *  4. A Lease that says another holder ends it at once.
 *  5. Who takes what another holds no more, but whose duration is not over, waits for that before he leads: the other's
 *     last word may still be on its way. A Lease that was left by its holder says that there is none.
 *
 * Or we only look on, at the Lease of the kube-scheduler in our own pod (election_follow): it leads as long as it
 * renews, two thirds of the duration being the limit (client-go's own proportion). That one is left by a program that
 * knows nothing of ours, so leaving it says nothing; and what it says of times is our own machine's clock. A former
 * process of ours may have led by the same Lease: who sees it for the first time as nobody's or ours waits for a whole
 * duration, and so does who sees another holder after a time in which he saw nothing. Where there is no Lease yet
 * nobody led. */
#ifndef HM_SCHED_LEAD_ELECTION_H
#define HM_SCHED_LEAD_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/err.h"
#include "kube/lease.h"

/* As client-go names them. */
struct election_rules {
	uint32_t duration_ms; /* whole seconds; the API has no others */
	uint32_t renew_ms;    /* the renewal limit, shorter */
	uint32_t retry_ms;    /* between two tries, shorter again */
};

/* -HM_EINVAL says which of the three does not fit. */
int election_check_rules(const struct election_rules *rules, struct hm_err *e) HM_MUST_USE;

struct election {
	struct election_rules rules;
	char me[KUBE_HOLDER_BYTES];
	bool follows; /* me: our host; the Lease's holder is "<host>_<anything>" */
	struct kube_lease seen;
	bool known;        /* `seen` is what the server last said */
	bool absent;       /* it last said that there is none */
	bool blind;        /* it may say what it likes and we do not hear it all */
	uint64_t seen_ms;  /* since when it says so */
	uint64_t from_ms;  /* not before: 5. */
	uint64_t until_ms; /* we lead before this moment; 0: we do not */
	uint64_t free_ms;  /* nobody else leads before this one; counts where until_ms does */
};

/* The rules have been checked; me is not empty, and cut where it does not fit. */
void election_init(struct election *v, const struct election_rules *rules, const char *me);
/* To look on. */
void election_init_follow(struct election *v, const struct election_rules *rules, const char *host);

/* What the server says now; NULL: there is no such Lease. */
void election_see(struct election *v, const struct kube_lease *lease, uint64_t now_ms);

/* Of one who looks on: from now on what is seen is how it is now, and not all that it was in between; or all again. */
void election_be_blind(struct election *v, bool blind);

enum election_step {
	ELECTION_READ,  /* the server is to be asked: nothing is known */
	ELECTION_MAKE,  /* there is none */
	ELECTION_TAKE,  /* under seen.resource_version */
	ELECTION_RENEW, /* the same; it is ours and we lead */
	ELECTION_WAIT,  /* it is another's */
};
enum election_step election_next(const struct election *v, uint64_t now_ms);

/* What to write for MAKE, TAKE, RENEW. */
void election_write(const struct election *v, enum election_step step, uint64_t wall_ms, struct kube_lease_write *out);
/* The body that leaves it to the next. */
void election_write_release(const struct election *v, uint64_t wall_ms, struct kube_lease_write *out);

/* The server took what was sent at sent_ms and answered with this. */
void election_won(struct election *v, const struct kube_lease *answer, uint64_t sent_ms);
/* The server knows a version that we do not: to be read. Does not end what we lead: nobody may take it before. */
void election_conflict(struct election *v);
void election_resign(struct election *v);

/* After election_see, of one who looks on: do we lead? renewed_ms: when it was renewed by what it says, on the clock of
 * now_ms; it is told us later. UINT64_MAX: it does not say. */
void election_follow(struct election *v, uint64_t renewed_ms);

static inline bool election_leads(const struct election *v, uint64_t now_ms)
{
	return now_ms >= v->from_ms && now_ms < v->until_ms;
}

/* How long from now nobody else can lead; 0: we do not. */
static inline uint64_t election_alone_ms(const struct election *v, uint64_t now_ms)
{
	return election_leads(v, now_ms) ? v->free_ms - now_ms : 0;
}

#endif
