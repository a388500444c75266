/* Signatures of the first sync, checked beside it (io/aside.h): 40,000 of them take seconds, and nothing is placed
 * before the view is synced, so that a text is believed until then and the loop goes on reading. Later ones are checked
 * as they come. */
#ifndef HM_SCHED_VIEW_VIEW_VERIFY_H
#define HM_SCHED_VIEW_VIEW_VERIFY_H

#include "core/cleanup.h"
#include "core/err.h"
#include "io/loop.h"
#include "sched/view/pod_hold.h"

struct view_verify;

/* A pod whose signature is not true. */
struct view_bad {
	const char *uid;
	uint64_t print; /* of the pod as it was when this began */
	const struct card_ask *asks;
	size_t ask_count;
};

struct view_verify_events {
	void (*bad)(void *arg, const struct view_bad *b, const struct hm_err *why);
	void (*idle)(void *arg); /* all that was handed over is known; may come again */
	void *arg;
};

int view_verify_new(struct loop *l, const struct view_verify_events *events, struct view_verify **out,
		    struct hm_err *e) HM_MUST_USE;
void view_verify_free(struct view_verify *v); /* forgets what is not known yet */
HM_DEFINE_AUTO(view_verify, view_verify_free);

/* h->check is to be checked, and the pod believed meanwhile. h->check is taken over, on success alone. -HM_ENOMEM. */
int view_verify_add(struct view_verify *v, struct pod_hold *h, uint64_t print, struct hm_err *e) HM_MUST_USE;
/* No more come: do not wait for a batch to be full. */
void view_verify_flush(struct view_verify *v);
bool view_verify_is_idle(const struct view_verify *v);

#endif
