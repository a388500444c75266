/* What kube-scheduler sends to /preempt, on a small full cluster: whatever is asked, the cluster is as it was before,
 * and who is named beside those that were named already is bound there and of lower priority. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/fmt.h"
#include "io/json.h"
#include "sched/extender/preemption.h"
#include "sched/verbs/preempt.h"

enum { NODES = 3, CARDS = 2, PODS = 4 };

static const struct pod_rules rules = {
	"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", { 1, 0, 0 },
};

static void put_pods(struct cluster *c, const char *node)
{
	for (int i = 0; i < PODS; i++) {
		char uid[16], uuid[16];
		struct hold_share s = { .uuid = uuid, .memory_mib = 1000 * (i + 1), .cores = 10 };
		struct hold h = { .uid = uid,
				  .name_space = "ns",
				  .name = uid,
				  .node = node,
				  .state = i == 3 ? HOLD_BINDING : HOLD_BOUND,
				  .priority = 100 * i,
				  .shares = &s,
				  .share_count = 1 };

		hm_fmt(uid, sizeof uid, "%s-%d", node, i);
		hm_fmt(uuid, sizeof uuid, "%s-c%d", node, i % CARDS);
		CHECK(cluster_hold(c, &h, NULL) == 0);
	}
}

static struct cluster *small(void)
{
	struct cluster *c = cluster_new(1);

	for (int i = 0; i < NODES; i++) {
		char name[8];
		struct node_state *n;

		hm_fmt(name, sizeof name, "n%d", i);
		n = node_state_new(name, cluster_texts(c));
		for (int k = 0; k < CARDS; k++) {
			struct node_card card = { .count = 3,
						  .memory_mib = 5000,
						  .cores = 100,
						  .healthy = true,
						  .type = "NVIDIA A100",
						  .mode = "hami-core" };
			hm_fmt(card.uuid, sizeof card.uuid, "%s-c%d", name, k);
			CHECK(node_state_add_card(n, &card, NULL) == 0);
		}
		CHECK(cluster_put_node(c, n, NULL) == 0);
		put_pods(c, name);
	}
	return c;
}

static bool was_named(const struct preemption_node *n, const char *uid)
{
	for (size_t i = 0; i < n->count; i++)
		if (strcmp(n->victims[i], uid) == 0)
			return true;
	return false;
}

static void check_victims(const struct cluster *c, const struct preemption_args *asked,
			  const struct preemption_args *got, int32_t priority)
{
	for (size_t i = 0; i < got->count; i++) {
		const struct preemption_node *n = &got->nodes[i];
		size_t was = 0;

		while (was < asked->count && strcmp(asked->nodes[was].name, n->name) != 0)
			was++;
		CHECK(was < asked->count && n->count >= asked->nodes[was].count);
		for (size_t k = asked->nodes[was].count; k < n->count; k++) {
			const struct holding *h = cluster_find(c, n->victims[k]);

			CHECK(h != NULL && h->state == HOLD_BOUND && h->priority < priority);
			CHECK(strcmp(cluster_holding_node(h), n->name) == 0 && !was_named(&asked->nodes[was], h->uid));
		}
	}
}

/* Names that stand there once, and are written as they were read. */
static bool names_are_plain(const struct preemption_args *a)
{
	for (size_t i = 0; i < a->count; i++) {
		for (const char *c = a->nodes[i].name; *c != '\0'; c++)
			if (*c < ' ' || *c > '~')
				return false;
		for (size_t k = 0; k < i; k++)
			if (strcmp(a->nodes[i].name, a->nodes[k].name) == 0)
				return false;
	}
	return true;
}

/* The answer read as if it were asked: it has the same form, but for the pod. */
static void check_answer(const struct cluster *c, const char *text, size_t n, const struct str *answer)
{
	struct preemption_args asked, got;
	hm_auto_pod_ask ask = { 0 };
	hm_auto_str again = { 0 };

	CHECK(preemption_args_read(text, n, &asked, NULL) == 0);
	CHECK(pod_read_ask(asked.pod, &rules, &ask, NULL) == 0);
	str_addf(&again, "{\"Pod\":{},%s", str_text(answer) + 1);
	CHECK(preemption_args_read(str_text(&again), again.n, &got, NULL) == 0);
	if (names_are_plain(&asked))
		check_victims(c, &asked, &got, ask.priority);
	preemption_args_fini(&asked);
	preemption_args_fini(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct cluster *c = small();
	const struct preempt_config config = { .cluster = c, .card_policy = "spread", .pods = rules };
	struct preempt_verb *p;
	struct card_use before[NODES][CARDS];
	hm_auto_str out = { 0 };
	int status;

	CHECK(preempt_verb_new(&config, &p, NULL) == 0);
	for (int i = 0; i < NODES; i++)
		memcpy(before[i], cluster_node(c, (const char *[]) { "n0", "n1", "n2" }[i])->used, sizeof before[i]);
	status = preempt_answer(p, (const char *)data, n, &out);
	for (int i = 0; i < NODES; i++)
		CHECK(memcmp(before[i], cluster_node(c, (const char *[]) { "n0", "n1", "n2" }[i])->used,
			     sizeof before[i]) == 0);
	if (status == 200)
		check_answer(c, (const char *)data, n, &out);
	preempt_verb_free(p);
	cluster_free(c);
	return 0;
}
