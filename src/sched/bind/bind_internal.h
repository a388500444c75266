/* A binder's jobs: each is one pod's way to its node (bind.h, 2 to 4). */
#ifndef HM_SCHED_BIND_BIND_INTERNAL_H
#define HM_SCHED_BIND_BIND_INTERNAL_H

#include "base/map.h"
#include "base/str.h"
#include "core/link.h"
#include "kube/backoff.h"
#include "sched/bind/bind.h"
#include "sched/bind/lock_take.h"

enum job_step {
	JOB_WAITS,      /* for its turn */
	JOB_LOCKS,      /* the node */
	JOB_ASKS,       /* what the pod is: nothing was promised to it */
	JOB_POSTS,      /* the Binding may be on the way, or done */
	JOB_RESOLVES,   /* somebody may have bound the pod: was it we? */
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
	bool locked;           /* the node is ours */
	bool classic;          /* of by_node */
	bool counts;           /* of in_hand */
	struct str path, body; /* of the Binding */
	char time[24];         /* annotations by which it is known again */
	struct str devices;
	struct hm_err last; /* of the last POST */
	uint64_t posted_ms; /* when the last was sent */
	bool refused;       /* somebody has bound it: nothing that we sent can come late */
	struct kube_backoff backoff;
	struct kube_call *call;
	struct lock_take *lock;
	struct loop_timer *again, *answer;
};

struct binder {
	struct bind_config config;
	struct loop *loop;
	struct link waiting, at_work;
	struct map *by_node; /* jobs of nodes that need the lock */
	struct loop_timer *turn;
	size_t in_hand, waiting_count, at_work_count;
	struct bind_stats stats;
};

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

#endif
