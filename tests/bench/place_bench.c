/* place_bench NODES CANDIDATES CALLS [POLICY]: what place_pod costs with CANDIDATES of NODES nodes of eight cards
 * named, each card in use. A third of the calls fit on one card of one named node, a third fit nowhere, a third have
 * several containers. POLICY: of nodes, binpack where it is left out; "fgd" has free CPU and memory of the nodes, all
 * different, and a mix of SHAPES shapes of pods, which every call adds to. Prints one line of JSON: microseconds of CPU
 * time for each kind, and what the cluster takes of memory. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/num.h"
#include "model/placement/fgd.h"
#include "model/placement/place.h"
#include "place_bench.h"

enum {
	CARDS = 8,
	HELD_MIB = 33000, /* and up to */
	HELD_MORE_MIB = 2000,
	OPEN_EVERY = 500,
	LISTS = 16,
	KINDS = 3,
	MAX_CALLS = 100000,
	SHAPES = 150
};

static const char *const kinds[KINDS] = { "one", "none", "several" };

static uint64_t dice(uint64_t below)
{
	static uint64_t s = 0x9e3779b97f4a7c15u;

	s ^= s << 13;
	s ^= s >> 7;
	s ^= s << 17;
	return s % below;
}

static int add_node(struct cluster *c, uint64_t i)
{
	struct node_state *n = make_node(c, i, CARDS, 4);
	struct hm_err e;

	return n == NULL ? -1 : cluster_put_node(c, n, &e);
}

/* One holder on each card; every OPEN_EVERYth node has room for a share more on its last card. */
static int add_holders(struct cluster *c, uint64_t i)
{
	char node[64], uuid[64], uid[64];
	struct hm_err e;

	name_node(node, sizeof node, i);
	for (unsigned k = 0; k < CARDS; k++) {
		bool open = i % OPEN_EVERY == 0 && k == CARDS - 1;
		int32_t held = HELD_MIB + (int32_t)dice(HELD_MORE_MIB);
		struct hold_share s = { .uuid = uuid, .memory_mib = open ? 1000 : held, .cores = 10 };
		struct hold h = { .uid = uid,
				  .name_space = k % 2 == 0 ? "team-a" : "team-b",
				  .name = "trainer-0",
				  .node = node,
				  .state = HOLD_BOUND,
				  .shares = &s,
				  .share_count = 1 };
		name_card(uuid, sizeof uuid, i, k);
		snprintf(uid, sizeof uid, "%08llx-aaaa-4bbb-8ccc-%012x", (unsigned long long)i, k);
		if (cluster_hold(c, &h, &e) < 0)
			return -1;
	}
	return 0;
}

/* Names as a request has them: copies, one of them an open node's. */
static char **make_list(uint64_t nodes, uint64_t count)
{
	char **list = calloc(count, sizeof *list);
	uint64_t first = dice(nodes), open = dice(count);

	for (uint64_t i = 0; list != NULL && i < count; i++) {
		char name[64];
		uint64_t n = (first + i) % nodes;
		if (count < nodes)
			n = i == open             ? dice((nodes - 1) / OPEN_EVERY + 1) * OPEN_EVERY
			    : n % OPEN_EVERY == 0 ? n + 1
						  : n;
		name_node(name, sizeof name, n);
		list[i] = strdup(name);
	}
	return list;
}

static struct card_ask asks[KINDS][4] = {
	{ { .kind = ASK_APP, .count = 1, .memory_mib = 20000, .cores = 20 } },
	{ { .kind = ASK_APP, .count = 1, .memory_mib = 39500, .cores = 20 } },
	{ { .kind = ASK_INIT, .count = 1, .memory_mib = 1000 },
	  { .kind = ASK_APP, .count = 2, .memory_mib = 2000, .cores = 30 },
	  { .kind = ASK_APP, .count = 1, .percent = 5 },
	  { .kind = ASK_APP } },
};
static const size_t ask_counts[KINDS] = { 1, 1, 4 };

static int measure(struct cluster *c, struct placer *p, char **lists[LISTS], uint64_t count, uint64_t calls)
{
	static double us[KINDS][MAX_CALLS], all[KINDS * MAX_CALLS];
	size_t n = 0;

	for (uint64_t i = 0; i < calls; i++)
		for (size_t k = 0; k < KINDS; k++) {
			char uid[32];
			struct pod_ask ask = { .uid = uid,
					       .name_space = "team-a",
					       .name = "asked",
					       .containers = asks[k],
					       .count = ask_counts[k],
					       .cpu_milli = 4000,
					       .host_mib = 16384 };
			struct place_request r = { .ask = &ask,
						   .names = (const char *const *)lists[i % LISTS],
						   .count = count };
			struct place_result out;
			struct hm_err e;
			snprintf(uid, sizeof uid, "%llu", (unsigned long long)n);
			double before = cpu_us();
			int placed = place_pod(p, c, &r, &out, &e);
			us[k][i] = all[n++] = cpu_us() - before;
			if (placed != (k != 1)) {
				fprintf(stderr, "place_bench: \"%s\" answered %d\n", kinds[k], placed);
				return 1;
			}
		}
	for (size_t k = 0; k < KINDS; k++) {
		qsort(us[k], calls, sizeof us[k][0], by_value);
		printf("\"%s_p50_us\": %.1f, \"%s_p99_us\": %.1f, ", kinds[k], percentile(us[k], calls, 50), kinds[k],
		       percentile(us[k], calls, 99));
	}
	qsort(all, n, sizeof all[0], by_value);
	printf("\"p50_us\": %.1f, \"p99_us\": %.1f, ", percentile(all, n, 50), percentile(all, n, 99));
	return 0;
}

/* Nodes of 96 and 128 cores, each with its own rest. */
static void set_hosts(struct cluster *c, uint64_t nodes)
{
	for (uint64_t i = 0; i < nodes; i++) {
		char name[64];

		name_node(name, sizeof name, i);
		cluster_set_host(c, name,
				 (struct host_amount) { (int64_t)dice(i % 2 == 0 ? 95500 : 127500),
							(int64_t)dice(i % 2 == 0 ? 380000 : 760000) });
	}
}

static int fill_mix(struct pod_mix *mix)
{
	struct hm_err e;

	for (int32_t i = 0; i < MIX_WINDOW; i++) {
		uint64_t shape = dice(dice(SHAPES) + 1); /* few make up most of the pods */
		struct mix_shape s = { .cards = shape % 10 == 0 ? 4 : 1,
				       .each = { .memory_mib = 1000 + (int32_t)(shape * 7919 % 39000) },
				       .cpu_milli = 1000 + (int64_t)(shape * 613 % 16000),
				       .host_mib = 2048 + (int64_t)(shape * 104729 % 65536) };
		if (pod_mix_see(mix, &s, &e) < 0)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t nodes, count, calls;
	const struct fgd_weights weights = fgd_default_weights();
	const char *policy = argc == 5 ? argv[4] : "binpack";
	hm_auto(cluster) *c = cluster_new(1);
	hm_auto_pod_mix mix = { 0 };
	hm_auto(fgd) *f = fgd_new(&mix, &weights);
	hm_auto(placer) *p = placer_new(policy, strcmp(policy, "fgd") == 0 ? policy : "spread");
	char **lists[LISTS];
	size_t heap = mallinfo2().uordblks;
	int failed;

	if (argc < 4 || argc > 5 || !num_u64_str(argv[1], 1000000, &nodes) || !num_u64_str(argv[2], nodes, &count) ||
	    !num_u64_str(argv[3], MAX_CALLS, &calls) || count == 0 || calls == 0) {
		fprintf(stderr, "usage: place_bench NODES CANDIDATES CALLS [POLICY]\n");
		return 2;
	}
	for (uint64_t i = 0; i < nodes; i++)
		if (add_node(c, i) < 0)
			return 1;
	size_t with_nodes = mallinfo2().uordblks;
	for (uint64_t i = 0; i < nodes; i++)
		if (add_holders(c, i) < 0)
			return 1;
	size_t with_holders = mallinfo2().uordblks;
	if (strcmp(policy, "fgd") == 0) {
		set_hosts(c, nodes);
		if (fill_mix(&mix) < 0)
			return 1;
		fgd_learn(f, &mix);
		placer_set_policy(p, fgd_order(f));
	}
	for (size_t i = 0; i < LISTS; i++)
		lists[i] = make_list(nodes, count);
	printf("{\"nodes\": %llu, \"candidates\": %llu, ", (unsigned long long)nodes, (unsigned long long)count);
	failed = measure(c, p, lists, count, calls);
	printf("\"node_bytes\": %.0f, \"holding_bytes\": %.0f}\n", (double)(with_nodes - heap) / (double)nodes,
	       (double)(with_holders - with_nodes) / (double)(nodes * CARDS));
	for (size_t i = 0; i < LISTS; i++) {
		for (uint64_t k = 0; k < count; k++)
			free(lists[i][k]);
		free(lists[i]);
	}
	return failed;
}
