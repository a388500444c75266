#include "sched/simulate/workload.h"

#include <stdlib.h>

#include "base/array.h"
#include "core/splitmix.h"

void workload_fini(struct workload *w)
{
	free(w->order);
	*w = (struct workload) { 0 };
}

static int add(struct workload *w, size_t pod, struct hm_err *e)
{
	if (!HM_PUSH(w->order, w->count, w->cap, (uint32_t)pod))
		return hm_err_set(e, HM_ENOMEM, "pods: no memory");
	return 0;
}

int workload_plain(const struct trace *t, struct workload *out, struct hm_err *e)
{
	int rc = 0;

	*out = (struct workload) { 0 };
	for (size_t i = 0; i < t->pod_count && rc == 0; i++)
		rc = add(out, i, e);
	return rc;
}

static uint64_t roll(uint64_t *state, uint64_t below)
{
	*state += SPLITMIX_STEP;
	return splitmix_scramble(*state) % below;
}

static int grow(const struct trace *t, int64_t more_milli, uint64_t *dice, struct workload *w, struct hm_err *e)
{
	int rc = 0;

	while (rc == 0 && more_milli > 0) {
		size_t pod = roll(dice, t->pod_count);

		rc = add(w, pod, e);
		more_milli -= t->pods[pod].milli;
	}
	return rc;
}

static void shrink(const struct trace *t, int64_t less_milli, uint64_t *dice, struct workload *w)
{
	while (w->count > 0 && less_milli > 0) {
		size_t at = roll(dice, w->count);

		less_milli -= t->pods[w->order[at]].milli;
		w->order[at] = w->order[--w->count];
	}
}

int workload_shuffled(const struct trace *t, int64_t load_milli, uint64_t seed, struct workload *out, struct hm_err *e)
{
	uint64_t dice = seed * 7919 + 1;
	int64_t sum = 0;
	int rc = workload_plain(t, out, e);

	for (size_t i = 0; i < t->pod_count; i++)
		sum += t->pods[i].milli;
	if (rc == 0 && sum == 0)
		rc = hm_err_set(e, HM_EINVAL, "no pod asks for a card");
	if (rc == 0)
		rc = grow(t, load_milli - sum, &dice, out, e);
	if (rc != 0)
		return rc;
	shrink(t, sum - load_milli, &dice, out);
	for (size_t i = out->count; i > 1; i--) {
		size_t at = roll(&dice, i);
		uint32_t was = out->order[i - 1];

		out->order[i - 1] = out->order[at];
		out->order[at] = was;
	}
	return 0;
}
