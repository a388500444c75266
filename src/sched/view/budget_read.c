#include "sched/view/budget_read.h"

#include <string.h>

#include "sched/view/pod_read.h"

void budget_read_fini(struct budget_read *b)
{
	str_fini(&b->selector);
	str_fini(&b->disrupted);
}

/* ---- the selector */

static int add_word(struct budget_read *b, size_t *words, struct hm_err *e)
{
	if (++*words > BUDGET_MAX_WORDS)
		return hm_err_set(e, HM_ELIMIT, "selector: more than %d keys and values", (int)BUDGET_MAX_WORDS);
	return str_failed(&b->selector) ? hm_err_set(e, HM_ENOMEM, "selector") : 0;
}

static int add_demand(struct budget_read *b, enum budget_op op, const char *key, size_t *words, struct hm_err *e)
{
	budget_add_demand(&b->selector, op, key);
	return add_word(b, words, e);
}

static int add_value(struct budget_read *b, const struct cJSON *value, size_t *words, struct hm_err *e)
{
	const char *text = cJSON_GetStringValue(value);

	if (text == NULL)
		return hm_err_set(e, HM_EINVAL, "selector: a value is no text");
	budget_add_value(&b->selector, text);
	return add_word(b, words, e);
}

static int add_expression(struct budget_read *b, const struct cJSON *it, size_t *words, struct hm_err *e)
{
	static const struct {
		const char *name;
		enum budget_op op;
		bool values;
	} ops[] = {
		{ "In", BUDGET_IN, true },
		{ "NotIn", BUDGET_NOT_IN, true },
		{ "Exists", BUDGET_EXISTS, false },
		{ "DoesNotExist", BUDGET_NOT_EXISTS, false },
	};
	const char *key = pod_text(it, "key"), *name = pod_text(it, "operator");
	const struct cJSON *values = pod_member(it, "values"), *value;
	size_t at = 0;
	int err;

	while (at < HM_COUNT(ops) && (name == NULL || strcmp(name, ops[at].name) != 0))
		at++;
	if (key == NULL || at == HM_COUNT(ops) || (values != NULL && !cJSON_IsNull(values) && !cJSON_IsArray(values)) ||
	    (cJSON_GetArraySize(values) > 0) != ops[at].values)
		return hm_err_set(e, HM_EINVAL, "selector: an expression that is none");
	err = add_demand(b, ops[at].op, key, words, e);
	for (value = values != NULL ? values->child : NULL; err == 0 && value != NULL; value = value->next)
		err = add_value(b, value, words, e);
	return err;
}

static int add_selector(struct budget_read *b, const struct cJSON *selector, struct hm_err *e)
{
	const struct cJSON *it;
	size_t words = 0;
	int err = 0;

	cJSON_ArrayForEach(it, pod_member(selector, "matchLabels"))
	{
		if (it->string == NULL)
			return hm_err_set(e, HM_EINVAL, "selector: matchLabels is no map");
		err = add_demand(b, BUDGET_IN, it->string, &words, e);
		if (err == 0)
			err = add_value(b, it, &words, e);
		if (err < 0)
			return err;
	}
	cJSON_ArrayForEach(it, pod_member(selector, "matchExpressions"))
	{
		err = add_expression(b, it, &words, e);
		if (err < 0)
			return err;
	}
	return 0;
}

/* ---- the rest */

static void add_disrupted(struct budget_read *b, const struct cJSON *pods)
{
	const struct cJSON *it;
	int left = BUDGET_MAX_DISRUPTED;

	cJSON_ArrayForEach(it, pods)
	{
		if (it->string == NULL || strchr(it->string, '\n') != NULL || left-- == 0)
			return;
		if (strlen(it->string) <= POD_NAME_MAX_BYTES)
			str_addf(&b->disrupted, "%s\n", it->string);
	}
}

int budget_read(const struct cJSON *budget, struct budget_read *out, struct hm_err *e)
{
	const struct cJSON *status = pod_member(budget, "status");
	const struct cJSON *allowed = pod_member(status, "disruptionsAllowed");
	int err;

	*out = (struct budget_read) { 0 };
	err = add_selector(out, pod_member(pod_member(budget, "spec"), "selector"), e);
	if (err < 0)
		return err;
	if (out->selector.n == 0)
		return 0;
	add_disrupted(out, pod_member(status, "disruptedPods"));
	if (str_failed(&out->disrupted))
		return hm_err_set(e, HM_ENOMEM, "disrupted pods");
	out->terms = (struct budget_terms) { .selector = &out->selector, .disrupted = str_text(&out->disrupted) };
	if (cJSON_IsNumber(allowed) && allowed->valuedouble > 0)
		out->terms.allowed = (int64_t)HM_MIN(allowed->valuedouble, (double)INT32_MAX);
	return 1;
}

void pod_labels_read(const struct cJSON *pod, struct str *out)
{
	const struct cJSON *it;
	int left = POD_LABELS_MAX;

	cJSON_ArrayForEach(it, pod_member(pod_member(pod, "metadata"), "labels"))
	{
		const char *value = cJSON_GetStringValue(it);

		if (left-- == 0)
			return;
		if (it->string != NULL && value != NULL &&
		    out->n + strlen(it->string) + strlen(value) + 2 <= POD_LABELS_MAX_BYTES)
			pod_labels_add(out, it->string, value);
	}
}
