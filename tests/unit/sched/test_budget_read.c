/* From a PodDisruptionBudget's JSON and a pod's to: is the pod under it? Wanted is what the documentation of labels and
 * selectors says, and what kube-scheduler's filterPodsWithPDBViolation leaves out. */
#include "sched/view/budget_read.h"

#include <stdio.h>

#include "harness/json_of.h"
#include "harness/sweep.h"

#define BUDGET(selector) "{'spec':{'selector':" selector "},'status':{'disruptionsAllowed':0}}"
#define EXPRESSION(key, op, more) "{'matchExpressions':[{'key':'" key "','operator':'" op "'" more "}]}"
#define POD(labels) "{'metadata':{'labels':" labels "}}"
#define WEB POD("{'app':'web','tier':'front','empty':''}")

/* A budget that allows nothing is violated by whoever is under it. */
static bool is_under(const struct budget_read *read, const char *pod)
{
	hm_auto(cJSON) *tree = json_of(pod);
	hm_auto(budgets) *b = budgets_new();
	hm_auto_str text = { 0 };
	struct pod_labels *labels hm_auto_heap = NULL;

	pod_labels_read(tree, &text);
	assert_int_equal(pod_labels_new(str_text(&text), &labels), 0);
	assert_int_equal(budgets_set(b, "ns", "b", &read->terms, NULL), 0);
	budgets_begin(b);
	return budgets_take(b, "ns", "p", labels);
}

static void who_is_under_a_budget(void **state)
{
	static const struct {
		const char *selector, *pod;
		bool under;
	} rows[] = {
		{ "{'matchLabels':{'app':'web'}}", WEB, true },
		{ "{'matchLabels':{'app':'web','tier':'front'}}", WEB, true },
		{ "{'matchLabels':{'app':'web','tier':'back'}}", WEB, false },
		{ "{'matchLabels':{'app':'we'}}", WEB, false },
		{ "{'matchLabels':{'app':'webs'}}", WEB, false },
		{ "{'matchLabels':{'ap':'web'}}", WEB, false },
		{ "{'matchLabels':{'empty':''}}", WEB, true },
		{ "{'matchLabels':{'none':''}}", WEB, false },
		{ EXPRESSION("app", "In", ",'values':['db','web']"), WEB, true },
		{ EXPRESSION("app", "In", ",'values':['db']"), WEB, false },
		{ EXPRESSION("none", "In", ",'values':['']"), WEB, false },
		{ EXPRESSION("app", "NotIn", ",'values':['db','cache']"), WEB, true },
		{ EXPRESSION("app", "NotIn", ",'values':['db','web']"), WEB, false },
		{ EXPRESSION("none", "NotIn", ",'values':['web']"), WEB, true },
		{ EXPRESSION("tier", "Exists", ""), WEB, true },
		{ EXPRESSION("tie", "Exists", ",'values':[]"), WEB, false },
		{ EXPRESSION("none", "DoesNotExist", ",'values':null"), WEB, true },
		{ EXPRESSION("tier", "DoesNotExist", ""), WEB, false },
		{ "{'matchLabels':{'app':'web'},'matchExpressions':[{'key':'tier','operator':'In','values':['front']}]"
		  "}",
		  WEB, true },
		{ "{'matchLabels':{'app':'web'},'matchExpressions':[{'key':'tier','operator':'DoesNotExist'}]}", WEB,
		  false },
		/* kube-scheduler: a pod without labels is under no budget. */
		{ EXPRESSION("none", "DoesNotExist", ""), POD("{}"), false },
		{ EXPRESSION("none", "DoesNotExist", ""), "{'metadata':{}}", false },
		/* What the API server lets nobody write. */
		{ "{'matchLabels':{'app':'web'}}", POD("{'a=b\\napp':'web'}"), false },
		{ "{'matchLabels':{'app':'web'}}", POD("{'x':'y\\napp=web'}"), false },
		{ "{'matchLabels':{'app':'web'}}", POD("{'app':['web']}"), false },
		{ "{'matchLabels':{'app':'web'}}", POD("['web']"), false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		char text[512];
		hm_auto_budget_read b = { 0 };
		hm_auto(cJSON) *tree = NULL;

		snprintf(text, sizeof text, BUDGET("%s"), rows[i].selector);
		tree = json_of(text);
		assert_int_equal(budget_read(tree, &b, NULL), 1);
		if (is_under(&b, rows[i].pod) != rows[i].under)
			fail_msg("%s, %s: under it is not %d", rows[i].selector, rows[i].pod, rows[i].under);
	}
}

static void budgets_that_count_for_nobody(void **state)
{
	static const struct {
		const char *budget;
		int want;
	} rows[] = {
		{ "{}", 0 },
		{ BUDGET("null"), 0 },
		{ BUDGET("{}"), 0 },
		{ BUDGET("{'matchLabels':{},'matchExpressions':[]}"), 0 },
		{ BUDGET("'all'"), 0 },
		{ BUDGET("{'matchLabels':['app']}"), -HM_EINVAL },
		{ BUDGET("{'matchLabels':{'app':1}}"), -HM_EINVAL },
		{ BUDGET("{'matchExpressions':['app']}"), -HM_EINVAL },
		{ BUDGET(EXPRESSION("app", "Like", ",'values':['w*']")), -HM_EINVAL },
		{ BUDGET("{'matchExpressions':[{'key':'app'}]}"), -HM_EINVAL },
		{ BUDGET("{'matchExpressions':[{'operator':'Exists'}]}"), -HM_EINVAL },
		{ BUDGET(EXPRESSION("app", "In", "")), -HM_EINVAL },
		{ BUDGET(EXPRESSION("app", "NotIn", ",'values':[]")), -HM_EINVAL },
		{ BUDGET(EXPRESSION("app", "Exists", ",'values':['web']")), -HM_EINVAL },
		{ BUDGET(EXPRESSION("app", "In", ",'values':'web'")), -HM_EINVAL },
		{ BUDGET(EXPRESSION("app", "In", ",'values':[1]")), -HM_EINVAL },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cJSON) *tree = json_of(rows[i].budget);
		hm_auto_budget_read b = { 0 };
		struct hm_err e = { 0 };

		if (budget_read(tree, &b, &e) != rows[i].want || (rows[i].want < 0 && e.msg[0] == '\0'))
			fail_msg("%s: %s", rows[i].budget, e.msg);
	}
}

static void what_it_allows(void **state)
{
#define STATUS(text) "{'spec':{'selector':{'matchLabels':{'a':'b'}}},'status':" text "}"
	static const struct {
		const char *budget;
		int64_t allowed;
		const char *disrupted;
	} rows[] = {
		{ STATUS("{'disruptionsAllowed':3,'disruptedPods':{'p-1':'2026-11-30T00:00:00Z','p-2':null}}"), 3,
		  "p-1\np-2\n" },
		{ STATUS("{'disruptionsAllowed':0,'disruptedPods':{}}"), 0, "" },
		{ STATUS("{}"), 0, "" },
		{ STATUS("null"), 0, "" },
		{ STATUS("{'disruptionsAllowed':-2,'disruptedPods':['p']}"), 0, "" },
		{ STATUS("{'disruptionsAllowed':'7'}"), 0, "" },
		{ STATUS("{'disruptionsAllowed':1e300}"), INT32_MAX, "" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cJSON) *tree = json_of(rows[i].budget);
		hm_auto_budget_read b = { 0 };

		assert_int_equal(budget_read(tree, &b, NULL), 1);
		assert_true(b.terms.allowed == rows[i].allowed);
		assert_string_equal(b.terms.disrupted, rows[i].disrupted);
	}
}

/* {'<name>0':'v','<name>1':'v',...} as cJSON. */
static struct cJSON *many(const char *name, int count)
{
	struct cJSON *map = cJSON_CreateObject();

	for (int i = 0; i < count; i++) {
		char key[64];

		snprintf(key, sizeof key, "%s%d", name, i);
		cJSON_AddStringToObject(map, key, "v");
	}
	return map;
}

static void bounds(void **state)
{
	for (int labels = BUDGET_MAX_WORDS / 2; labels <= BUDGET_MAX_WORDS / 2 + 1; labels++) {
		hm_auto(cJSON) *tree = json_of("{'spec':{'selector':{}},'status':{}}");
		hm_auto_budget_read b = { 0 };
		size_t names = 0;
		int r;

		cJSON_AddItemToObject(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "spec"), "selector"), "matchLabels",
				      many("k", labels));
		cJSON_AddItemToObject(cJSON_GetObjectItem(tree, "status"), "disruptedPods",
				      many("pod", BUDGET_MAX_DISRUPTED + 1));
		r = budget_read(tree, &b, NULL);
		assert_int_equal(r, labels > BUDGET_MAX_WORDS / 2 ? -HM_ELIMIT : 1);
		for (size_t i = 0; i < b.disrupted.n; i++)
			names += b.disrupted.p[i] == '\n';
		assert_int_equal(names, r == 1 ? BUDGET_MAX_DISRUPTED : 0);
	}
	(void)state;
	{
		hm_auto(cJSON) *tree = json_of(STATUS("{'disruptedPods':{}}")), *pods = cJSON_CreateObject();
		hm_auto_budget_read b = { 0 };
		char name[255] = "";

		memset(name, 'p', 254);
		cJSON_AddTrueToObject(pods, name);
		name[253] = '\0';
		cJSON_AddTrueToObject(pods, name);
		assert_int_equal(
			cJSON_ReplaceItemInObject(cJSON_GetObjectItem(tree, "status"), "disruptedPods", HM_STEAL(pods)),
			1);
		assert_int_equal(budget_read(tree, &b, NULL), 1);
		assert_int_equal(b.disrupted.n, 254);
	}
	{
		hm_auto(cJSON) *tree = json_of("{'metadata':{}}");
		hm_auto_str text = { 0 };

		cJSON_AddItemToObject(cJSON_GetObjectItem(tree, "metadata"), "labels", many("k", POD_LABELS_MAX + 1));
		pod_labels_read(tree, &text);
		assert_non_null(strstr(str_text(&text), "k63=v\n"));
		assert_null(strstr(str_text(&text), "k64=v\n"));
	}
}

static int read_once(void *arg)
{
	hm_auto_budget_read b = { 0 };

	return HM_MIN(budget_read(arg, &b, NULL), 0);
}

static void memory_runs_out(void **state)
{
	hm_auto(cJSON) *tree = json_of(STATUS("{'disruptedPods':{'p-1':null}}"));

	(void)state;
	sweep_check("a budget", read_once, tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_under_a_budget), cmocka_unit_test(budgets_that_count_for_nobody),
		cmocka_unit_test(what_it_allows),        cmocka_unit_test(bounds),
		cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
