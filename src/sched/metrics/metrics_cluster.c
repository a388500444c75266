#include <string.h>

#include "base/map.h"
#include "core/fmt.h"
#include "model/placement/node_book.h"
#include "sched/metrics/metrics_page.h"

/* HAMi's label of everything but the build. */
static const char zone[] = "vGPU";

enum { MIB = 1 << 20, MAX_LABELS = 11 };

struct labels {
	struct prom_label all[MAX_LABELS];
	size_t count;
};

static void add_label(struct labels *l, const char *name, const char *value)
{
	l->all[l->count++] = (struct prom_label) { name, value };
	l->all[l->count] = (struct prom_label) { NULL, NULL };
}

enum kind { CARDS, INSTANCES, QUOTAS, SHARES };
enum { WITH_CORES = 1, WITH_MEMORY = 2, NO_TYPE = 4 };
enum card_value { MEMORY, CORES, MEMORY_USED, SHARED, CORES_USED, MEMORY_SHARE };

static const struct cluster_family {
	enum metric metric;
	bool old;
	enum kind kind;
	unsigned labels;
	enum card_value value;
} cluster_families[] = {
	{ METRIC_CARD_MEMORY, false, CARDS, 0, MEMORY },
	{ METRIC_CARD_CORES, false, CARDS, 0, CORES },
	{ METRIC_CARD_MEMORY_USED, false, CARDS, WITH_CORES, MEMORY_USED },
	{ METRIC_CARD_SHARED, false, CARDS, 0, SHARED },
	{ METRIC_CARD_CORES_USED, false, CARDS, 0, CORES_USED },
	{ METRIC_CARD_OVERVIEW, false, CARDS, WITH_CORES | WITH_MEMORY, MEMORY_USED },
	{ METRIC_CARD_MEMORY_SHARE, false, CARDS, 0, MEMORY_SHARE },
	{ METRIC_MIG_INSTANCE, false, INSTANCES, 0, MEMORY },
	{ METRIC_OLD_CARD_MEMORY, true, CARDS, 0, MEMORY },
	{ METRIC_OLD_CARD_CORES, true, CARDS, 0, CORES },
	{ METRIC_OLD_CARD_MEMORY_USED, true, CARDS, WITH_CORES, MEMORY_USED },
	{ METRIC_OLD_CARD_SHARED, true, CARDS, 0, SHARED },
	{ METRIC_OLD_CARD_CORES_USED, true, CARDS, 0, CORES_USED },
	{ METRIC_OLD_CARD_OVERVIEW, true, CARDS, WITH_CORES | WITH_MEMORY, MEMORY_USED },
	{ METRIC_OLD_CARD_MEMORY_SHARE, true, CARDS, NO_TYPE, MEMORY_SHARE },
	{ METRIC_OLD_MIG_INSTANCE, true, INSTANCES, 0, MEMORY },
	{ METRIC_QUOTA_USED, false, QUOTAS, 0, MEMORY_USED },
	{ METRIC_QUOTA_LIMIT, false, QUOTAS, 0, MEMORY },
	{ METRIC_OLD_QUOTA_USED, true, QUOTAS, 0, MEMORY_USED },
	{ METRIC_SHARE_MEMORY, false, SHARES, 0, MEMORY },
	{ METRIC_SHARE_CORES, false, SHARES, 0, CORES },
	{ METRIC_OLD_SHARE_MEMORY, true, SHARES, 0, MEMORY },
	{ METRIC_OLD_SHARE_CORES, true, SHARES, 0, CORES },
};

/* ---- cards */

static uint64_t positive(int64_t v)
{
	return v > 0 ? (uint64_t)v : 0;
}

static uint64_t card_value(const struct node_card *card, const struct card_use *used, enum card_value v)
{
	switch (v) {
	case MEMORY: return positive(card->memory_mib) * MIB;
	case CORES: return positive(card->cores);
	case MEMORY_USED: return positive(used->memory_mib) * MIB;
	case SHARED: return positive(used->slots);
	case CORES_USED: return positive(used->cores);
	case MEMORY_SHARE: return positive(used->memory_mib) * 1000000 / positive(card->memory_mib);
	}
	return 0;
}

static void add_card(struct str *out, const struct prom_family *family, const struct cluster_family *f,
		     const struct node_state *n, size_t at)
{
	static const char *const names[2][6] = {
		{ "node", "device_uuid", "device_index", "device_type", "device_cores", "device_memory_limit" },
		{ "nodeid", "deviceuuid", "deviceidx", "devicetype", "devicecores", "devicememorylimit" },
	};
	const char *const *name = names[f->old];
	const struct node_card *card = &n->cards[at];
	char index[16], cores[16], memory[16];
	struct labels l = { .count = 0 };

	if (f->value == MEMORY_SHARE && card->memory_mib <= 0)
		return;
	hm_fmt(index, sizeof index, "%u", card->index);
	hm_fmt(cores, sizeof cores, "%d", card->cores);
	hm_fmt(memory, sizeof memory, "%d", card->memory_mib);
	add_label(&l, "zone", zone);
	add_label(&l, name[0], n->name);
	add_label(&l, name[1], card->uuid);
	add_label(&l, name[2], index);
	if ((f->labels & NO_TYPE) == 0)
		add_label(&l, name[3], card->type);
	if (f->labels & WITH_CORES)
		add_label(&l, name[4], cores);
	if (f->labels & WITH_MEMORY)
		add_label(&l, name[5], memory);
	if (f->value == MEMORY_SHARE)
		prom_add_micros(out, family, l.all, card_value(card, &n->used[at], f->value));
	else
		prom_add(out, family, l.all, card_value(card, &n->used[at], f->value));
}

/* ---- quotas */

struct quota_line {
	const char *resource;
	int64_t held, limit; /* in the quota's own unit */
};

static void add_quota(struct str *out, const struct cluster_family *family, const char *name_space,
		      const struct quota_line *q)
{
	const bool limited = q->limit != QUOTA_NO_LIMIT, of_limits = family->value == MEMORY;
	struct labels l = { .count = 0 };
	char limit[24];

	if (q->resource[0] == '\0' || (!limited && (of_limits || q->held == 0)))
		return;
	hm_fmt(limit, sizeof limit, "%lld", limited ? (long long)q->limit : 0);
	add_label(&l, "zone", zone);
	add_label(&l, family->old ? "quotanamespace" : "namespace", name_space);
	add_label(&l, family->old ? "quotaName" : "quota_name", q->resource);
	if (!of_limits)
		add_label(&l, "limit", limit);
	prom_add(out, metrics_family(family->metric), l.all, positive(of_limits ? q->limit : q->held));
}

static void add_quotas(const struct metrics_sources *s, const struct cluster_family *family, struct str *out)
{
	const int64_t factor = (int64_t)HM_MAX(s->device->memory_factor, (uint64_t)1);
	struct quota_view v;

	for (size_t at = 0; quotas_next(cluster_quotas(s->cluster), &at, &v);) {
		const struct quota_line lines[] = {
			{ s->device->resource_memory, v.held.memory_mib / factor, v.limits.memory },
			{ s->device->resource_cores, v.held.cores, v.limits.cores },
		};

		for (size_t k = 0; k < HM_COUNT(lines); k++)
			add_quota(out, family, v.name_space, &lines[k]);
	}
}

/* ---- containers */

/* What the container has of that card in all; false where an earlier share told it: MIG instances of a card are shares
 * of their own, and a series may be there but once. */
static bool sum_share(const struct holding *h, uint32_t at, struct hold_share *sum)
{
	*sum = cluster_holding_share(h, at);
	for (uint32_t i = 0; i < h->share_count; i++) {
		struct hold_share other = cluster_holding_share(h, i);

		if (i == at || other.container != sum->container || strcmp(other.uuid, sum->uuid) != 0)
			continue;
		if (i < at)
			return false;
		sum->memory_mib += other.memory_mib;
		sum->cores += other.cores;
	}
	return true;
}

static void add_shares(struct str *out, const struct cluster_family *f, const struct holding *h)
{
	static const char *const names[2][5] = {
		{ "namespace", "node", "pod", "container_index", "device_uuid" },
		{ "podnamespace", "nodename", "podname", "containeridx", "deviceuuid" },
	};
	const char *const *name = names[f->old];

	for (uint32_t i = 0; i < h->share_count; i++) {
		struct labels l = { .count = 0 };
		struct hold_share share;
		char index[16];

		if (!sum_share(h, i, &share))
			continue;
		hm_fmt(index, sizeof index, "%u", share.container);
		add_label(&l, "zone", zone);
		add_label(&l, name[0], cluster_holding_space(h));
		add_label(&l, name[1], cluster_holding_node(h));
		add_label(&l, name[2], h->name);
		add_label(&l, name[3], index);
		add_label(&l, name[4], share.uuid);
		prom_add(out, metrics_family(f->metric), l.all,
			 f->value == MEMORY ? positive(share.memory_mib) * MIB : positive(share.cores));
	}
}

/* A pod that is made anew under its name is told once, while the former one ends on the same node. */
static bool is_first(struct map *seen, const struct holding *h)
{
	hm_auto_str key = { 0 };
	void *before = NULL;

	str_addf(&key, "%s/%s", cluster_holding_space(h), h->name);
	return !str_failed(&key) && map_put(seen, str_text(&key), seen, &before) == 0 && before == NULL;
}

static void add_containers(struct str *out, const struct cluster_family *f, const struct node_book *b)
{
	hm_auto(map) *seen = b->holding_count > 1 ? map_new() : NULL;

	LIST_FOR_EACH (&b->holdings, it) {
		const struct holding *h = HM_CONTAINER(it, struct holding, of_node);

		if (b->holding_count == 1 || (seen != NULL && is_first(seen, h)))
			add_shares(out, f, h);
	}
}

/* ---- MIG instances */

/* One on a card that the node has: once, whoever else says that he has it, too. */
static void add_instance(struct str *out, bool old, const struct node_card *card, const struct node_book *b,
			 const struct hold_share *s, struct map *seen)
{
	char index[16], gpu[16], compute[16], start[16], size[16], name[64];
	const char *const key = old ? name : s->made.uuid;
	struct labels l = { .count = 0 };
	hm_auto_str once = { 0 };
	void *before = NULL;

	hm_fmt(name, sizeof name, "%s-%u", s->profile, s->made.gpu_instance);
	str_addf(&once, "%s %s", card->uuid, key);
	if (str_failed(&once) || map_put(seen, str_text(&once), seen, &before) < 0 || before != NULL)
		return;
	hm_fmt(index, sizeof index, "%u", card->index);
	hm_fmt(gpu, sizeof gpu, "%u", s->made.gpu_instance);
	hm_fmt(compute, sizeof compute, "%u", s->made.compute_instance);
	hm_fmt(start, sizeof start, "%u", s->at.start);
	hm_fmt(size, sizeof size, "%u", s->at.size);
	add_label(&l, "zone", zone);
	add_label(&l, old ? "nodeid" : "node", b->name);
	add_label(&l, old ? "deviceuuid" : "device_uuid", card->uuid);
	add_label(&l, old ? "deviceidx" : "device_index", index);
	add_label(&l, old ? "migname" : "mig_uuid", key);
	if (!old) {
		add_label(&l, "profile", s->profile);
		add_label(&l, "gpu_instance_id", gpu);
		add_label(&l, "compute_instance_id", compute);
		add_label(&l, "placement_start", start);
		add_label(&l, "placement_size", size);
	}
	prom_add(out, metrics_family(old ? METRIC_OLD_MIG_INSTANCE : METRIC_MIG_INSTANCE), l.all, 1);
}

static void add_instances(struct str *out, const struct cluster_family *f, const struct node_book *b)
{
	hm_auto(map) *seen = NULL;

	LIST_FOR_EACH (&b->holdings, it) {
		const struct holding *h = HM_CONTAINER(it, struct holding, of_node);

		for (uint32_t i = 0; i < h->share_count; i++) {
			const struct hold_share s = cluster_holding_share(h, i);
			const int card = b->cards[h->shares[i].card].card;

			if (s.made.uuid[0] == '\0' || b->state == NULL || card == NODE_NO_CARD)
				continue;
			if (seen == NULL)
				seen = map_new();
			if (seen != NULL)
				add_instance(out, f->old, &b->state->cards[card], b, &s, seen);
		}
	}
}

/* ---- the walk */

void cluster_walk_init(struct cluster_walk *w, const struct metrics_sources *s)
{
	const struct node_book *b;

	*w = (struct cluster_walk) { .sources = s };
	for (size_t at = 0; cluster_next_book(s->cluster, &at, &b);)
		str_add_n(&w->nodes, b->name, strlen(b->name) + 1);
}

void cluster_walk_fini(struct cluster_walk *w)
{
	str_fini(&w->nodes);
}

static void add_node(const struct cluster_walk *w, const struct cluster_family *f, const char *name, struct str *out)
{
	const struct node_book *b = cluster_book(w->sources->cluster, name);

	if (b != NULL && f->kind == SHARES)
		add_containers(out, f, b);
	else if (b != NULL && f->kind == INSTANCES)
		add_instances(out, f, b);
	else if (b != NULL && b->state != NULL)
		for (size_t card = 0; card < b->state->count; card++)
			add_card(out, metrics_family(f->metric), f, b->state, card);
}

bool cluster_walk_add(struct cluster_walk *w, struct str *out)
{
	const struct cluster_family *f = &cluster_families[w->family];

	out->failed |= str_failed(&w->nodes);
	while (w->family < HM_COUNT(cluster_families) && f->old && !w->sources->old_names)
		f = &cluster_families[++w->family];
	if (w->family >= HM_COUNT(cluster_families))
		return false;
	if (w->at == 0)
		metrics_begin(out, f->metric);
	if (f->kind == QUOTAS) {
		add_quotas(w->sources, f, out);
		w->at = w->nodes.n;
	} else if (w->at < w->nodes.n) {
		const char *name = w->nodes.p + w->at;

		add_node(w, f, name, out);
		w->at += strlen(name) + 1;
	}
	if (w->at >= w->nodes.n) {
		w->at = 0;
		w->family++;
	}
	return true;
}
