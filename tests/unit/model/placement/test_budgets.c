#include "model/placement/budgets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"

/* "app" is one of the values, or whatever else where `value` is NULL. */
static int set(struct budgets *b, const char *space, const char *name, const char *value, int64_t allowed,
	       const char *disrupted)
{
	hm_auto_str selector = { 0 };
	struct budget_terms terms = { &selector, allowed, disrupted };

	budget_add_demand(&selector, value != NULL ? BUDGET_IN : BUDGET_EXISTS, "app");
	if (value != NULL)
		budget_add_value(&selector, value);
	if (str_failed(&selector))
		return -HM_ENOMEM;
	return budgets_set(b, space, name, &terms, NULL);
}

static struct pod_labels *labels(const char *app)
{
	hm_auto_str text = { 0 };
	struct pod_labels *l;

	pod_labels_add(&text, "app", app);
	assert_int_equal(pod_labels_new(str_text(&text), &l), 0);
	return l;
}

static void each_takes_one(void **state)
{
	hm_auto(budgets) *b = budgets_new();
	struct pod_labels *web = labels("web"), *db = labels("db");

	(void)state;
	assert_int_equal(set(b, "ns", "two", "web", 2, "gone\nw-1\n"), 0);
	assert_int_equal(set(b, "ns", "none", "db", 0, ""), 0);
	for (int round = 0; round < 2; round++) { /* a round knows nothing of the last one */
		budgets_begin(b);
		assert_false(budgets_take(b, "ns", "w-1", web)); /* it was counted already */
		assert_false(budgets_take(b, "ns", "w-2", web));
		assert_false(budgets_take(b, "ns", "w", web));
		assert_true(budgets_take(b, "ns", "w-3", web));
		assert_false(budgets_take(b, "ns", "gone", web));
		assert_true(budgets_take(b, "ns", "d-1", db));
		assert_false(budgets_take(b, "elsewhere", "d-2", db));
		assert_false(budgets_take(b, "ns", "bare", NULL));
	}
	free(web);
	free(db);
}

/* Who has looked looks again when it matters, and only then. */
static void budgets_come_and_go(void **state)
{
	hm_auto(budgets) *b = budgets_new();
	struct pod_labels *web = labels("web");
	static const struct {
		const char *name, *value; /* "": it is removed */
		int64_t allowed;
		bool violates, looks;
	} steps[] = {
		{ "a", "web", 0, true, true }, { "a", "web", 1, false, false }, { "b", "db", 0, false, true },
		{ "b", NULL, 0, true, true },  { "b", "", 0, false, true },     { "a", "web", 0, true, false },
		{ "a", "db", 0, false, true }, { "a", "web", 0, true, true },   { "a", "", 0, false, false },
		{ "a", "web", 0, true, true }, { "x", "", 0, true, false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(steps); i++) {
		uint64_t work = budgets_work(b);

		if (steps[i].value != NULL && steps[i].value[0] == '\0')
			budgets_remove(b, "ns", steps[i].name);
		else
			assert_int_equal(set(b, "ns", steps[i].name, steps[i].value, steps[i].allowed, ""), 0);
		assert_int_equal(set(b, "other", "o", i % 2 ? "web" : "db", 0, ""), 0);
		budgets_begin(b);
		if (budgets_take(b, "ns", "w", web) != steps[i].violates || (budgets_work(b) > work) != steps[i].looks)
			fail_msg("step %zu", i);
	}
	free(web);
}

/* Of a pod that is under more budgets than that the first count; of a namespace the first words. */
static void bounds(void **state)
{
	hm_auto(budgets) *b = budgets_new();
	struct pod_labels *web = labels("web"), *db = labels("db");
	char name[16];

	(void)state;
	for (int i = 0; i <= BUDGETS_OF_A_POD; i++) {
		snprintf(name, sizeof name, "b%d", i);
		assert_int_equal(set(b, "ns", name, "web", i < BUDGETS_OF_A_POD, ""), 0);
	}
	budgets_begin(b);
	assert_false(budgets_take(b, "ns", "w", web));
	budgets_remove(b, "ns", "b0");
	assert_true(budgets_take(b, "ns", "w", web));
	for (int i = 0; i < BUDGETS_MAX_WORDS / 2; i++) {
		snprintf(name, sizeof name, "c%d", i);
		assert_int_equal(set(b, "many", name, i < BUDGETS_MAX_WORDS / 2 - 1 ? "other" : "web", 0, ""), 0);
	}
	assert_int_equal(set(b, "many", "last", "db", 0, ""), 0);
	budgets_begin(b);
	assert_true(budgets_take(b, "many", "w", web));
	assert_false(budgets_take(b, "many", "d", db));
	free(web);
	free(db);
}

/* One of many labels, each at its place. */
static void labels_of_a_pod(void **state)
{
	hm_auto(budgets) *b = budgets_new();
	hm_auto_str text = { 0 };
	struct pod_labels *l;

	(void)state;
	assert_int_equal(pod_labels_new(NULL, &l), 0);
	assert_null(l);
	assert_int_equal(pod_labels_new("", &l), 0);
	assert_null(l);
	pod_labels_add(&text, "a", "web");
	pod_labels_add(&text, "ap", "web");
	pod_labels_add(&text, "app.kubernetes.io/name", "web");
	assert_int_equal(set(b, "ns", "b", "web", 0, ""), 0);
	for (int with = 0; with < 2; with++) {
		if (with)
			pod_labels_add(&text, "app", "web");
		assert_int_equal(pod_labels_new(str_text(&text), &l), 0);
		budgets_begin(b);
		assert_int_equal(budgets_take(b, "ns", "p", l), with);
		free(l);
	}
}

/* What could not be set is as it was. */
static int set_all(void *arg)
{
	hm_auto(budgets) *b = budgets_new();
	struct pod_labels *web = arg;
	int err;

	if (b == NULL)
		return -HM_ENOMEM;
	web->version = 0; /* they are of other budgets each time */
	err = set(b, "ns", "b", "web", 0, "");
	budgets_begin(b);
	assert_int_equal(budgets_take(b, "ns", "w", web), err == 0);
	if (err < 0)
		return err;
	err = set(b, "ns", "b", "web", 5, "x\n");
	budgets_begin(b);
	assert_int_equal(budgets_take(b, "ns", "w", web), err < 0);
	if (err < 0)
		return err;
	return set(b, "ns", "b", "db", 5, "x\n");
}

static void memory_runs_out(void **state)
{
	struct pod_labels *web = labels("web");

	(void)state;
	sweep_check("budgets", set_all, web);
	free(web);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_takes_one),  cmocka_unit_test(budgets_come_and_go), cmocka_unit_test(bounds),
		cmocka_unit_test(labels_of_a_pod), cmocka_unit_test(memory_runs_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
