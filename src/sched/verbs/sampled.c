#include "sched/verbs/sampled.h"

#include "core/macros.h"

/* numFeasibleNodesToFind of kube-scheduler's schedule_one.go, unchanged since 1.14. */
enum { LEAST_NODES = 100, LEAST_PERCENT = 5, MOST_PERCENT = 50, NODES_A_PERCENT = 125 };

bool sampled_is_cut(size_t candidates, size_t nodes)
{
	size_t less = nodes / NODES_A_PERCENT;
	size_t percent = less < MOST_PERCENT - LEAST_PERCENT ? MOST_PERCENT - less : LEAST_PERCENT;

	return candidates < nodes && candidates == HM_MAX(nodes * percent / 100, (size_t)LEAST_NODES);
}
