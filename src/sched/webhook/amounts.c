#include "sched/webhook/amounts.h"

#include <stdio.h>

#include "contract/names.h"
#include "core/macros.h"
#include "io/json.h"

static int64_t factor_of(const struct device_config *c)
{
	return c->memory_factor > 1 ? (int64_t)c->memory_factor : 1;
}

const char *amount_name(const struct device_config *c, enum amount_kind kind)
{
	const char *const names[AMOUNT_KINDS] = {
		[AMOUNT_COUNT] = c->resource_count,
		[AMOUNT_MEMORY] = c->resource_memory,
		[AMOUNT_PERCENT] = c->resource_memory_percentage,
		[AMOUNT_CORES] = c->resource_cores,
		[AMOUNT_PRIORITY] = c->resource_priority,
	};

	return names[kind] == NULL ? "" : names[kind];
}

/* The member of a resource list. Unlike elsewhere null is a value: the API server reads it as 0. */
static const struct cJSON *find(const struct cJSON *resources, const char *list, const char *name)
{
	const struct cJSON *of = review_member(resources, list);

	return cJSON_IsObject(of) && *name != '\0' ? cJSON_GetObjectItemCaseSensitive(of, name) : NULL;
}

bool amounts_read(const struct cJSON *container, const struct device_config *c, struct amounts *out,
		  struct answer *answer)
{
	const struct cJSON *resources = review_member(container, "resources");
	struct quantity request;
	struct hm_err e;

	*out = (struct amounts) { 0 };
	for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++) {
		struct amount *a = &out->of[k];
		const struct cJSON *limit = find(resources, "limits", amount_name(c, k));
		const struct cJSON *asked = find(resources, "requests", amount_name(c, k));

		a->in_limits = limit != NULL;
		a->in_requests = asked != NULL;
		a->text = limit != NULL ? limit : asked;
		if ((asked != NULL && quantity_read(asked, &request, &e) < 0) ||
		    (limit != NULL && quantity_read(limit, &a->quantity, &e) < 0))
			return answer_fail(answer, 400, "%s", e.msg);
		if (limit == NULL && asked != NULL)
			a->quantity = request;
	}
	return true;
}

static bool refuse(const struct amount *a, const char *resource, const char *container, const char *range,
		   struct answer *answer)
{
	char number[32] = "";
	const char *text = cJSON_GetStringValue(a->text);

	if (cJSON_IsNumber(a->text))
		(void)snprintf(number, sizeof number, "%.15g", a->text->valuedouble);
	return answer_forbid(answer, "container %.63s: %s is %.40s: must be %s", container, resource,
			     text == NULL ? number : text, range);
}

static bool within(const struct amount *a, int64_t max)
{
	return a->quantity.kind == QUANTITY_WHOLE && a->quantity.value >= 0 && a->quantity.value <= max;
}

/* HAMi's own check, with HAMi's text and code; a part of a percent is for the ranges below. */
static bool check_percent(const struct amount *a, const struct device_config *c, const char *name,
			  struct answer *answer)
{
	if (a->quantity.kind != QUANTITY_WHOLE || (a->quantity.value >= 0 && a->quantity.value <= 100))
		return true;
	return answer_fail(answer, 500,
			   "invalid %s value %lld in container %.63s: must be an integer between 0 and 100",
			   amount_name(c, AMOUNT_PERCENT), (long long)a->quantity.value, name);
}

static bool check_memory(const struct amount *a, const struct device_config *c, const char *name,
			 int64_t largest_card_mib, struct answer *answer)
{
	const char *resource = amount_name(c, AMOUNT_MEMORY);
	int64_t factor = factor_of(c);
	char unit[48] = "MiB", range[128];

	if (factor > 1)
		(void)snprintf(unit, sizeof unit, "units of %lld MiB", (long long)factor);
	if (!within(a, INT32_MAX / factor)) {
		(void)snprintf(range, sizeof range, "a whole number of %s between 0 and %lld", unit,
			       (long long)(INT32_MAX / factor));
		return refuse(a, resource, name, range, answer);
	}
	if (largest_card_mib > 0 && a->quantity.value > largest_card_mib / factor) {
		(void)snprintf(range, sizeof range, "at most %lld %s, which the largest card of the cluster has",
			       (long long)(largest_card_mib / factor), unit);
		return refuse(a, resource, name, range, answer);
	}
	return true;
}

static bool check_cores(const struct amount *a, const struct device_config *c, const char *name,
			const struct webhook_largest *largest, struct answer *answer)
{
	char range[128];

	if (largest->card_cores == 0 || a->quantity.value <= largest->card_cores)
		return true;
	(void)snprintf(range, sizeof range, "at most %lld, which the largest card of the cluster has",
		       (long long)largest->card_cores);
	return refuse(a, amount_name(c, AMOUNT_CORES), name, range, answer);
}

bool amounts_check(const struct amounts *a, const struct device_config *c, const char *name,
		   const struct webhook_largest *largest, struct answer *answer)
{
	static const struct {
		enum amount_kind kind;
		int64_t max;
		const char *range;
	} ranges[] = {
		{ AMOUNT_COUNT, HM_MAX_CARDS, "a whole number between 0 and 16" },
		{ AMOUNT_PERCENT, 100, "an integer between 0 and 100" },
		{ AMOUNT_CORES, 100, "a whole number between 0 and 100" },
		{ AMOUNT_PRIORITY, 1, "0 (high) or 1" },
	};

	_Static_assert(HM_MAX_CARDS == 16, "the text above");
	if (!check_percent(&a->of[AMOUNT_PERCENT], c, name, answer))
		return false;
	for (size_t i = 0; i < HM_COUNT(ranges); i++)
		if (!within(&a->of[ranges[i].kind], ranges[i].max))
			return refuse(&a->of[ranges[i].kind], amount_name(c, ranges[i].kind), name, ranges[i].range,
				      answer);
	return check_cores(&a->of[AMOUNT_CORES], c, name, largest, answer) &&
	       check_memory(&a->of[AMOUNT_MEMORY], c, name, largest->card_mib, answer);
}
