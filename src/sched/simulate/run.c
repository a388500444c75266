#include "sched/simulate/run.h"

#include <string.h>

#include "core/fmt.h"
#include "sched/simulate/command.h"

struct run {
	const struct trace *trace;
	const struct run_options *options;
	struct scene *scene;
	struct run_result *result;
	struct policy policy;
};

static void run_fini(struct run *r)
{
	policy_fini(&r->policy);
}
#define hm_auto_run __attribute__((cleanup(run_fini))) struct run

static int mix_of(const struct trace *t, struct pod_mix *out, struct hm_err *e)
{
	int rc = 0;

	for (size_t i = 0; i < t->pod_count && rc == 0; i++) {
		struct mix_shape s = mix_shape_of(&t->pods[i].ask);

		rc = pod_mix_add(out, &s, 1, e);
	}
	return rc;
}

static int prepare(struct run *r, struct hm_err *e)
{
	const struct run_options *o = r->options;
	int rc;

	rc = trace_build(r->trace, r->scene, e);
	if (rc == 0 && !o->learn)
		rc = mix_of(r->trace, &r->policy.mix, e);
	if (rc == 0)
		rc = policy_start(&r->policy, o->node_policy, o->card_policy, &o->weights, e);
	if (rc == 0 && o->blind)
		fgd_be_blind(r->policy.fgd);
	if (rc == 0 && o->learn)
		fgd_learn(r->policy.fgd, &r->policy.mix);
	return rc;
}

/* The curve up to what has been asked for now. */
static void draw(struct run *r)
{
	struct run_result *out = r->result;

	while (out->curve_count <= RUN_MAX_PERCENT &&
	       out->arrived_milli * 100 >= (int64_t)out->curve_count * r->trace->milli)
		out->curve[out->curve_count++] = out->allocated_milli;
}

static int come(struct run *r, const struct trace_pod *pod, struct hm_err *e)
{
	struct run_result *out = r->result;
	struct pod_ask ask = pod->ask;
	struct place_result where;
	char uid[24];
	int rc;

	hm_fmt(uid, sizeof uid, "%llu", (unsigned long long)out->pods);
	ask.uid = uid;
	rc = scene_place(r->scene, r->policy.placer, &(struct scene_pod) { .ask = &ask }, &where, e);
	if (rc < 0)
		return hm_err_wrap(e, "pod %s", pod->name);
	out->pods++;
	out->arrived_milli += pod->milli;
	if (rc == 1) {
		out->placed++;
		out->allocated_milli += pod->milli;
	} else if (where.refused_count == 0) {
		out->short_of_host++;
	} else {
		out->short_of_cards++;
	}
	draw(r);
	return 0;
}

/* Against all pods of the trace, whatever the policy knew. */
static int sum_up(struct run *r, struct hm_err *e)
{
	hm_auto_pod_mix mix = { 0 };
	int rc = mix_of(r->trace, &mix, e);

	r->result->end = scene_sum(r->scene);
	return rc == 0 ? scene_lost(r->scene, &mix, &r->result->lost_milli, e) : rc;
}

int run_trace(const struct trace *t, const struct workload *w, const struct run_options *o, struct scene *scene,
	      struct run_result *out, struct hm_err *e)
{
	hm_auto_run r = { .trace = t, .options = o, .scene = scene, .result = out };
	int rc;

	*out = (struct run_result) { 0 };
	rc = prepare(&r, e);
	draw(&r);
	for (size_t i = 0; i < w->count && rc == 0; i++) {
		if (o->until_percent > 0 && out->arrived_milli * 100 >= (int64_t)o->until_percent * t->milli)
			break;
		rc = come(&r, &t->pods[w->order[i]], e);
	}
	return rc == 0 ? sum_up(&r, e) : rc;
}
