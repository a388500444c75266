#include "model/placement/fit_wishes.h"

#include <string.h>

#include "contract/hami.h"
#include "core/macros.h"
#include "model/placement/words.h"

void wishes_fini(struct wishes *w)
{
	map_free(w->use_uuids);
	map_free(w->no_uuids);
	*w = (struct wishes) { 0 };
}

static bool is_blank(const char *list)
{
	return list == NULL || piece_trim((struct piece) { list, strlen(list) }).n == 0;
}

/* NULL for a blank list. What is longer than any card's UUID is no card's. */
static int read_uuids(const char *list, struct map **out, struct hm_err *e)
{
	static char there;
	struct cur c;
	struct piece word;
	char uuid[HM_UUID_BYTES];

	if (is_blank(list))
		return 0;
	c = cur_of(list, strlen(list));
	*out = map_new();
	if (*out == NULL)
		return hm_err_set(e, HM_ENOMEM, "a list of cards");
	while (words_next(&c, &word))
		if (word.n > 0 && piece_copy(word, uuid, sizeof uuid) && map_put(*out, uuid, &there, NULL) < 0)
			return hm_err_set(e, HM_ENOMEM, "a list of cards");
	return 0;
}

int wishes_check_types(const char *list, const char *annotation, struct hm_err *e)
{
	struct cur c = cur_of(list != NULL ? list : "", list != NULL ? strlen(list) : 0);
	struct piece word;
	size_t words = 0;

	if (c.end - c.p > WISHES_MAX_TYPES_BYTES)
		return hm_err_set(e, HM_EINVAL, "annotation %s: is longer than %d bytes", annotation,
				  WISHES_MAX_TYPES_BYTES);
	while (words_next(&c, &word))
		words += word.n > 0;
	if (words > WISHES_MAX_TYPES)
		return hm_err_set(e, HM_EINVAL, "annotation %s: has more than %d words", annotation, WISHES_MAX_TYPES);
	return 0;
}

int wishes_read(const struct pod_wishes *texts, const char *card_policy, struct wishes *out, struct hm_err *e)
{
	const char *policy = texts->card_policy != NULL ? texts->card_policy : card_policy;
	int err;

	wishes_fini(out);
	out->texts = *texts;
	out->numa_bind = text_is_true(texts->numa_bind);
	out->takes_mig = texts->mode == NULL || strstr(texts->mode, HAMI_MODE_MIG) != NULL;
	out->order = card_order_read(policy, out->numa_bind);
	err = card_weights_read(texts->weights, &out->weights, e);
	if (err == 0)
		err = wishes_check_types(texts->use_types, HAMI_WISH_USE_TYPE, e);
	if (err == 0)
		err = wishes_check_types(texts->no_types, HAMI_WISH_NO_TYPE, e);
	if (err == 0)
		err = read_uuids(texts->use_uuids, &out->use_uuids, e);
	if (err == 0)
		err = read_uuids(texts->no_uuids, &out->no_uuids, e);
	return err;
}

static bool takes_kind(const struct pod_wishes *w, const char *type, const char *mode)
{
	if (!is_blank(w->use_types) && !words_any_in(w->use_types, type))
		return false;
	if (!is_blank(w->no_types) && words_any_in(w->no_types, type))
		return false;
	return w->mode == NULL || strstr(w->mode, mode) != NULL;
}

bool wishes_take_kind(struct wishes *w, const struct node_card *card)
{
	uint64_t hash = ((uintptr_t)card->type + 31 * (uintptr_t)card->mode) * 0x9e3779b97f4a7c15u;
	typeof(&w->known[0]) k = &w->known[(hash >> 32) % WISHES_KINDS_KNOWN];

	if (k->type != card->type || k->mode != card->mode) {
		k->type = card->type;
		k->mode = card->mode;
		k->does = takes_kind(&w->texts, card->type, card->mode);
	}
	return k->does;
}

bool wishes_take_uuid(const struct wishes *w, const struct node_card *card)
{
	if (w->use_uuids != NULL && map_get(w->use_uuids, card->uuid) == NULL)
		return false;
	return w->no_uuids == NULL || map_get(w->no_uuids, card->uuid) == NULL;
}
