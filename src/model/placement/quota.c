#include "model/placement/quota.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "core/check.h"
#include "model/placement/pod_sum.h"

struct quotas {
	struct map *spaces;
	int64_t factor;
};

struct quota {
	struct quota *next;
	struct quota_limits limits;
	char name[];
};

/* Lives while it has holders or quotas. */
struct quota_space {
	struct quota *quotas;
	struct quota_limits least; /* over the quotas, in their unit */
	struct quota_amount held;
	size_t holders;
	char name[];
};

struct quotas *quotas_new(uint64_t memory_factor)
{
	struct quotas *q = calloc(1, sizeof *q);

	if (q == NULL)
		return NULL;
	q->factor = memory_factor < 1 ? 1 : (int64_t)HM_MIN(memory_factor, (uint64_t)INT32_MAX);
	q->spaces = map_new();
	if (q->spaces == NULL) {
		free(q);
		return NULL;
	}
	return q;
}

static void space_free(struct quota_space *s)
{
	for (struct quota *it = s->quotas, *next; it != NULL; it = next) {
		next = it->next;
		free(it);
	}
	free(s);
}

void quotas_free(struct quotas *q)
{
	void *s;

	if (q == NULL)
		return;
	for (size_t at = 0; map_next(q->spaces, &at, NULL, &s);)
		space_free(s);
	map_free(q->spaces);
	free(q);
}

static struct quota_space *open_space(struct quotas *q, const char *name_space)
{
	struct quota_space *s = map_get(q->spaces, name_space);
	size_t n = strlen(name_space) + 1;

	if (s != NULL)
		return s;
	s = calloc(1, sizeof *s + n);
	if (s == NULL)
		return NULL;
	memcpy(s->name, name_space, n);
	s->least = (struct quota_limits) { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT };
	if (map_put(q->spaces, name_space, s, NULL) < 0) {
		free(s);
		return NULL;
	}
	return s;
}

static void drop_if_unused(struct quotas *q, struct quota_space *s)
{
	if (s->holders > 0 || s->quotas != NULL)
		return;
	map_remove(q->spaces, s->name);
	space_free(s);
}

static void find_least(struct quota_space *s)
{
	s->least = (struct quota_limits) { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT };
	for (const struct quota *it = s->quotas; it != NULL; it = it->next) {
		s->least.memory = HM_MIN(s->least.memory, it->limits.memory);
		s->least.cores = HM_MIN(s->least.cores, it->limits.cores);
	}
}

static struct quota **find_quota(struct quota_space *s, const char *name)
{
	struct quota **at = &s->quotas;

	while (*at != NULL && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	return at;
}

int quotas_set(struct quotas *q, const char *name_space, const char *quota, struct quota_limits limits,
	       struct hm_err *e)
{
	struct quota_space *s = open_space(q, name_space);
	size_t n = strlen(quota) + 1;
	struct quota **at;

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "quota %s/%s: out of memory", name_space, quota);
	at = find_quota(s, quota);
	if (*at == NULL) {
		struct quota *fresh = calloc(1, sizeof *fresh + n);
		if (fresh == NULL) {
			drop_if_unused(q, s);
			return hm_err_set(e, HM_ENOMEM, "quota %s/%s: out of memory", name_space, quota);
		}
		memcpy(fresh->name, quota, n);
		*at = fresh;
	}
	(*at)->limits = (struct quota_limits) { HM_MAX(limits.memory, 0), HM_MAX(limits.cores, 0) };
	find_least(s);
	return 0;
}

void quotas_remove(struct quotas *q, const char *name_space, const char *quota)
{
	struct quota_space *s = map_get(q->spaces, name_space);
	struct quota **at = s != NULL ? find_quota(s, quota) : NULL;
	struct quota *gone;

	if (at == NULL || *at == NULL)
		return;
	gone = *at;
	*at = gone->next;
	free(gone);
	find_least(s);
	drop_if_unused(q, s);
}

static int64_t room(int64_t limit, int64_t factor, int64_t held)
{
	int64_t scaled;

	if (limit == QUOTA_NO_LIMIT)
		return QUOTA_NO_LIMIT;
	if (__builtin_mul_overflow(limit, factor, &scaled))
		return QUOTA_NO_LIMIT;
	return scaled - held;
}

struct quota_amount quotas_room(const struct quotas *q, const char *name_space)
{
	const struct quota_space *s = map_get(q->spaces, name_space);

	if (s == NULL)
		return (struct quota_amount) { QUOTA_NO_LIMIT, QUOTA_NO_LIMIT };
	return (struct quota_amount) {
		.memory_mib = room(s->least.memory, q->factor, s->held.memory_mib),
		.cores = room(s->least.cores, 1, s->held.cores),
	};
}

struct quota_amount quota_of_shares(const struct card_share *shares, size_t count, const enum ask_kind *kinds,
				    size_t kind_count)
{
	struct card_use all = pod_use_over_life(shares, count, kinds, kind_count, NULL);

	return (struct quota_amount) { all.memory_mib, all.cores };
}

/* So much that no sum over a pod's containers overflows. */
static int64_t times(uint32_t count, int64_t amount)
{
	return HM_MIN(count * amount, (int64_t)1 << 48);
}

struct quota_amount quota_of_asks(const struct card_ask *asks, size_t count, int32_t card_mib)
{
	struct pod_sum sum = { 0 };
	struct card_use all;

	for (size_t i = 0; i < count; i++) {
		const struct card_ask *a = &asks[i];
		pod_sum_add(&sum, a->kind == ASK_INIT,
			    (struct card_use) { a->count, times(a->count, card_ask_memory(a, card_mib)),
						times(a->count, a->cores) });
	}
	all = pod_sum_total(&sum);
	return (struct quota_amount) { all.memory_mib, all.cores };
}

struct quota_space *quotas_open(struct quotas *q, const char *name_space)
{
	struct quota_space *s = open_space(q, name_space);

	if (s != NULL)
		s->holders++;
	return s;
}

void quotas_close(struct quotas *q, struct quota_space *s)
{
	CHECK(s->holders > 0);
	s->holders--;
	CHECK(s->holders > 0 || (s->held.memory_mib == 0 && s->held.cores == 0));
	drop_if_unused(q, s);
}

void quota_space_add(struct quota_space *s, struct quota_amount held)
{
	s->held.memory_mib += held.memory_mib;
	s->held.cores += held.cores;
}

const char *quota_space_name(const struct quota_space *s)
{
	return s->name;
}

struct quota_amount quota_space_held(const struct quota_space *s)
{
	return s->held;
}

bool quotas_next(const struct quotas *q, size_t *at, struct quota_view *out)
{
	void *value;
	const struct quota_space *s;

	if (!map_next(q->spaces, at, NULL, &value))
		return false;
	s = value;
	*out = (struct quota_view) { s->name, s->held, s->least };
	return true;
}
