#include "sched/verbs/sampled.h"

#include <string.h>

#include "core/fnv.h"
#include "core/macros.h"

/* numFeasibleNodesToFind of kube-scheduler's schedule_one.go, unchanged since 1.14. */
enum { LEAST_NODES = 100, LEAST_PERCENT = 5, MOST_PERCENT = 50, NODES_A_PERCENT = 125 };

bool sampled_is_cut(size_t candidates, size_t nodes)
{
	size_t less = nodes / NODES_A_PERCENT;
	size_t percent = less < MOST_PERCENT - LEAST_PERCENT ? MOST_PERCENT - less : LEAST_PERCENT;

	return candidates < nodes && candidates == HM_MAX(nodes * percent / 100, (size_t)LEAST_NODES);
}

static uint64_t sum_of(const char *text)
{
	return fnv_add(FNV_BEGIN, text, strlen(text));
}

/* Whatever their order. */
static uint64_t sum_of_names(const struct refused_node *refused, size_t count)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += sum_of(refused[i].name);
	return sum;
}

bool sampled_turns(struct sampled_watch *w, const char *uid, const struct refused_node *refused, size_t count,
		   size_t nodes, uint64_t now_ms)
{
	bool known = w->candidates != 0 && w->pod == sum_of(uid);
	uint64_t names;

	if (!known && w->candidates != 0 && now_ms - w->since_ms < SAMPLED_PATIENCE_MS)
		return false;
	if (count < LEAST_NODES || count >= nodes) {
		*w = (struct sampled_watch) { 0 };
		return false;
	}
	names = sum_of_names(refused, count);
	if (!known) {
		*w = (struct sampled_watch) { sum_of(uid), names, count, 0, now_ms };
		return false;
	}
	if (w->candidates != count || w->names == names) {
		*w = (struct sampled_watch) { 0 };
		return false;
	}
	w->names = names;
	w->turns++;
	return w->turns >= SAMPLED_TURNS;
}
