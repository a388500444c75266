/* The files of `hami-scheduler simulate`: nodes and pods, a NUL between them, as a trace or as a cluster's objects, and
 * the weights behind another. What can be read becomes a scene whose sums are what its cards say. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/str.h"
#include "core/check.h"
#include "core/cursor.h"
#include "sched/simulate/snapshot.h"
#include "sched/simulate/trace.h"
#include "sched/simulate/weights_text.h"

enum { MAX_BYTES = 65536 }; /* of a trace: a node of it is a line, and may have a thousand cards */

static void check_scene(const struct scene *s)
{
	struct scene_sum sum = scene_sum(s);
	size_t nodes = 0, at = 0;
	const struct node_state *n;

	while (cluster_next_node(s->cluster, &at, &n))
		nodes++;
	CHECK(nodes == s->node_count);
	for (size_t i = 0; i < s->node_count; i++)
		CHECK(cluster_node(s->cluster, s->nodes[i]->name) == s->nodes[i]);
	CHECK(sum.empty_cards >= 0 && sum.empty_cards <= sum.cards && sum.milli >= 0);
}

static void try_trace(struct piece nodes, struct piece pods)
{
	hm_auto_trace t = { 0 };
	hm_auto_scene s = { 0 };
	struct hm_err e = { 0 };

	if (trace_read_nodes(&t, nodes.p, nodes.n, &e) == 0 && trace_build(&t, &s, &e) == 0)
		check_scene(&s);
	else
		CHECK(e.code != 0);
	if (trace_read_pods(&t, pods.p, pods.n, &e) < 0)
		CHECK(e.code != 0);
}

/* Whatever they say of each other is an answer, and who selects nothing may go to a node that keeps nobody away. */
static void check_screens(const struct snapshot *t, const struct scene *s)
{
	static const struct screen_node anywhere = { 0 };

	for (size_t i = 0; i < t->count; i++) {
		const struct screen_pod *p = &t->gpu_pods[i].screen;

		for (size_t k = 0; k < s->node_count; k++)
			CHECK(screen_pod_on(p, &s->screens[k]) < SCREEN_SHORT);
		if (p->selector == NULL && p->affinity == NULL)
			CHECK(screen_pod_on(p, &anywhere) == SCREEN_PASSES);
	}
}

static void try_snapshot(struct piece nodes, struct piece pods)
{
	hm_auto_snapshot t = { 0 };
	hm_auto_scene s = { 0 };
	struct hm_err e = { 0 };

	CHECK(snapshot_configure(&t, NULL, &e) == 0);
	if (snapshot_read_nodes(&t, nodes.p, nodes.n, &e) == 0 && snapshot_read_pods(&t, pods.p, pods.n, &e) == 0 &&
	    snapshot_build(&t, &s, &e) == 0) {
		check_scene(&s);
		check_screens(&t, &s);
	} else {
		CHECK(e.code != 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cur c = cur_of((const char *)data, n);
	struct piece nodes = cur_item(&c, '\0'), pods = cur_item(&c, '\0'), rest = cur_rest(&c);
	hm_auto_str weights = { 0 };
	struct fgd_weights w;
	struct hm_err e = { 0 };

	if (n <= MAX_BYTES)
		try_trace(nodes, pods);
	try_snapshot(nodes, pods);
	str_add_n(&weights, rest.p, rest.n);
	if (weights_text_read(str_text(&weights), &w, &e) < 0)
		CHECK(e.code != 0);
	return 0;
}
