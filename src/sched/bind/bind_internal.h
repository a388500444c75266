/* A binder's jobs: each is one pod's way to its node (bind.h, 2 to 4). */
#ifndef HM_SCHED_BIND_BIND_INTERNAL_H
#define HM_SCHED_BIND_BIND_INTERNAL_H

#include "base/map.h"
#include "base/str.h"
#include "core/link.h"
#include "io/json.h"
#include "kube/backoff.h"
#include "sched/bind/bind.h"
#include "sched/bind/lock_take.h"

enum job_step {
	JOB_WAITS, /* for its turn */
	JOB_LOCKS, /* the node */
	JOB_ASKS,  /* what the pod is */
	JOB_PARKS, /* somebody else has the node's lock, and the pod is one of a group: out of hand, until it is free */
	JOB_PAUSES,     /* the API server has no time; nothing of ours is on its way */
	JOB_POSTS,      /* the Binding may be on its way, or done */
	JOB_RESOLVES,   /* the same: whether the pod is bound, and by us, is asked */
	JOB_GIVES_BACK, /* the lock; whoever asked knows */
};

struct job {
	struct link link; /* of waiting or at_work */
	struct binder *binder;
	char *name_space, *pod, *uid, *node;
	void (*done)(void *arg, const char *error);
	void *arg;
	enum job_step step;
	bool promised;         /* cluster_confirm went well */
	bool classic;          /* of by_node */
	bool counts;           /* of in_hand */
	bool doubted;          /* of doubted */
	struct str path, body; /* of the Binding */
	char time[24];         /* annotations by which it is known again */
	struct str devices;
	struct hm_err last;    /* what the API server last said to us, or why the node's lock cannot be had */
	uint64_t sent_over_ms; /* when the last Binding sent has ended, whatever became of it */
	uint64_t over_ms;      /* when the last of those that nothing was heard of has; 0: there is none */
	uint64_t asked_ms;     /* when the pod was last asked for */
	struct kube_backoff backoff;
	struct kube_call *call;
	struct lock_take *lock;
	struct str lock_value; /* what we write on the node; "": nothing was */
	struct str lock_doubt; /* of lock_request */
	bool grouped;          /* the pod is one of a group */
	uint64_t park_until_ms, look_ms;
	struct loop_timer *again, *answer;
};

struct binder {
	struct bind_config config;
	struct loop *loop;
	struct link waiting, at_work;
	struct map *by_node; /* jobs of nodes that need the lock */
	struct loop_timer *turn;
	size_t in_hand, doubted, waiting_count;
	struct bind_stats stats;
	void (*idle)(void *arg); /* NULL: nobody waits for it */
	void *idle_arg;
};

/* What nobody knows yet. */
static inline bool job_may_be_bound(const struct job *j)
{
	return j->step == JOB_POSTS || j->step == JOB_RESOLVES;
}

void job_free(struct job *j);
HM_DEFINE_AUTO(job, job_free);

/* Its turn has come. */
void job_start(struct job *j);
/* Whoever asked hears of it; once. "": bound. */
void job_answer(struct job *j, const char *error);
/* What was promised to its pod on its node is free, whether the promise was confirmed or not. */
void job_roll_back(struct job *j);
/* Whoever asked hears `why` now. What was not sent is undone; what was is followed to its end. */
void job_give_up(struct job *j, const char *why);
void job_on_again(void *arg); /* of its timer */

/* ---- between the files of a job */

/* Certain: it is not bound by us, and nothing of ours can come any more. Frees it, at once or later. */
void job_fail(struct job *j, const char *why);
/* It is, and whoever asked hears so. Frees it. */
void job_succeed(struct job *j);
void job_leave(struct job *j); /* another's turn */
/* The pod, from the API server. */
int job_ask_pod(struct job *j, enum job_step step, void (*done)(void *arg, const struct kube_answer *a),
		struct hm_err *e) HM_MUST_USE;
bool job_is_pod(const struct job *j, const struct cJSON *pod);

/* bind_post.c: the Binding is made and sent, and followed until it is known what became of it. */
void job_make_and_post(struct job *j);
void job_post(struct job *j);
void job_resolve(struct job *j);

/* bind_lock.c: the node's lock, and then job_make_and_post. */
void job_take_lock(struct job *j);
void job_leave_node(struct job *j); /* another job may try */
void job_unpark(struct job *j);     /* look whether it is free */

#endif
