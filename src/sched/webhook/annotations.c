#include "sched/webhook/annotations.h"

#include <string.h>

#include "contract/hami.h"
#include "core/macros.h"
#include "io/json.h"
#include "model/placement/card_score.h"
#include "model/placement/fit_wishes.h"
#include "model/placement/words.h"

enum {
	KEY_BYTES = 64,
	NEAR = 2, /* that many letters off is a slip */
	/* At a pod's keys and the parts of its lists: the API server bounds them only after admission. */
	MAX_LOOKS = 64,
};

static const char *const guarded[] = {
	HAMI_POD_NODE,       HAMI_POD_TIME,      HAMI_POD_TO_ALLOCATE, HAMI_POD_ALLOCATED, HAMI_POD_MIG_ALLOCATIONS,
	HAMI_POD_BIND_PHASE, HAMI_POD_BIND_TIME, HAMI_POD_SIGNATURE,
};

static const char *const wishes[] = {
	HAMI_WISH_NODE_POLICY, HAMI_WISH_CARD_POLICY, HAMI_WISH_WEIGHTS, HAMI_WISH_USE_TYPE, HAMI_WISH_NO_TYPE,
	HAMI_WISH_USE_UUID,    HAMI_WISH_NO_UUID,     HAMI_WISH_NUMA,    HAMI_WISH_MODE,
};

static bool is_in(const char *key, const char *const list[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(key, list[i]) == 0)
			return true;
	return false;
}

static const struct cJSON *annotations_of(const struct cJSON *object)
{
	return review_member(review_member(object, "metadata"), "annotations");
}

/* What is no text is the same as nothing else: the API server takes texts alone, and trees are not worth comparing. */
static bool same_text(const struct cJSON *a, const struct cJSON *b)
{
	const char *x = cJSON_GetStringValue(a), *y = cJSON_GetStringValue(b);

	return x != NULL && y != NULL && strcmp(x, y) == 0;
}

bool annotations_guard(const struct webhook_rules *rules, const struct review *r, struct answer *answer)
{
	const struct cJSON *now = annotations_of(r->object);
	const struct cJSON *before = strcmp(r->operation, "UPDATE") == 0 ? annotations_of(r->old_object) : NULL;

	if (is_in(r->user, rules->writers, rules->writer_count))
		return true;
	for (size_t i = 0; i < HM_COUNT(guarded); i++) {
		const struct cJSON *a = review_member(now, guarded[i]), *b = review_member(before, guarded[i]);

		if ((a == NULL && b == NULL) || same_text(a, b))
			continue;
		return answer_forbid(answer,
				     "annotation %s may be written by the scheduler and the node agents only, not by "
				     "%.128s: %s",
				     guarded[i], r->user, b == NULL ? "leave it out" : "leave it as it is");
	}
	return true;
}

/* How many letters must be put in, taken out or replaced to make one of the other; more than NEAR counts as NEAR + 1.
 */
static unsigned distance(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	unsigned row[KEY_BYTES + 1];

	if (n > KEY_BYTES || m > KEY_BYTES)
		return NEAR + 1;
	for (size_t k = 0; k <= m; k++)
		row[k] = (unsigned)k;
	for (size_t i = 1; i <= n; i++) {
		unsigned diagonal = row[0];

		row[0] = (unsigned)i;
		for (size_t k = 1; k <= m; k++) {
			unsigned replaced = diagonal + (a[i - 1] != b[k - 1]);

			unsigned shifted = HM_MIN(row[k], row[k - 1]) + 1;

			diagonal = row[k];
			row[k] = HM_MIN(replaced, shifted);
		}
	}
	return HM_MIN(row[m], NEAR + 1U);
}

/* Takes one look; false where none is left. */
static bool may_look(unsigned *looks)
{
	return *looks > 0 && (*looks)-- > 0;
}

static void advise_key(const char *key, unsigned *looks, struct answer *answer)
{
	bool ours = strncmp(key, "nvidia.com/", 11) == 0 || strncmp(key, "hami.io/", 8) == 0;

	if (!ours || is_in(key, guarded, HM_COUNT(guarded)) || !may_look(looks))
		return;
	for (size_t i = 0; i < HM_COUNT(wishes); i++)
		if (distance(key, wishes[i]) <= NEAR) {
			answer_warn(answer, "annotation %s is not known and has no effect: %s is", key, wishes[i]);
			return;
		}
}

static void advise_part(const struct webhook_questions *ask, const char *key, struct piece part, struct answer *answer)
{
	char text[KEY_BYTES];

	if (piece_copy(part, text, sizeof text) && !ask->type_known(ask->arg, text))
		answer_warn(answer, "annotation %s: no card of the cluster has \"%s\" in its type", key, text);
}

static void advise_types(const struct webhook_questions *ask, const char *key, const char *list, unsigned *looks,
			 struct answer *answer)
{
	struct cur c = cur_of(list, strlen(list));
	struct piece part;
	struct hm_err e;

	if (wishes_check_types(list, key, &e) < 0) {
		answer_warn(answer, "%s: the pod would be placed nowhere", e.msg);
		return;
	}
	while (words_next(&c, &part))
		if (part.n > 0) {
			if (!may_look(looks))
				return;
			advise_part(ask, key, part, answer);
		}
}

/* With weights that cannot be read the pod would be placed nowhere. */
static void advise_weights(const char *text, struct answer *answer)
{
	struct card_weights weights;
	struct hm_err e;

	if (card_weights_read(text, &weights, &e) < 0)
		answer_warn(answer, "%s", e.msg);
}

static bool is_type_list(const char *key)
{
	return strcmp(key, HAMI_WISH_USE_TYPE) == 0 || strcmp(key, HAMI_WISH_NO_TYPE) == 0;
}

void annotations_advise(const struct webhook_rules *rules, const struct cJSON *annotations, bool gpu,
			struct answer *answer)
{
	const struct cJSON *item;
	unsigned looks = MAX_LOOKS;

	if (!cJSON_IsObject(annotations))
		return;
	cJSON_ArrayForEach(item, annotations)
	{
		const char *text = cJSON_GetStringValue(item);

		if (!is_in(item->string, wishes, HM_COUNT(wishes)))
			advise_key(item->string, &looks, answer);
		else if (!gpu)
			answer_warn(answer, "annotation %s has no effect: no container asks for %s", item->string,
				    rules->device->resource_count);
		else if (text != NULL && is_type_list(item->string) && rules->ask.type_known != NULL)
			advise_types(&rules->ask, item->string, text, &looks, answer);
		else if (text != NULL && strcmp(item->string, HAMI_WISH_WEIGHTS) == 0)
			advise_weights(text, answer);
	}
}

void annotations_advise_workload(const struct cJSON *object, const struct cJSON *template, const char *kind,
				 struct answer *answer)
{
	const struct cJSON *here = annotations_of(object), *there = annotations_of(template);

	for (size_t i = 0; i < HM_COUNT(wishes); i++)
		if (review_member(here, wishes[i]) != NULL && review_member(there, wishes[i]) == NULL)
			answer_warn(answer,
				    "annotation %s has no effect on the %s: it belongs to the pods' template, "
				    "spec.template.metadata.annotations",
				    wishes[i], kind);
}
