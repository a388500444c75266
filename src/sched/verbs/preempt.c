#include "sched/verbs/preempt.h"

#include <stdlib.h>

#include "base/array.h"
#include "model/placement/preempt.h"
#include "sched/extender/preemption.h"

struct preempt_verb {
	struct preempt_config config;
	struct preempt *choice;
	const char **more; /* UIDs of a node's victims */
	size_t more_cap;
};

int preempt_verb_new(const struct preempt_config *config, struct preempt_verb **out, struct hm_err *e)
{
	hm_auto(preempt_verb) *p = calloc(1, sizeof *p);

	if (p != NULL)
		p->choice = preempt_new();
	if (p == NULL || p->choice == NULL)
		return hm_err_set(e, HM_ENOMEM, "preemption");
	p->config = *config;
	*out = HM_STEAL(p);
	return 0;
}

void preempt_verb_free(struct preempt_verb *p)
{
	if (p == NULL)
		return;
	preempt_free(p->choice);
	free(p->more);
	free(p);
}

/* A pod without cards needs no more than kube-scheduler has found. */
static int add_node(struct preempt_verb *p, const struct preemption_node *n, bool cards, struct preemption_answer *to,
		    struct hm_err *e)
{
	const struct preempt_victim *victims = NULL;
	struct preemption_node all = *n;
	size_t count = 0;
	int r = cards ? preempt_node(p->choice, n->name, n->victims, n->count, &victims, &count, e) : 1;

	if (r <= 0)
		return r;
	if (!array_reserve(&p->more, &p->more_cap, count, sizeof p->more[0]))
		return hm_err_set(e, HM_ENOMEM, "victims");
	for (size_t i = 0; i < count; i++) {
		p->more[i] = victims[i].holding->uid;
		all.pdb_violations += victims[i].violates;
	}
	preemption_answer_add(to, &all, p->more, count);
	return 0;
}

static int add_nodes(struct preempt_verb *p, const struct preemption_args *a, const struct pod_ask *ask,
		     struct str *out, struct hm_err *e)
{
	bool cards = pod_ask_any(ask);
	struct preemption_answer to;

	if (cards && preempt_read(p->choice, p->config.cluster, ask, p->config.card_policy, e) < 0)
		return -e->code;
	preemption_answer_begin(&to, out);
	for (size_t i = 0; i < a->count; i++)
		if (add_node(p, &a->nodes[i], cards, &to, e) < 0)
			return -e->code;
	preemption_answer_end(&to);
	return 0;
}

static int answer_error(int status, const char *text, struct str *out)
{
	str_clear(out);
	str_addf(out, "%s\n", text);
	return status;
}

int preempt_answer(struct preempt_verb *p, const char *body, size_t n, struct str *out)
{
	const char *barred = p->config.barred != NULL ? p->config.barred(p->config.arg) : NULL;
	hm_auto_pod_ask ask = { 0 };
	struct preemption_args a = { 0 };
	struct hm_err e;
	int err = 0;

	if (barred != NULL)
		return answer_error(503, barred, out);
	err = preemption_args_read(body, n, &a, &e);
	if (err == 0)
		err = pod_read_ask(a.pod, &p->config.pods, &ask, &e);
	if (err == 0)
		err = add_nodes(p, &a, &ask, out, &e);
	preemption_args_fini(&a);
	return err == 0 ? 200 : answer_error(err == -HM_ENOMEM ? 500 : 400, e.msg, out);
}
