#include "model/placement/node_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "contract/hami.h"
#include "core/check.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "core/fnv.h"
#include "core/splitmix.h"
#include "model/placement/words.h"

struct node_state *node_state_new(const char *name, struct texts *texts)
{
	hm_auto(node_state) *n = calloc(1, sizeof *n);

	if (n == NULL)
		return NULL;
	n->texts = texts;
	n->cpu_milli = -1;
	n->host_mib = -1;
	n->name = strdup(name);
	return n->name == NULL ? NULL : HM_STEAL(n);
}

/* The modes that there are stand here, so that the keeper has types: who looks at them finds no mode. */
static const char *const modes[] = { HAMI_MODE_CORE, HAMI_MODE_MIG, HAMI_MODE_MPS };

static const char *known_mode(const char *mode)
{
	for (size_t i = 0; i < HM_COUNT(modes); i++)
		if (strcmp(modes[i], mode) == 0)
			return modes[i];
	return NULL;
}

static const char *keep_mode(struct texts *t, const char *mode)
{
	const char *known = known_mode(mode);

	return known != NULL ? known : texts_keep(t, mode);
}

static void drop_texts(struct texts *t, const struct node_card *c)
{
	if (c->mode != NULL && known_mode(c->mode) == NULL)
		texts_drop(t, c->mode);
	if (c->type != NULL)
		texts_drop(t, c->type);
}

void node_state_free(struct node_state *n)
{
	if (n == NULL)
		return;
	for (size_t i = 0; i < n->count; i++)
		drop_texts(n->texts, &n->cards[i]);
	free(n->name);
	free(n->cards);
	free(n->used);
	free(n->profiles);
	free(n->places);
	free(n->slice_holders);
	free(n->pair_scores);
	free(n);
}

/* ---- its print: a sum, so that what comes and goes again leaves no trace in it */

static uint64_t mix(uint64_t print, uint64_t more)
{
	return splitmix_scramble((print ^ more) + SPLITMIX_STEP);
}

static uint64_t mix_text(uint64_t print, const char *text)
{
	return mix(print, fnv_text(FNV_BEGIN, text));
}

/* What stays of a card. */
static uint64_t card_print(const struct node_state *n, size_t card)
{
	const struct node_card *c = &n->cards[card];
	uint64_t print = mix(1, card);

	print = mix(print, (uint64_t)c->count << 32 | (uint32_t)c->memory_mib);
	print = mix(print, (uint64_t)c->cores << 32 | (uint32_t)c->numa);
	print = mix(print, (uint64_t)c->index << 1 | c->healthy);
	print = mix_text(print, c->type);
	print = mix_text(print, c->mode);
	return mix_text(print, c->uuid);
}

static uint64_t profile_print(const struct node_state *n, const struct card_profile *p)
{
	uint64_t print = mix(2, n->count);

	print = mix(print, (uint64_t)p->memory_mib << 32 | (uint32_t)p->cores);
	print = mix(print, (uint64_t)p->slices);
	print = mix_text(print, p->name);
	for (size_t i = 0; i < p->place_count; i++)
		print = mix(print, mig_place_bits(n->places[p->first_place + i]));
	return print;
}

static uint64_t pair_print(size_t a, size_t b, int32_t score)
{
	return score == 0 ? 0 : mix(mix(mix(3, a), b), (uint64_t)score);
}

/* What comes and goes. */
static uint64_t taken_print(const struct node_state *n, size_t card)
{
	const struct node_card *c = &n->cards[card];
	const struct card_use *used = &n->used[card];
	uint64_t print = mix(4, card);

	print = mix(print, (uint64_t)used->slots);
	print = mix(print, (uint64_t)used->memory_mib);
	print = mix(print, (uint64_t)used->cores);
	print = mix(print, (uint64_t)c->blocked << 1 | c->cordoned);
	return mix(print, c->busy);
}

static int check_card(const struct node_state *n, const struct node_card *card, struct hm_err *e)
{
	if (n->count >= NODE_MAX_CARDS)
		return hm_err_set(e, HM_ELIMIT, "more than %d cards", NODE_MAX_CARDS);
	if (card->count < 0 || card->memory_mib < 0 || card->cores < 0)
		return hm_err_set(e, HM_EINVAL, "card %s: a negative amount", card->uuid);
	if (node_state_find(n, card->uuid) != NODE_NO_CARD)
		return hm_err_set(e, HM_EINVAL, "card %s is there twice", card->uuid);
	return 0;
}

int node_state_add_card(struct node_state *n, const struct node_card *card, struct hm_err *e)
{
	struct node_card c = {
		.count = card->count,
		.memory_mib = card->memory_mib,
		.cores = card->cores,
		.numa = card->numa,
		.index = card->index,
		.healthy = card->healthy,
		.nvidia = strcasestr(card->type, HAMI_DEVICE_TYPE) != NULL,
		.mig = strcmp(card->mode, HAMI_MODE_MIG) == 0,
		.first_profile = (uint32_t)n->profile_count,
	};
	size_t cap = n->cap;
	int err = check_card(n, card, e);

	if (err < 0)
		return err;
	CHECK(n->slice_holders == NULL && n->pair_scores == NULL); /* they are of a size for all cards */
	hm_fmt(c.uuid, sizeof c.uuid, "%s", card->uuid);
	c.type = texts_keep(n->texts, card->type);
	c.mode = keep_mode(n->texts, card->mode);
	if (c.type == NULL || c.mode == NULL || !array_reserve(&n->used, &cap, n->count + 1, sizeof n->used[0]) ||
	    !array_reserve(&n->cards, &n->cap, n->count + 1, sizeof n->cards[0])) {
		drop_texts(n->texts, &c);
		return hm_err_set(e, HM_ENOMEM, "cards of node %s", n->name);
	}
	n->used[n->count] = (struct card_use) { 0 };
	n->cards[n->count++] = c;
	n->totals.all = card_use_sum(n->totals.all, (struct card_use) { c.count, c.memory_mib, c.cores });
	n->print += card_print(n, n->count - 1) + taken_print(n, n->count - 1);
	return 0;
}

int node_state_find(const struct node_state *n, const char *uuid)
{
	for (size_t i = 0; i < n->count; i++)
		if (strcmp(n->cards[i].uuid, uuid) == 0)
			return (int)i;
	return NODE_NO_CARD;
}

struct map *node_state_by_uuid(const struct node_state *n)
{
	hm_auto(map) *cards = map_new();

	for (size_t i = 0; cards != NULL && i < n->count; i++)
		if (map_put(cards, n->cards[i].uuid, &n->cards[i], NULL) < 0)
			return NULL;
	return HM_STEAL(cards);
}

/* ---- MIG profiles */

/* HAMi starts these from the end of the card, the others from its beginning. */
static bool from_the_end(const char *profile)
{
	return strncmp(profile, "1g.", 3) == 0 || strncmp(profile, "3g.", 3) == 0;
}

/* Puts the places behind the node's others, in the order they are tried. */
static bool add_places(struct node_state *n, struct card_profile *p, const struct mig_placement *places, size_t count)
{
	bool down = from_the_end(p->name);

	p->first_place = (uint32_t)n->place_count;
	for (size_t i = 0; i < count; i++) {
		size_t at = n->place_count;

		if (mig_place_bits(places[i]) == 0)
			continue;
		if (!HM_PUSH(n->places, n->place_count, n->place_cap, places[i]))
			return false;
		for (; at > p->first_place; at--) {
			uint32_t before = n->places[at - 1].start;

			if (down ? before >= places[i].start : before <= places[i].start)
				break;
			n->places[at] = n->places[at - 1];
		}
		n->places[at] = places[i];
	}
	p->place_count = (uint32_t)(n->place_count - p->first_place);
	return true;
}

static bool profile_is_smaller(const struct card_profile *a, const struct card_profile *b)
{
	return a->memory_mib != b->memory_mib ? a->memory_mib < b->memory_mib : a->slices < b->slices;
}

int node_state_add_profile(struct node_state *n, const struct card_profile *profile, const struct mig_placement *places,
			   size_t count, struct hm_err *e)
{
	struct card_profile p = *profile;
	struct node_card *c = &n->cards[n->count - 1];
	size_t at = n->profile_count;

	CHECK(n->count > 0);
	if (!add_places(n, &p, places, count) || !HM_PUSH(n->profiles, n->profile_count, n->profile_cap, p))
		return hm_err_set(e, HM_ENOMEM, "MIG profiles of node %s", n->name);
	for (; at > c->first_profile && profile_is_smaller(&p, &n->profiles[at - 1]); at--)
		n->profiles[at] = n->profiles[at - 1];
	n->profiles[at] = p;
	c->profile_count++;
	n->print += profile_print(n, &p);
	return 0;
}

/* ---- pair scores */

int node_state_set_pair_score(struct node_state *n, size_t a, size_t b, int32_t score, struct hm_err *e)
{
	CHECK(a < n->count && b < n->count);
	if (n->pair_scores == NULL)
		n->pair_scores = calloc(n->count * n->count, sizeof n->pair_scores[0]);
	if (n->pair_scores == NULL)
		return hm_err_set(e, HM_ENOMEM, "scores of node %s", n->name);
	n->print += pair_print(a, b, score) - pair_print(a, b, n->pair_scores[a * n->count + b]);
	n->pair_scores[a * n->count + b] = score;
	return 0;
}

int32_t node_state_pair_score(const struct node_state *n, size_t a, size_t b)
{
	return n->pair_scores == NULL ? 0 : n->pair_scores[a * n->count + b];
}

/* ---- cordon */

static void set_cordon(struct node_state *n, size_t card, bool cordoned)
{
	n->print -= taken_print(n, card);
	n->cards[card].cordoned = cordoned;
	n->print += taken_print(n, card);
}

void node_state_cordon(struct node_state *n, const char *text)
{
	struct cur list = cur_of(text != NULL ? text : "", text != NULL ? strlen(text) : 0);
	hm_auto(map) *cards = text != NULL ? node_state_by_uuid(n) : NULL;
	char uuid[HM_UUID_BYTES];
	struct piece word;

	for (size_t i = 0; i < n->count; i++)
		set_cordon(n, i, cards == NULL && words_have(text, n->cards[i].uuid));
	while (cards != NULL && words_next(&list, &word)) {
		const struct node_card *card = piece_copy(word, uuid, sizeof uuid) ? map_get(cards, uuid) : NULL;

		if (card != NULL)
			set_cordon(n, (size_t)(card - n->cards), true);
	}
}

/* ---- holders */

void node_state_take(struct node_state *n, size_t card, const struct card_use *use)
{
	n->print -= taken_print(n, card);
	n->used[card] = card_use_sum(n->used[card], *use);
	n->totals.used = card_use_sum(n->totals.used, *use);
	n->print += taken_print(n, card);
}

void node_state_give(struct node_state *n, size_t card, const struct card_use *use)
{
	struct card_use back = { -use->slots, -use->memory_mib, -use->cores };

	node_state_take(n, card, &back);
	CHECK(n->used[card].slots >= 0 && n->used[card].memory_mib >= 0 && n->used[card].cores >= 0);
}

void node_state_block(struct node_state *n, size_t card, bool take)
{
	CHECK(take || n->cards[card].blocked > 0);
	n->print -= taken_print(n, card);
	n->cards[card].blocked += take ? 1U : UINT32_MAX;
	n->print += taken_print(n, card);
}

uint64_t mig_place_bits(struct mig_placement at)
{
	if (at.size == 0 || at.start >= NODE_MIG_SLICES || at.size > NODE_MIG_SLICES - at.start)
		return 0;
	return (at.size == NODE_MIG_SLICES ? UINT64_MAX : ((uint64_t)1 << at.size) - 1) << at.start;
}

int node_state_occupy(struct node_state *n, size_t card, struct mig_placement at, struct hm_err *e)
{
	uint64_t bits = mig_place_bits(at);

	if (bits == 0)
		return 0;
	if (n->slice_holders == NULL)
		n->slice_holders = calloc(n->count, sizeof n->slice_holders[0]);
	if (n->slice_holders == NULL)
		return hm_err_set(e, HM_ENOMEM, "MIG instances of node %s", n->name);
	for (uint32_t i = at.start; i < at.start + at.size; i++)
		n->slice_holders[card][i]++;
	n->print -= taken_print(n, card);
	n->cards[card].busy |= bits;
	n->print += taken_print(n, card);
	return 0;
}

void node_state_vacate(struct node_state *n, size_t card, struct mig_placement at)
{
	if (mig_place_bits(at) == 0)
		return;
	n->print -= taken_print(n, card);
	for (uint32_t i = at.start; i < at.start + at.size; i++) {
		CHECK(n->slice_holders[card][i] > 0);
		if (--n->slice_holders[card][i] == 0)
			n->cards[card].busy &= ~((uint64_t)1 << i);
	}
	n->print += taken_print(n, card);
}
