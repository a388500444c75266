#include "model/placement/card_score.h"

#include <string.h>

#include "base/str.h"
#include "contract/hami.h"
#include "core/cursor.h"
#include "core/macros.h"
#include "model/placement/words.h"

enum { WEIGHTS = 3, SHOWN_BYTES = 64 };

static int read_number(struct piece text, struct piece key, uint32_t *out, struct hm_err *e)
{
	bool minus = text.n > 0 && text.p[0] == '-', plus = text.n > 0 && text.p[0] == '+';
	struct piece digits = { text.p + (minus || plus), text.n - (minus || plus) };
	int shown = (int)HM_MIN(key.n, (size_t)SHOWN_BYTES);
	uint64_t v;

	if (!piece_u64(digits, INT32_MAX, &v))
		return hm_err_set(e, HM_EINVAL, "\"%.*s\" weight must be an integer", shown, key.p);
	if (minus && v > 0)
		return hm_err_set(e, HM_EINVAL, "\"%.*s\" weight must not be negative", shown, key.p);
	*out = (uint32_t)v;
	return 0;
}

/* One "key=number"; seen[] says which came before. */
static int read_entry(struct piece entry, uint32_t values[WEIGHTS], bool seen[WEIGHTS], struct hm_err *e)
{
	static const char *const names[WEIGHTS] = { "slot", "core", "memory" };
	const char *equals = memchr(entry.p, '=', entry.n);
	struct piece key, value;
	size_t which = 0;
	uint32_t v = 0;

	if (equals == NULL)
		return hm_err_set(e, HM_EINVAL, "expected key=value entries");
	key = piece_trim((struct piece) { entry.p, (size_t)(equals - entry.p) });
	value = piece_trim((struct piece) { equals + 1, (size_t)(entry.p + entry.n - equals - 1) });
	while (which < WEIGHTS && !piece_is(key, names[which]))
		which++;
	if (which < WEIGHTS && seen[which])
		return hm_err_set(e, HM_EINVAL, "duplicate \"%s\" weight", names[which]);
	if (read_number(value, key, &v, e) < 0)
		return -e->code;
	if (which == WEIGHTS)
		return hm_err_set(e, HM_EINVAL, "unknown weight \"%.*s\"", (int)HM_MIN(key.n, (size_t)SHOWN_BYTES),
				  key.p);
	seen[which] = true;
	values[which] = v;
	return 0;
}

static int read_weights(const char *text, struct card_weights *out, struct hm_err *e)
{
	struct cur list = cur_of(text, strlen(text)), counted = list;
	struct piece entry;
	uint32_t values[WEIGHTS] = { 0 };
	bool seen[WEIGHTS] = { false };
	size_t count = 0;

	while (words_next(&counted, &entry))
		count++;
	if (count != WEIGHTS)
		return hm_err_set(e, HM_EINVAL, "expected slot, core, and memory weights");
	while (words_next(&list, &entry))
		if (read_entry(entry, values, seen, e) < 0)
			return -e->code;
	if (values[0] == 0 && values[1] == 0 && values[2] == 0)
		return hm_err_set(e, HM_EINVAL, "at least one weight must be positive");
	*out = (struct card_weights) { values[0], values[1], values[2] };
	return 0;
}

int card_weights_read(const char *text, struct card_weights *out, struct hm_err *e)
{
	hm_auto_str shown = { 0 };
	struct hm_err why;

	*out = (struct card_weights) { 1, 1, 1 };
	if (text == NULL || read_weights(text, out, &why) == 0)
		return 0;
	str_add_escaped(&shown, text, HM_MIN(strlen(text), (size_t)256));
	return hm_err_set(e, HM_EINVAL, "invalid " HAMI_WISH_WEIGHTS " annotation \"%s\": %s", str_text(&shown),
			  why.msg);
}

/* In single precision and in this order, as HAMi reckons: equal cards stay equal, and unequal ones unequal alike. */
float card_fullness(const struct node_card *card, const struct card_use *used, const struct card_ask *ask,
		    const struct card_weights *w)
{
	float slots, cores, memory;

	if (card->count == 0 || card->cores == 0 || card->memory_mib == 0)
		return 0;
	slots = (float)(used->slots + 1) / (float)card->count;
	cores = (float)(used->cores + ask->cores) / (float)card->cores;
	memory = (float)(used->memory_mib + ask->memory_mib) / (float)card->memory_mib + (float)ask->percent / 100;
	return 10 * ((float)w->slot * slots + (float)w->core * cores + (float)w->memory * memory);
}
