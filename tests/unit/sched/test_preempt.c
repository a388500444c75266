/* /preempt, from text to text. */
#include "sched/verbs/preempt.h"

#include <string.h>

#include "harness/json_of.h"
#include "harness/unit.h"
#include "io/json.h"
#include "sched/view/budget_read.h"
#include "sched/view/node_read.h"
#include "sched/view/pod_hold.h"

static const struct pod_rules rules = {
	"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", { 1, 0, 0 },
};
static const char *bar;

static const char *barred(void *arg)
{
	(void)arg;
	return bar;
}

#define POD(uid, more, limits)                                                                                         \
	"{'metadata':{'name':'p','namespace':'ns','uid':'" uid "'},'spec':{" more                                      \
	"'containers':[{'name':'c','resources':{'limits':{" limits "}}}]}}"
#define GPU(memory) "'nvidia.com/gpu':'1','nvidia.com/gpumem':'" memory "'"
#define HIGH POD("high", "'priority':1000,", GPU("30000"))

static void put_node(struct cluster *c)
{
	const struct node_rules nodes = { "nvidia.com/gpu", NULL };
	hm_auto(cJSON) *tree = json_of(
		"{'metadata':{'name':'n1','annotations':{'hami.io/node-nvidia-register':'[{\\'id\\':\\'GPU-1\\',"
		"\\'count\\':10,\\'devmem\\':40000,\\'devcore\\':100,\\'type\\':\\'NVIDIA A100\\',\\'mode\\':"
		"\\'hami-core\\',\\'health\\':true}]'}},'status':{'allocatable':{'nvidia.com/gpu':'10'}}}");
	struct node_state *n;

	assert_int_equal(node_read(tree, &nodes, cluster_texts(c), &n, NULL), 0);
	assert_int_equal(cluster_put_node(c, n, NULL), 0);
}

/* Of the priority that the API server gave it. */
static void put_pod(struct cluster *c, const char *text)
{
	const struct pod_trust all = { 0 };
	hm_auto(cJSON) *tree = json_of(text);
	hm_auto_pod_hold h = { 0 };

	assert_int_equal(pod_hold_read(tree, &rules, &all, &h, NULL), 0);
	assert_true(h.holds);
	assert_int_equal(cluster_hold(c, &h.hold, NULL), 0);
}

#define HELD(uid, priority, memory)                                                                                    \
	"{'metadata':{'name':'" uid "','namespace':'ns','uid':'" uid "','labels':{'app':'" uid                         \
	"'},'annotations':{'hami.io/vgpu-node':'n1','hami.io/vgpu-devices-allocated':'GPU-1,NVIDIA," memory            \
	",0:;'}},'spec':{'nodeName':'n1',"                                                                             \
	"'priority':" priority ",'containers':[{'name':'c','resources':{'limits':{" GPU(memory) "}}}]}}"

static struct cluster *full(void)
{
	struct cluster *c = cluster_new(1);

	put_node(c);
	put_pod(c, HELD("a", "0", "20000"));
	put_pod(c, HELD("b", "500", "15000"));
	return c;
}

static void answers(void **state)
{
	static const struct {
		const char *asked;
		int status;
		const char *want;
	} rows[] = {
		/* kube-scheduler 1.38 and newer: a node where none of its own filters want a victim. */
		{ "{'Pod':" HIGH
		  ",'NodeNameToVictims':null,'NodeNameToMetaVictims':{'n1':{'Pods':[],'NumPDBViolations':0}}}",
		  200, "{'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'b'},{'UID':'a'}],'NumPDBViolations':0}}}" },
		{ "{'Pod':" POD("p", "'priority':100,",
				GPU("20000")) ",'NodeNameToMetaVictims':{'n1':{'Pods':[],'NumPDBViolations':0}}}",
		  200, "{'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'a'}],'NumPDBViolations':0}}}" },
		/* Before: nodes whose CPU needs a victim. */
		{ "{'Pod':" HIGH
		  ",'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'cpu'},{'UID':'a'}],'NumPDBViolations':2}}}",
		  200,
		  "{'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'cpu'},{'UID':'a'},{'UID':'b'}],'NumPDBViolations':2}"
		  "}}" },
		/* Whole pods, where kube-scheduler takes us for one that knows no nodes. */
		{ "{'Pod':" HIGH
		  ",'NodeNameToVictims':{'n1':{'Pods':[{'metadata':{'uid':'b'}}],'NumPDBViolations':0}}}",
		  200, "{'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'b'},{'UID':'a'}],'NumPDBViolations':0}}}" },
		/* Nobody there has less. */
		{ "{'Pod':" POD("p", "", GPU("30000")) ",'NodeNameToMetaVictims':{'n1':{'Pods':[]},'n2':{'Pods':[]}}}",
		  200, "{'NodeNameToMetaVictims':{}}" },
		{ "{'Pod':" HIGH ",'NodeNameToMetaVictims':{'n2':{'Pods':[{'UID':'x'}]}}}", 200,
		  "{'NodeNameToMetaVictims':{}}" },
		/* Without cards all is as kube-scheduler says. */
		{ "{'pod':" POD(
			  "p", "'priority':9,",
			  "'cpu':'1'") ",'nodeNameToMetaVictims':{'n2':{'pods':[{'uid':'x'}],'numpdbviolations':1}}}",
		  200, "{'NodeNameToMetaVictims':{'n2':{'Pods':[{'UID':'x'}],'NumPDBViolations':1}}}" },
		{ "{'Pod':" HIGH "}", 200, "{'NodeNameToMetaVictims':{}}" },
		/* No Go program writes that. */
		{ "{'Pod':" HIGH ",'NodeNameToMetaVictims':{'n1':[{'Pods':1}],'n2':{'Pods':[[]]}}}", 400,
		  "node n2: a victim without UID\n" },
		{ "{'NodeNameToMetaVictims':{}}", 400, "extender args missing pod\n" },
		{ "{'Pod':" HIGH ",'NodeNameToMetaVictims':{'n1':{'Pods':[{}]}}}", 400,
		  "node n1: a victim without UID\n" },
		{ "{'Pod':" HIGH ",'NodeNameToMetaVictims':[]}", 400, "the victims are no map\n" },
		{ "{'Pod':" POD("p", "'priority':9,", GPU("-1")) ",'NodeNameToMetaVictims':{'n1':{'Pods':[]}}}", 400,
		  NULL },
		{ "{", 400, NULL },
	};
	hm_auto(cluster) *c = full();
	const struct preempt_config config = { .cluster = c, .card_policy = "spread", .pods = rules, .barred = barred };
	hm_auto(preempt_verb) *p = NULL;

	(void)state;
	assert_int_equal(preempt_verb_new(&config, &p, NULL), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		char *asked = json_text_of(rows[i].asked),
		     *want = rows[i].want != NULL ? json_text_of(rows[i].want) : NULL;
		hm_auto_str out = { 0 };
		int status = preempt_answer(p, asked, strlen(asked), &out);

		if (status != rows[i].status || (want != NULL && strcmp(str_text(&out), want) != 0))
			fail_msg("%s: %d %s", rows[i].asked, status, str_text(&out));
		free(asked);
		free(want);
	}
}

/* Of what kube-scheduler counted, and of ours. */
static void violations_are_added(void **state)
{
	static const char asked[] =
		"{'Pod':" HIGH ",'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'cpu'}],'NumPDBViolations':2}}}";
	hm_auto(cluster) *c = full();
	hm_auto(cJSON) *tree = json_of("{'spec':{'selector':{'matchLabels':{'app':'a'}}},'status':{'disruptionsAllowed'"
				       ":0}}");
	const struct preempt_config config = { .cluster = c, .card_policy = "spread", .pods = rules };
	hm_auto(preempt_verb) *p = NULL;
	hm_auto_budget_read b = { 0 };
	hm_auto_str out = { 0 };
	char *text = json_text_of(asked);

	(void)state;
	assert_int_equal(preempt_verb_new(&config, &p, NULL), 0);
	assert_int_equal(budget_read(tree, &b, NULL), 1);
	assert_int_equal(budgets_set(cluster_budgets(c), "ns", "b", &b.terms, NULL), 0);
	assert_int_equal(preempt_answer(p, text, strlen(text), &out), 200);
	free(text);
	text = json_text_of("{'NodeNameToMetaVictims':{'n1':{'Pods':[{'UID':'cpu'},{'UID':'b'},{'UID':'a'}],"
			    "'NumPDBViolations':3}}}");
	assert_string_equal(str_text(&out), text);
	free(text);
}

static void not_while_barred(void **state)
{
	hm_auto(cluster) *c = full();
	const struct preempt_config config = { .cluster = c, .card_policy = "spread", .pods = rules, .barred = barred };
	hm_auto(preempt_verb) *p = NULL;
	hm_auto_str out = { 0 };

	(void)state;
	assert_int_equal(preempt_verb_new(&config, &p, NULL), 0);
	bar = "this replica does not lead";
	assert_int_equal(preempt_answer(p, "{}", 2, &out), 503);
	assert_string_equal(str_text(&out), "this replica does not lead\n");
	bar = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(answers), cmocka_unit_test(violations_are_added),
					    cmocka_unit_test(not_while_barred) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
