#include "model/placement/pod_ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "contract/hami.h"
#include "core/fnv.h"
#include "core/macros.h"

/* Out of range is an error here; HAMi takes such a request for none at all and lets the pod run without a card. */
static int amount(const struct ask_amount *a, const char *what, int64_t max, int64_t absent, int64_t *out,
		  struct hm_err *e)
{
	*out = absent;
	if (!a->set)
		return 0;
	if (a->value < 0 || a->value > max)
		return hm_err_set(e, HM_EINVAL, "%s: %lld is not between 0 and %lld", what, (long long)a->value,
				  (long long)max);
	*out = a->value;
	return 0;
}

static uint32_t percentage(int64_t v)
{
	return v < 0 ? 0 : v > 100 ? 100 : (uint32_t)v;
}

int card_ask_make(enum ask_kind kind, const struct ask_amounts *a, const struct ask_rules *rules, struct card_ask *out,
		  struct hm_err *e)
{
	int64_t factor = HM_MAX(rules->memory_factor, 1);
	int64_t count = 0, memory = 0, cores = 0;
	uint32_t percent;
	int err;

	*out = (struct card_ask) { .kind = kind };
	err = amount(&a->count, HAMI_RESOURCE_GPU, INT32_MAX, 0, &count, e);
	if (err == 0)
		err = amount(&a->memory, HAMI_RESOURCE_MEMORY, INT32_MAX / factor, 0, &memory, e);
	if (err == 0)
		err = amount(&a->cores, HAMI_RESOURCE_CORES, INT32_MAX, rules->default_cores, &cores, e);
	if (err < 0 || count == 0)
		return err;
	percent = a->percent.set ? percentage(a->percent.value) : 0;
	memory *= factor;
	if (memory == 0 && percent == 0) {
		memory = HM_MAX(rules->default_memory_mib, 0);
		percent = 100;
	}
	*out = (struct card_ask) {
		.kind = kind,
		.count = (uint32_t)count,
		.memory_mib = (int32_t)memory,
		.percent = memory > 0 ? 0 : percent,
		.cores = percentage(cores),
	};
	return 0;
}

int32_t card_ask_memory(const struct card_ask *a, int32_t card_mib)
{
	return a->memory_mib > 0 ? a->memory_mib : (int32_t)((int64_t)card_mib * a->percent / 100);
}

void pod_ask_fini(struct pod_ask *p)
{
	free(p->containers);
	*p = (struct pod_ask) { 0 };
}

int pod_ask_add(struct pod_ask *p, const struct card_ask *container, struct hm_err *e)
{
	if (!HM_PUSH(p->containers, p->count, p->cap, *container))
		return hm_err_set(e, HM_ENOMEM, "a pod's containers");
	return 0;
}

static uint64_t add_number(uint64_t sum, int64_t number)
{
	return fnv_add(sum, &number, sizeof number);
}

static uint64_t add_wishes(uint64_t sum, const struct pod_wishes *w)
{
	const char *const texts[] = { w->node_policy, w->card_policy, w->weights,   w->use_types, w->no_types,
				      w->use_uuids,   w->no_uuids,    w->numa_bind, w->mode };

	for (size_t i = 0; i < HM_COUNT(texts); i++)
		sum = fnv_text(sum, texts[i]);
	return sum;
}

uint64_t pod_ask_print(const struct pod_ask *p)
{
	uint64_t sum = add_wishes(FNV_BEGIN, &p->wishes);

	for (size_t i = 0; i < p->count; i++) {
		const struct card_ask *a = &p->containers[i];
		const int64_t numbers[] = { a->kind, a->count, a->memory_mib, a->percent, a->cores };

		for (size_t k = 0; k < HM_COUNT(numbers); k++)
			sum = add_number(sum, numbers[k]);
	}
	return add_number(add_number(sum, p->cpu_milli), p->host_mib);
}

bool pod_ask_any(const struct pod_ask *p)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->containers[i].count > 0)
			return true;
	return false;
}
