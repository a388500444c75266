/* topology_bench NODES CARDS WANT CALLS: what place_pod costs where each of NODES nodes has CARDS joined cards, WANT of
 * them are wanted side by side (topology-aware), and the policy fgd measures every node. Prints one line of JSON:
 * microseconds of CPU time. */
#include <stdio.h>
#include <stdlib.h>

#include "core/num.h"
#include "model/placement/fgd.h"
#include "model/placement/place.h"
#include "place_bench.h"

enum { MAX_CALLS = 1000, MAX_CARDS = 64, CPU_CARDS = 8 };

/* Two cards of a board are joined best, those of a CPU better than others. */
static int32_t score(uint64_t a, uint64_t b)
{
	return a / 2 == b / 2 ? 400 : a / CPU_CARDS == b / CPU_CARDS ? 60 : 10;
}

static int add_node(struct cluster *c, uint64_t number, uint64_t cards)
{
	struct node_state *n = make_node(c, number, cards, CPU_CARDS);
	struct hm_err e;

	if (n == NULL)
		return -1;
	for (uint64_t a = 0; a < cards; a++)
		for (uint64_t b = 0; b < cards; b++)
			if (a != b && node_state_set_pair_score(n, a, b, score(a, b), &e) < 0)
				return -1;
	return cluster_put_node(c, n, &e);
}

static int measure(struct cluster *c, struct placer *p, uint64_t want, uint64_t calls)
{
	static double us[MAX_CALLS];
	struct card_ask container = { .kind = ASK_APP, .count = (uint32_t)want, .memory_mib = 1000, .cores = 1 };
	struct pod_ask ask = { .uid = "u", .name_space = "ns", .name = "p", .containers = &container, .count = 1 };
	const struct place_request r = { .ask = &ask };

	for (uint64_t i = 0; i < calls; i++) {
		struct place_result out;
		struct hm_err e;
		double before = cpu_us();

		if (place_pod(p, c, &r, &out, &e) != 1)
			return -1;
		us[i] = cpu_us() - before;
	}
	qsort(us, calls, sizeof us[0], by_value);
	printf("{\"p50_us\": %.1f, \"p99_us\": %.1f}\n", percentile(us, calls, 50), percentile(us, calls, 99));
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t nodes, cards, want, calls;
	const struct fgd_weights weights = fgd_default_weights();
	hm_auto(cluster) *c = cluster_new(1);
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &weights);
	hm_auto(placer) *p = placer_new("fgd", "topology-aware");

	if (argc != 5 || !num_u64_str(argv[1], 1000000, &nodes) || !num_u64_str(argv[2], MAX_CARDS, &cards) ||
	    !num_u64_str(argv[3], cards, &want) || !num_u64_str(argv[4], MAX_CALLS, &calls) || calls == 0 ||
	    want == 0) {
		fprintf(stderr, "usage: topology_bench NODES CARDS WANT CALLS\n");
		return 2;
	}
	for (uint64_t i = 0; i < nodes; i++)
		if (add_node(c, i, cards) < 0)
			return 1;
	fgd_learn(f, &mix);
	placer_set_policy(p, fgd_order(f));
	return measure(c, p, want, calls) < 0;
}
