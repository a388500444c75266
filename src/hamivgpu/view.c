#include "hamivgpu/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "core/fmt.h"

enum { MAX_PROBLEMS = 100 };

struct view *view_new(void)
{
	struct view *v = calloc(1, sizeof *v);

	return v;
}

static void claim_free(struct view_claim *c)
{
	free(c->shares);
	free(c->members);
	free(c->shown);
}

void view_free(struct view *v)
{
	if (v == NULL)
		return;
	for (size_t i = 0; i < v->claim_count; i++)
		claim_free(&v->claims[i]);
	for (size_t i = 0; i < v->problem_count; i++)
		free(v->problems[i]);
	free(v->claims);
	free(v->problems);
	free(v->cards);
	free(v->processes);
	free(v);
}

int view_add_problem(struct view *v, const char *text, struct hm_err *e)
{
	hm_auto_str line = { 0 };
	char *taken;

	if (v->problem_count > MAX_PROBLEMS)
		return 0;
	if (v->problem_count == MAX_PROBLEMS)
		text = "and more";
	str_add_escaped(&line, text, strlen(text));
	taken = str_take(&line);
	if (taken == NULL || !HM_PUSH(v->problems, v->problem_count, v->problem_cap, taken)) {
		free(taken);
		return hm_err_set(e, HM_ENOMEM, "problems");
	}
	return 0;
}

int view_find_card(const struct view *v, const char *uuid)
{
	for (size_t i = 0; i < v->card_count; i++) {
		if (strcmp(v->cards[i].uuid, uuid) == 0)
			return (int)i;
	}
	return -1;
}

void view_error(struct hamivgpu_error *to, const struct hm_err *from)
{
	static const int codes[HM_CODE_COUNT] = {
		[HM_ENOMEM] = HAMIVGPU_NO_MEMORY, [HM_EINVAL] = HAMIVGPU_INVALID,
		[HM_EPROTO] = HAMIVGPU_BROKEN,    [HM_ENOTFOUND] = HAMIVGPU_NOT_FOUND,
		[HM_EAGAIN] = HAMIVGPU_NOT_READY, [HM_EPERM] = HAMIVGPU_NO_PERMISSION,
		[HM_ELIMIT] = HAMIVGPU_BROKEN,    [HM_EUNSUPPORTED] = HAMIVGPU_UNSUPPORTED,
	};
	int code = from->code > 0 && from->code < HM_CODE_COUNT ? codes[from->code] : 0;

	if (to == NULL)
		return;
	to->code = code == 0 ? HAMIVGPU_FAILED : code;
	hm_fmt(to->message, sizeof to->message, "%s", from->msg);
}
