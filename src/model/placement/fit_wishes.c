#include "model/placement/fit_wishes.h"

#include <string.h>

#include "contract/hami.h"
#include "model/placement/words.h"

int wishes_read(const struct pod_wishes *texts, const char *card_policy, struct wishes *out, struct hm_err *e)
{
	const char *policy = texts->card_policy != NULL ? texts->card_policy : card_policy;

	*out = (struct wishes) {
		.texts = *texts,
		.numa_bind = text_is_true(texts->numa_bind),
		.takes_mig = texts->mode == NULL || strstr(texts->mode, HAMI_MODE_MIG) != NULL,
	};
	out->order = card_order_read(policy, out->numa_bind);
	return card_weights_read(texts->weights, &out->weights, e);
}

static bool is_blank(const char *list)
{
	return list == NULL || piece_trim((struct piece) { list, strlen(list) }).n == 0;
}

static bool type_in(const char *list, const char *type)
{
	struct cur c = cur_of(list, strlen(list));
	struct piece word;

	while (words_next(&c, &word))
		if (text_has_piece(type, word))
			return true;
	return false;
}

static bool takes_kind(const struct pod_wishes *w, const char *type, const char *mode)
{
	if (!is_blank(w->use_types) && !type_in(w->use_types, type))
		return false;
	if (!is_blank(w->no_types) && type_in(w->no_types, type))
		return false;
	return w->mode == NULL || strstr(w->mode, mode) != NULL;
}

bool wishes_take_kind(struct wishes *w, const struct node_card *card)
{
	bool does;

	for (size_t i = 0; i < WISHES_KINDS_KNOWN; i++)
		if (w->known[i].type == card->type && w->known[i].mode == card->mode)
			return w->known[i].does;
	does = takes_kind(&w->texts, card->type, card->mode);
	w->known[w->next_known].type = card->type;
	w->known[w->next_known].mode = card->mode;
	w->known[w->next_known].does = does;
	w->next_known = (w->next_known + 1) % WISHES_KINDS_KNOWN;
	return does;
}

bool wishes_take_uuid(const struct wishes *w, const struct node_card *card)
{
	if (!is_blank(w->texts.use_uuids) && !words_have(w->texts.use_uuids, card->uuid))
		return false;
	return !words_have(w->texts.no_uuids, card->uuid);
}
