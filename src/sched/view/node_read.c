#include "sched/view/node_read.h"

#include <string.h>

#include "contract/hami.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "core/fnv.h"
#include "hami/quantity.h"
#include "hami/register_text.h"
#include "hami/score_text.h"
#include "sched/view/host_read.h"
#include "sched/view/pod_read.h"

/* ---- selector */

struct term {
	struct piece key, value;
};

/* The next "k=v" (also "k==v"); false at the end. */
static bool next_term(struct cur *c, struct term *out)
{
	struct piece whole;
	const char *equal;

	if (cur_at_end(c))
		return false;
	whole = cur_item(c, ',');
	equal = memchr(whole.p, '=', whole.n);
	*out = (struct term) { whole, { NULL, 0 } };
	if (equal == NULL)
		return true;
	out->key.n = (size_t)(equal - whole.p);
	out->value.p = equal + 1;
	if (out->value.p < whole.p + whole.n && *out->value.p == '=')
		out->value.p++;
	out->value.n = (size_t)(whole.p + whole.n - out->value.p);
	return true;
}

int node_selector_check(const char *selector, struct hm_err *e)
{
	struct cur c = cur_of(selector != NULL ? selector : "", selector != NULL ? strlen(selector) : 0);
	struct term t;

	while (next_term(&c, &t))
		if (t.value.p == NULL || t.key.n == 0)
			return hm_err_set(e, HM_EINVAL, "label selector \"%.200s\": is not \"key=value,key2=value2\"",
					  selector);
	return 0;
}

static bool has_label(const struct cJSON *labels, const struct term *t)
{
	const struct cJSON *item;

	cJSON_ArrayForEach(item, labels)
	{
		const char *value = cJSON_GetStringValue(item);

		if (value != NULL && piece_is(t->key, item->string))
			return piece_is(t->value, value);
	}
	return false;
}

static bool is_selected(const struct cJSON *node, const char *selector)
{
	const struct cJSON *labels = pod_member(pod_member(node, "metadata"), "labels");
	struct cur c = cur_of(selector != NULL ? selector : "", selector != NULL ? strlen(selector) : 0);
	struct term t;

	while (next_term(&c, &t))
		if (!has_label(labels, &t))
			return false;
	return true;
}

/* ---- what counts */

static bool is_offered(const struct cJSON *node, const char *resource)
{
	const struct cJSON *value = pod_member(pod_member(pod_member(node, "status"), "allocatable"), resource);
	struct quantity q;

	return value != NULL && quantity_read(value, &q, NULL) == 0 && q.value > 0;
}

uint64_t node_read_print(const struct cJSON *node, const struct node_rules *rules)
{
	uint64_t print = FNV_BEGIN;

	if (!is_selected(node, rules->selector) || !is_offered(node, rules->count))
		return 0;
	print = fnv_text(print, pod_annotation(node, HAMI_NODE_REGISTER));
	return fnv_text(print, pod_annotation(node, HAMI_NODE_SCORE)) | 1;
}

/* ---- cards */

static int add_profiles(struct node_state *n, const struct node_register *r, const struct register_device *d,
			struct hm_err *e)
{
	struct mig_placement places[REGISTER_MAX_PLACEMENTS];

	for (size_t i = 0; i < d->profile_count; i++) {
		const struct register_profile *from = &r->profiles[d->first_profile + i];
		struct card_profile p = { .memory_mib = from->memory_mib,
					  .cores = from->cores,
					  .slices = from->slices };
		size_t count = HM_MIN(from->placement_count, (size_t)REGISTER_MAX_PLACEMENTS);

		hm_fmt(p.name, sizeof p.name, "%s", from->name);
		for (size_t k = 0; k < count; k++)
			places[k] = (struct mig_placement) { r->placements[from->first_placement + k].start,
							     r->placements[from->first_placement + k].size };
		if (node_state_add_profile(n, &p, places, count, e) < 0)
			return -e->code;
	}
	return 0;
}

static int add_cards(struct node_state *n, const struct node_register *r, struct hm_err *e)
{
	n->late_binding = r->device_count > 0;
	for (size_t i = 0; i < r->device_count; i++) {
		const struct register_device *d = &r->devices[i];
		struct node_card card = {
			.count = d->count,
			.memory_mib = d->memory_mib,
			.cores = d->cores,
			.numa = d->numa,
			.index = d->index,
			.healthy = d->healthy,
			.type = d->type,
			.mode = d->mode,
		};

		hm_fmt(card.uuid, sizeof card.uuid, "%s", d->id);
		n->late_binding &= d->late_binding;
		if (node_state_add_card(n, &card, e) < 0 || add_profiles(n, r, d, e) < 0)
			return -e->code;
	}
	return 0;
}

/* Cards that the node does not have are passed over. */
static int add_row(struct node_state *n, const struct map *cards, const struct node_score *scores,
		   const struct score_row *row, struct hm_err *e)
{
	const struct node_card *from = map_get(cards, row->uuid), *to;

	for (size_t k = 0; from != NULL && k < row->count; k++) {
		const struct score_peer *peer = &scores->peers[row->first + k];

		to = map_get(cards, peer->uuid);
		if (to != NULL && node_state_set_pair_score(n, (size_t)(from - n->cards), (size_t)(to - n->cards),
							    peer->score, e) < 0)
			return -e->code;
	}
	return 0;
}

static int add_scores(struct node_state *n, const char *text, struct hm_err *e)
{
	hm_auto_node_score scores = { 0 };
	hm_auto(map) *cards = NULL;

	if (text == NULL)
		return 0;
	if (score_text_parse(text, &scores, e) < 0)
		return hm_err_wrap(e, HAMI_NODE_SCORE);
	cards = node_state_by_uuid(n);
	if (cards == NULL)
		return hm_err_set(e, HM_ENOMEM, "scores of node %s", n->name);
	for (size_t i = 0; i < scores.row_count; i++)
		if (add_row(n, cards, &scores, &scores.rows[i], e) < 0)
			return -e->code;
	return 0;
}

int node_read(const struct cJSON *node, const struct node_rules *rules, struct texts *texts, struct node_state **out,
	      struct hm_err *e)
{
	const char *name = pod_text(pod_member(node, "metadata"), "name");
	const char *text = pod_annotation(node, HAMI_NODE_REGISTER);
	hm_auto_node_register registered = { 0 };
	hm_auto(node_state) *n = NULL;
	struct host_amount host;
	struct hm_err own;
	int err;

	*out = NULL;
	e = e != NULL ? e : &own;
	if (name == NULL)
		return hm_err_set(e, HM_EPROTO, "a node without a name");
	if (!is_selected(node, rules->selector))
		return hm_err_set(e, HM_ENOTFOUND, "is not selected by its labels");
	if (text == NULL)
		return hm_err_set(e, HM_ENOTFOUND, "has no " HAMI_NODE_REGISTER);
	if (!is_offered(node, rules->count))
		return hm_err_set(e, HM_ENOTFOUND, "the kubelet offers no %s: its device plugin is away", rules->count);
	err = register_text_parse(text, &registered, e);
	if (err < 0)
		return hm_err_wrap(e, HAMI_NODE_REGISTER);
	if (registered.device_count == 0)
		return hm_err_set(e, HM_ENOTFOUND, HAMI_NODE_REGISTER " has no device");
	n = node_state_new(name, texts);
	if (n == NULL)
		return hm_err_set(e, HM_ENOMEM, "node %s", name);
	err = add_cards(n, &registered, e);
	if (err < 0)
		return hm_err_wrap(e, HAMI_NODE_REGISTER);
	err = add_scores(n, pod_annotation(node, HAMI_NODE_SCORE), e);
	if (err < 0)
		return err;
	node_state_cordon(n, pod_annotation(node, HAMI_NODE_CORDON));
	host = host_of_node(node);
	n->cpu_milli = host.cpu_milli;
	n->host_mib = host.mib;
	*out = HM_STEAL(n);
	return 0;
}
