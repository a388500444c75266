/* Objects of the API server as the scheduler takes them: --node-label-selector in the first line, then a line of JSON
 * each, nodes, pods, quotas and disruption budgets. Whatever they say, what a pod held is free again when it is gone.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/cursor.h"
#include "io/json.h"
#include "kube/lease.h"
#include "model/placement/cluster.h"
#include "sched/bind/lock_take.h"
#include "sched/view/budget_read.h"
#include "sched/view/node_read.h"
#include "sched/view/pod_hold.h"
#include "sched/view/view_internal.h"

static const struct pod_rules pods = {
	"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", { 2, 0, 0 },
};
enum { SELECTOR_BYTES = 512 };

static void take_pod(struct cluster *c, const struct cJSON *tree)
{
	const struct pod_trust trust = { NULL, false };
	hm_auto_pod_hold h = { 0 };
	struct hm_err e = { 0 };

	if (pod_hold_read(tree, &pods, &trust, &h, &e) < 0 || !h.holds)
		return;
	CHECK(h.hold.unreadable ? h.hold.share_count == 0 && h.doubt.code != 0
				: h.hold.shares != NULL || h.hold.share_count == 0);
	if (cluster_hold(c, &h.hold, &e) == -HM_EINVAL) {
		h.hold.unreadable = true;
		h.hold.share_count = 0;
		CHECK(cluster_hold(c, &h.hold, &e) == 0);
	}
	CHECK(cluster_amend(c, h.hold.uid, h.hold.state == HOLD_TERMINATING, NULL, &e) == 0);
	CHECK(cluster_find(c, h.hold.uid)->labels == NULL);
	CHECK(cluster_amend(c, h.hold.uid, h.hold.state == HOLD_TERMINATING, h.hold.labels, &e) == 0);
}

static void take_quota(struct cluster *c, const struct cJSON *tree)
{
	const struct quota_limits limits =
		view_quota_limits(tree, "limits.nvidia.com/gpumem", "limits.nvidia.com/gpucores");
	struct quota_amount room;

	CHECK(quotas_set(cluster_quotas(c), "ns", "q", limits, NULL) == 0);
	room = quotas_room(cluster_quotas(c), "ns");
	CHECK(limits.cores == QUOTA_NO_LIMIT ? room.cores == QUOTA_NO_LIMIT : room.cores <= HM_MAX(limits.cores, 0));
	(void)quota_fits(room, (struct quota_amount) { 1, 1 });
	quotas_remove(cluster_quotas(c), "ns", "q");
}

/* Whoever goes from the namespace goes once as a budget has it, and again. */
static void take_budget(struct cluster *c, const struct cJSON *tree)
{
	struct budgets *all = cluster_budgets(c);
	hm_auto_budget_read b = { 0 };
	const struct holding *h;
	struct hm_err e = { 0 };

	if (budget_read(tree, &b, &e) <= 0)
		return;
	CHECK(b.terms.allowed >= 0 && budgets_set(all, "ns", "b", &b.terms, NULL) == 0);
	for (size_t at = 0; cluster_next_holding(c, &at, &h);) {
		bool violates;

		budgets_begin(all);
		violates = budgets_take(all, "ns", h->name, h->labels);
		budgets_begin(all);
		CHECK(budgets_take(all, "ns", h->name, h->labels) == violates);
		CHECK(!violates || (h->labels != NULL && b.terms.allowed == 0));
	}
	budgets_remove(all, "ns", "b");
}

/* What has cards has a number. */
static void take_node(struct cluster *c, const struct node_rules *rules, const struct cJSON *tree)
{
	uint64_t print = node_read_print(tree, rules);
	struct node_state *n;
	struct hm_err e = { 0 };

	if (node_read(tree, rules, cluster_texts(c), &n, &e) < 0)
		return;
	CHECK(print != 0 && cluster_put_node(c, n, &e) == 0);
}

static void take(struct cluster *c, const struct node_rules *rules, const struct cJSON *tree)
{
	struct kube_lease lease;
	struct hm_err e = { 0 };

	take_node(c, rules, tree);
	if (kube_lease_read(tree, &lease, &e) < 0)
		CHECK(e.code != 0);
	(void)lock_says(pod_annotation(tree, "hami.io/mutex.lock"), "ns", "p", 1787293239, 300000);
	take_quota(c, tree);
	take_pod(c, tree);
	take_budget(c, tree);
}

static void check_free(struct cluster *c)
{
	const struct holding *h;
	const struct node_state *n;

	for (size_t at = 0; cluster_next_holding(c, &at, &h); at = 0)
		cluster_release(c, h->uid);
	for (size_t at = 0; cluster_next_node(c, &at, &n);)
		for (size_t i = 0; i < n->count; i++)
			CHECK(n->used[i].slots == 0 && n->used[i].memory_mib == 0 && n->used[i].cores == 0 &&
			      n->cards[i].blocked == 0 && n->cards[i].busy == 0);
}

static bool next_line(struct cur *lines, struct piece *out)
{
	if (lines->p >= lines->end)
		return false;
	*out = memchr(lines->p, '\n', (size_t)(lines->end - lines->p)) != NULL ? cur_until(lines, '\n')
									       : cur_rest(lines);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(cluster) *c = cluster_new(1);
	struct cur lines = cur_of((const char *)data, n);
	struct node_rules rules = { "nvidia.com/gpu", NULL };
	char selector[SELECTOR_BYTES];
	struct piece line;
	struct hm_err e = { 0 };

	/* One that is refused ends the program. */
	if (next_line(&lines, &line) && piece_copy(line, selector, sizeof selector) &&
	    node_selector_check(selector, &e) == 0)
		rules.selector = selector;
	while (next_line(&lines, &line)) {
		hm_auto(cJSON) *tree = NULL;

		if (json_parse(line.p, line.n, &tree, NULL) == 0)
			take(c, &rules, tree);
	}
	check_free(c);
	return 0;
}
