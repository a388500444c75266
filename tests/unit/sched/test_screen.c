/* Kubernetes' documented rules of taints, tolerations, node selectors and affinity, an object's line each. */
#include "sched/simulate/screen.h"

#include "base/str.h"
#include "core/macros.h"
#include "harness/json_of.h"

#define TAINT(effect) "'taints':[{'key':'k','value':'v','effect':'" effect "'}]"
#define TOLERATION(more) "'tolerations':[{" more "}]"
#define REQUIRED(terms)                                                                                                \
	"'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{'nodeSelectorTerms':[" terms    \
	"]}}}"
#define TERM(key, op, values) "{'matchExpressions':[{'key':'" key "','operator':'" op "','values':[" values "]}]}"
#define NAMED(op, name) "{'matchFields':[{'key':'metadata.name','operator':'" op "','values':['" name "']}]}"

struct case_ {
	const char *node, *pod; /* members of their specs */
	enum screen_reason want;
};

/* The node is n1 and has the labels zone: a, memory: 80, free: "". */
static void check(const char *node_spec, const char *pod_spec, enum screen_reason want)
{
	hm_auto_str node = { 0 }, pod = { 0 };
	struct screen_node n;
	struct screen_pod p;

	str_addf(&node, "{'metadata':{'name':'n1','labels':{'zone':'a','memory':'80','free':''}},'spec':{%s}}",
		 node_spec);
	str_addf(&pod, "{'metadata':{'name':'p'},'spec':{%s}}", pod_spec);
	{
		hm_auto(cJSON) *node_tree = json_of(str_text(&node)), *pod_tree = json_of(str_text(&pod));

		n = screen_node_of(node_tree);
		p = screen_pod_of(pod_tree);
		if (screen_pod_on(&p, &n) != want)
			fail_msg("%s on %s: %d, not %d", pod_spec, node_spec, (int)screen_pod_on(&p, &n), (int)want);
	}
}

static void check_all(const struct case_ *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(cases[i].node, cases[i].pod, cases[i].want);
}

static void taints(void **state)
{
	static const struct case_ cases[] = {
		{ "", "", SCREEN_PASSES },
		{ "'unschedulable':false", "", SCREEN_PASSES },
		{ "'unschedulable':true", "", SCREEN_UNSCHEDULABLE },
		{ "'unschedulable':true", TOLERATION("'key':'k','operator':'Exists'"), SCREEN_UNSCHEDULABLE },
		{ "'unschedulable':true", TOLERATION("'key':'node.kubernetes.io/unschedulable','operator':'Exists'"),
		  SCREEN_PASSES },
		{ "'unschedulable':true", TOLERATION("'operator':'Exists'"), SCREEN_PASSES },
		{ "'unschedulable':true," TAINT("NoSchedule"),
		  TOLERATION("'key':'node.kubernetes.io/unschedulable','operator':'Exists'"), SCREEN_TAINTED },
		{ TAINT("NoSchedule"), "", SCREEN_TAINTED },
		{ TAINT("NoExecute"), "", SCREEN_TAINTED },
		{ TAINT("PreferNoSchedule"), "", SCREEN_PASSES },
		{ TAINT("NoSchedule"), TOLERATION("'key':'k','value':'v'"), SCREEN_PASSES },
		{ TAINT("NoSchedule"), TOLERATION("'key':'k','operator':'Equal','value':'v','effect':'NoSchedule'"),
		  SCREEN_PASSES },
		{ TAINT("NoSchedule"), TOLERATION("'key':'k','value':'v','effect':'NoExecute'"), SCREEN_TAINTED },
		{ TAINT("NoSchedule"), TOLERATION("'key':'k','value':'w'"), SCREEN_TAINTED },
		{ TAINT("NoSchedule"), TOLERATION("'key':'k'"), SCREEN_TAINTED },
		{ TAINT("NoSchedule"), TOLERATION("'key':'l','operator':'Exists'"), SCREEN_TAINTED },
		{ TAINT("NoSchedule"), TOLERATION("'key':'k','operator':'Exists'"), SCREEN_PASSES },
		{ TAINT("NoSchedule"), TOLERATION("'key':'k','operator':'Luck','value':'v'"), SCREEN_TAINTED },
		{ "'taints':[{'key':'gpu','effect':'NoSchedule'},{'key':'k','value':'v','effect':'NoExecute'}]",
		  TOLERATION("'key':'gpu','operator':'Exists'"), SCREEN_TAINTED },
		{ "'taints':[{'key':'gpu','effect':'NoSchedule'},{'key':'k','value':'v','effect':'NoExecute'}]",
		  TOLERATION("'key':'gpu','operator':'Exists'},{'key':'k','value':'v'"), SCREEN_PASSES },
	};

	(void)state;
	check_all(cases, HM_COUNT(cases));
}

static void labels(void **state)
{
	static const struct case_ cases[] = {
		{ "", "'nodeSelector':{}", SCREEN_PASSES },
		{ "", "'nodeSelector':{'zone':'a','free':''}", SCREEN_PASSES },
		{ "", "'nodeSelector':{'zone':'a','memory':'81'}", SCREEN_NOT_SELECTED },
		{ "", "'nodeSelector':{'Zone':'a'}", SCREEN_NOT_SELECTED },
		{ "", "'nodeSelector':{'memory':80}", SCREEN_NOT_SELECTED },
		{ TAINT("NoSchedule"), "'nodeSelector':{'zone':'b'}", SCREEN_TAINTED },
		{ "", REQUIRED(TERM("zone", "In", "'b','a'")), SCREEN_PASSES },
		{ "", REQUIRED(TERM("zone", "In", "'b'")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("rack", "In", "''")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("zone", "NotIn", "'b','a'")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("zone", "NotIn", "'b'")), SCREEN_PASSES },
		{ "", REQUIRED(TERM("rack", "NotIn", "'b'")), SCREEN_PASSES },
		{ "", REQUIRED(TERM("free", "Exists", "")), SCREEN_PASSES },
		{ "", REQUIRED(TERM("rack", "Exists", "")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("free", "DoesNotExist", "")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("rack", "DoesNotExist", "")), SCREEN_PASSES },
		{ "", REQUIRED(TERM("memory", "Gt", "'79'")), SCREEN_PASSES },
		{ "", REQUIRED(TERM("memory", "Gt", "'80'")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("memory", "Gt", "'-1'")), SCREEN_PASSES },
		{ "", REQUIRED(TERM("memory", "Lt", "'81'")), SCREEN_PASSES },
		{ "", REQUIRED(TERM("memory", "Lt", "'9'")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("memory", "Gt", "'1','2'")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("zone", "Gt", "'1'")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(TERM("zone", "Luck", "'a'")), SCREEN_NOT_SELECTED },
		/* Terms are alternatives, what is in one must all be met. */
		{ "", REQUIRED(TERM("zone", "In", "'b'") "," TERM("zone", "In", "'a'")), SCREEN_PASSES },
		{ "",
		  REQUIRED("{'matchExpressions':[{'key':'zone','operator':'Exists'},{'key':'rack','operator':'Exists'}]"
			   "}"),
		  SCREEN_NOT_SELECTED },
		{ "", REQUIRED(""), SCREEN_NOT_SELECTED },
		{ "", REQUIRED("{}"), SCREEN_NOT_SELECTED },
		{ "", "'affinity':{'nodeAffinity':{'preferredDuringSchedulingIgnoredDuringExecution':[]}}",
		  SCREEN_PASSES },
		{ "", REQUIRED(NAMED("In", "n1")), SCREEN_PASSES },
		{ "", REQUIRED(NAMED("In", "n2")), SCREEN_NOT_SELECTED },
		{ "", REQUIRED(NAMED("NotIn", "n1")), SCREEN_NOT_SELECTED },
		{ "", "'nodeSelector':{'zone':'b'}," REQUIRED(TERM("zone", "In", "'a'")), SCREEN_NOT_SELECTED },
	};

	(void)state;
	check_all(cases, HM_COUNT(cases));
}

/* What is no object or list says nothing; it must not be read as one. */
static void another_kind(void **state)
{
	static const struct case_ cases[] = {
		{ "'unschedulable':'true','taints':'NoSchedule'", "", SCREEN_PASSES },
		{ "'taints':[1,null,'NoSchedule',{'effect':7}]", "", SCREEN_PASSES },
		{ TAINT("NoSchedule"), "'tolerations':'Exists'", SCREEN_TAINTED },
		{ TAINT("NoSchedule"), "'tolerations':[1,{'operator':['Exists']},{'key':{}}]", SCREEN_TAINTED },
		{ "", "'nodeSelector':['zone'],'affinity':[{'nodeAffinity':1}]", SCREEN_PASSES },
		{ "", REQUIRED("1,'zone',null,{'matchExpressions':'zone'}"), SCREEN_NOT_SELECTED },
		{ "", REQUIRED("{'matchExpressions':[1]}"), SCREEN_NOT_SELECTED },
	};
	const struct screen_node n = screen_node_of(NULL);
	const struct screen_pod p = screen_pod_of(NULL);

	(void)state;
	check_all(cases, HM_COUNT(cases));
	assert_int_equal(screen_pod_on(&p, &n), SCREEN_PASSES);
}

/* Of too long a list nothing counts that would let the pod in. */
static void too_many(void **state)
{
	hm_auto_str node = { 0 }, pod = { 0 };

	(void)state;
	for (int count = 1024; count <= 1025; count++) {
		enum screen_reason want = count == 1024 ? SCREEN_PASSES : SCREEN_TAINTED;

		str_clear(&node);
		str_clear(&pod);
		str_add(&node, "'taints':[{'key':'k','value':'v','effect':'NoSchedule'}");
		str_add(&pod, "'tolerations':[{'operator':'Exists'}");
		for (int i = 1; i < count; i++) {
			str_add(&node, ",{}");
			str_add(&pod, ",{}");
		}
		str_addc(&node, ']');
		str_addc(&pod, ']');
		check(str_text(&node), TOLERATION("'operator':'Exists'"), want);
		check(TAINT("NoSchedule"), str_text(&pod), want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(taints),
		cmocka_unit_test(labels),
		cmocka_unit_test(another_kind),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
