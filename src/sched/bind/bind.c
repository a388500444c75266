#include "sched/bind/bind.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sched/bind/bind_internal.h"

/* After a Binding of which nothing was heard. */
enum { AGAIN_MS = 250, AGAIN_MAX_MS = 5000 };

static void drop_waiting(struct job *j, const char *why)
{
	j->binder->waiting_count--;
	link_remove(&j->link);
	job_roll_back(j);
	job_answer(j, why);
	job_free(j);
}

static void start_next(struct binder *b)
{
	while (b->in_hand < BIND_IN_FLIGHT && !list_empty(&b->waiting)) {
		struct job *j = HM_CONTAINER(list_first(&b->waiting), struct job, link);

		if (b->doubted >= BIND_IN_DOUBT) {
			drop_waiting(j, "the API server does not answer");
			continue;
		}
		link_remove(&j->link);
		link_append(&b->at_work, &j->link);
		b->waiting_count--;
		b->in_hand++;
		j->counts = true;
		job_start(j);
	}
}

static void on_turn(void *arg)
{
	struct binder *b = arg;
	void (*idle)(void *arg);

	start_next(b);
	if (!list_empty(&b->at_work) || !list_empty(&b->waiting))
		return;
	idle = HM_STEAL(b->idle);
	if (idle != NULL)
		idle(b->idle_arg);
}

static void on_answer_due(void *arg)
{
	struct job *j = arg;
	hm_auto_str text = { 0 };

	if (j->step == JOB_WAITS) {
		drop_waiting(j, j->grouped ? j->last.msg : "too many Bindings wait before this one");
		return;
	}
	str_addf(&text, "%s%s", job_may_be_bound(j) ? "it is not known yet whether the pod is bound: " : "",
		 j->last.msg[0] != '\0' ? j->last.msg : "the API server did not answer in time");
	job_give_up(j, str_text(&text));
}

/* ---- requests */

static bool keep(const struct bind_request *r, struct job *j)
{
	return (j->name_space = strdup(r->name_space)) != NULL && (j->pod = strdup(r->pod)) != NULL &&
	       (j->uid = strdup(r->uid)) != NULL && (j->node = strdup(r->node)) != NULL;
}

int binder_bind(struct binder *b, const struct bind_request *r, struct hm_err *e)
{
	hm_auto(job) *j = calloc(1, sizeof *j);

	if (r->pod[0] == '\0' || r->name_space[0] == '\0' || r->uid[0] == '\0' || r->node[0] == '\0')
		return hm_err_set(e, HM_EINVAL, "a Binding needs PodName, PodNamespace, PodUID and Node");
	if (j == NULL || !keep(r, j))
		return hm_err_set(e, HM_ENOMEM, "out of memory");
	j->binder = b;
	j->done = r->done;
	j->arg = r->arg;
	j->backoff = (struct kube_backoff) { AGAIN_MS, AGAIN_MAX_MS, 0 };
	if (loop_timer_new(b->loop, job_on_again, j, &j->again, e) < 0 ||
	    loop_timer_new(b->loop, on_answer_due, j, &j->answer, e) < 0)
		return -e->code;
	loop_timer_arm(j->answer, BIND_ANSWER_MS);
	loop_timer_arm(b->turn, 0);
	link_append(&b->waiting, &j->link);
	b->waiting_count++;
	(void)HM_STEAL(j);
	return 0;
}

void binder_stop(struct binder *b, const char *why)
{
	while (!list_empty(&b->waiting))
		drop_waiting(HM_CONTAINER(list_first(&b->waiting), struct job, link), why);
	LIST_FOR_EACH (&b->at_work, at)
		job_give_up(HM_CONTAINER(at, struct job, link), why);
}

void binder_when_idle(struct binder *b, void (*idle)(void *arg), void *arg)
{
	b->idle = idle;
	b->idle_arg = arg;
	loop_timer_arm(b->turn, 0);
}

/* ---- life */

int binder_new(struct loop *l, const struct bind_config *config, struct binder **out, struct hm_err *e)
{
	hm_auto(binder) *b = calloc(1, sizeof *b);

	if (b == NULL)
		return hm_err_set(e, HM_ENOMEM, "binding");
	b->config = *config;
	b->loop = l;
	list_init(&b->waiting);
	list_init(&b->at_work);
	b->by_node = map_new();
	if (b->by_node == NULL)
		return hm_err_set(e, HM_ENOMEM, "binding");
	if (loop_timer_new(l, on_turn, b, &b->turn, e) < 0)
		return hm_err_wrap(e, "binding");
	*out = HM_STEAL(b);
	return 0;
}

static void forget(struct job *j)
{
	if (job_may_be_bound(j))
		log_warn("ended without knowing whether a pod is bound", KV("namespace", j->name_space),
			 KV("pod", j->pod), KV("node", j->node));
	job_free(j);
}

void binder_free(struct binder *b)
{
	if (b == NULL)
		return;
	LIST_FOR_EACH (&b->waiting, at)
		job_free(HM_CONTAINER(at, struct job, link));
	LIST_FOR_EACH (&b->at_work, at)
		forget(HM_CONTAINER(at, struct job, link));
	loop_timer_free(b->turn);
	map_free(b->by_node);
	free(b);
}

void binder_stats(const struct binder *b, struct bind_stats *out)
{
	*out = b->stats;
	out->in_hand = b->in_hand;
	out->waiting = b->waiting_count;
	out->in_doubt = b->doubted;
}
