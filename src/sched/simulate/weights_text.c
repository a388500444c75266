#include "sched/simulate/weights_text.h"

#include <string.h>

#include "core/cursor.h"
#include "core/macros.h"

enum { MOST = 1000000 };

static int32_t *part(struct fgd_weights *w, struct piece name)
{
	const struct {
		const char *name;
		int32_t *value;
	} parts[] = {
		{ "fragment", &w->fragment }, { "copies", &w->copies }, { "balance", &w->balance },
		{ "empty", &w->empty },       { "step", &w->step },     { "blind-step", &w->blind_step },
	};

	for (size_t i = 0; i < HM_COUNT(parts); i++)
		if (piece_is(name, parts[i].name))
			return parts[i].value;
	return NULL;
}

static bool read_number(struct piece text, int32_t *out)
{
	bool negative = text.n > 0 && text.p[0] == '-';
	uint64_t value;

	text.p += negative;
	text.n -= negative;
	if (!piece_u64(text, MOST, &value))
		return false;
	*out = negative ? -(int32_t)value : (int32_t)value;
	return true;
}

int weights_text_read(const char *text, struct fgd_weights *out, struct hm_err *e)
{
	struct cur c = cur_of(text, strlen(text));

	*out = (struct fgd_weights) { 0 };
	while (!cur_at_end(&c)) {
		struct piece word = cur_item(&c, ',');
		struct cur inside = cur_of(word.p, word.n);
		int32_t *value = part(out, cur_until(&inside, '='));

		if (inside.bad || value == NULL || !read_number(cur_rest(&inside), value))
			return hm_err_set(
				e, HM_EINVAL,
				"\"%.*s\" is not one of fragment, copies, balance, empty, step, blind-step with "
				"=NUMBER, -%d to %d",
				(int)HM_MIN(word.n, (size_t)60), word.p, MOST, MOST);
	}
	if (out->step < 0 || out->blind_step < 0)
		return hm_err_set(e, HM_EINVAL, "a step is below 0");
	return 0;
}
