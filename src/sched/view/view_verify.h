/* Signatures of the first sync, checked beside it in another thread: 40,000 of them take seconds, and nothing is placed
 * before the view is synced, so that a text is believed until then and the loop goes on reading. Later ones are checked
 * as they come. */
#ifndef HM_SCHED_VIEW_VIEW_VERIFY_H
#define HM_SCHED_VIEW_VIEW_VERIFY_H

#include "core/cleanup.h"
#include "core/err.h"
#include "hami/signature.h"
#include "io/loop.h"
#include "model/placement/pod_ask.h"

struct view_verify;

/* What is checked, and what is needed of the pod where it turns out false. */
struct view_check {
	struct signature_check check;
	const char *uid;  /* behind the asks */
	uint64_t print;   /* of the pod as it was when this began */
	size_t ask_count; /* of its containers */
	struct card_ask *asks;
	struct hm_err why; /* code 0: the signature is good */
};

struct view_verify_events {
	void (*bad)(void *arg, const struct view_check *c); /* for each that is */
	void (*idle)(void *arg);                            /* all that was handed over is known; may come again */
	void *arg;
};

int view_verify_new(struct loop *l, const struct view_verify_events *events, struct view_verify **out,
		    struct hm_err *e) HM_MUST_USE;
void view_verify_free(struct view_verify *v); /* forgets what is not known yet */
HM_DEFINE_AUTO(view_verify, view_verify_free);

/* Takes *check's content over, on success alone. -HM_ENOMEM. */
int view_verify_add(struct view_verify *v, struct signature_check *check, const char *uid, uint64_t print,
		    const struct pod_ask *ask, struct hm_err *e) HM_MUST_USE;
/* No more come soon: do not wait for a batch to be full. */
void view_verify_flush(struct view_verify *v);
bool view_verify_is_idle(const struct view_verify *v);

#endif
