#include "sched/webhook/amounts.h"

#include <stdio.h>

#include "contract/names.h"
#include "core/macros.h"
#include "io/json.h"

enum { NUMBER_BYTES = 32, UNIT_BYTES = 48, RANGE_BYTES = 128 };

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

static const char *unit_of(const struct device_config *c, char buf[UNIT_BYTES])
{
	if (factor_of(c) == 1)
		return "MiB";
	(void)snprintf(buf, UNIT_BYTES, "units of %lld MiB", (long long)factor_of(c));
	return buf;
}

static int64_t most_of(enum amount_kind kind, const struct device_config *c)
{
	static const int64_t most[AMOUNT_KINDS] = {
		[AMOUNT_COUNT] = HM_MAX_CARDS, [AMOUNT_PERCENT] = 100, [AMOUNT_CORES] = 100, [AMOUNT_PRIORITY] = 1
	};

	return kind == AMOUNT_MEMORY ? INT32_MAX / factor_of(c) : most[kind];
}

static const char *range_of(enum amount_kind kind, const struct device_config *c, char buf[RANGE_BYTES])
{
	static const char *const ranges[AMOUNT_KINDS] = {
		[AMOUNT_COUNT] = "a whole number between 0 and 16",
		[AMOUNT_PERCENT] = "an integer between 0 and 100",
		[AMOUNT_CORES] = "a whole number between 0 and 100",
		[AMOUNT_PRIORITY] = "0 (high) or 1",
	};
	char unit[UNIT_BYTES];

	_Static_assert(HM_MAX_CARDS == 16, "the text above");
	if (kind != AMOUNT_MEMORY)
		return ranges[kind];
	(void)snprintf(buf, RANGE_BYTES, "a whole number of %s between 0 and %lld", unit_of(c, unit),
		       (long long)most_of(kind, c));
	return buf;
}

/* Of a member of a resource list, for a message. */
static const char *text_of(const struct cJSON *value, char number[NUMBER_BYTES])
{
	const char *text = cJSON_GetStringValue(value);

	if (text != NULL)
		return *text == '\0' ? "\"\"" : text;
	if (!cJSON_IsNumber(value))
		return "no text or number";
	(void)snprintf(number, NUMBER_BYTES, "%.15g", value->valuedouble);
	return number;
}

static const char *name_of(const struct cJSON *container)
{
	const char *name = review_text(container, "name");

	return name == NULL ? "" : name;
}

/* The API server's own text, as HAMi answers it, and where it was. */
static bool read_one(const struct cJSON *value, enum amount_kind kind, const struct cJSON *container,
		     const struct device_config *c, struct quantity *out, struct answer *answer)
{
	char number[NUMBER_BYTES], range[RANGE_BYTES];
	struct hm_err e;

	if (quantity_read(value, out, &e) == 0)
		return true;
	return answer_fail(answer, 400, "%s: container %.63s: %s is %.40s: must be %s", e.msg, name_of(container),
			   amount_name(c, kind), text_of(value, number), range_of(kind, c, range));
}

bool amounts_read(const struct cJSON *container, const struct device_config *c, struct amounts *out,
		  struct answer *answer)
{
	const struct cJSON *resources = review_member(container, "resources");

	*out = (struct amounts) { 0 };
	for (enum amount_kind k = 0; k < AMOUNT_KINDS; k++) {
		struct amount *a = &out->of[k];
		const struct cJSON *limit = find(resources, "limits", amount_name(c, k));
		const struct cJSON *asked = find(resources, "requests", amount_name(c, k));

		a->in_limits = limit != NULL;
		a->in_requests = asked != NULL;
		a->text = limit != NULL ? limit : asked;
		if ((asked != NULL && !read_one(asked, k, container, c, &a->quantity, answer)) ||
		    (limit != NULL && !read_one(limit, k, container, c, &a->quantity, answer)))
			return false;
	}
	return true;
}

static bool refuse(const struct amount *a, const char *resource, const char *container, const char *range,
		   struct answer *answer)
{
	char number[NUMBER_BYTES];

	return answer_forbid(answer, "container %.63s: %s is %.40s: must be %s", container, resource,
			     text_of(a->text, number), range);
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
	int64_t most = largest_card_mib / factor_of(c);
	char unit[UNIT_BYTES], range[RANGE_BYTES];

	if (largest_card_mib <= 0 || a->quantity.value <= most)
		return true;
	(void)snprintf(range, sizeof range, "at most %lld %s, which the largest card of the cluster has",
		       (long long)most, unit_of(c, unit));
	return refuse(a, amount_name(c, AMOUNT_MEMORY), name, range, answer);
}

static bool check_cores(const struct amount *a, const struct device_config *c, const char *name,
			const struct webhook_largest *largest, struct answer *answer)
{
	char range[RANGE_BYTES];

	if (largest->card_cores == 0 || a->quantity.value <= largest->card_cores)
		return true;
	(void)snprintf(range, sizeof range, "at most %lld, which the largest card of the cluster has",
		       (long long)largest->card_cores);
	return refuse(a, amount_name(c, AMOUNT_CORES), name, range, answer);
}

bool amounts_check(const struct amounts *a, const struct device_config *c, const char *name,
		   const struct webhook_largest *largest, struct answer *answer)
{
	static const enum amount_kind order[] = { AMOUNT_COUNT, AMOUNT_PERCENT, AMOUNT_CORES, AMOUNT_PRIORITY,
						  AMOUNT_MEMORY };
	char range[RANGE_BYTES];

	if (!check_percent(&a->of[AMOUNT_PERCENT], c, name, answer))
		return false;
	for (size_t i = 0; i < HM_COUNT(order); i++)
		if (!within(&a->of[order[i]], most_of(order[i], c)))
			return refuse(&a->of[order[i]], amount_name(c, order[i]), name, range_of(order[i], c, range),
				      answer);
	return check_cores(&a->of[AMOUNT_CORES], c, name, largest, answer) &&
	       check_memory(&a->of[AMOUNT_MEMORY], c, name, largest->card_mib, answer);
}
