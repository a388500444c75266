#include "sched/simulate/snapshot_run.h"

#include "core/macros.h"
#include "model/placement/reasons.h"

/* "CardInsufficientMemory 3, nodes with too few cards 2" */
static void add_reasons(const struct place_result *r, const size_t screened[SCREEN_REASONS], struct str *out)
{
	uint64_t counts[REASON_COUNT] = { 0 }, too_few = 0;
	const char *between = "";

	for (size_t i = 0; i < r->refused_count; i++) {
		too_few += r->refused[i].why.too_few_cards;
		for (size_t k = 0; k < REASON_COUNT; k++)
			counts[k] += r->refused[i].why.counts[k];
	}
	for (size_t k = 0; k < REASON_COUNT; k++) {
		if (counts[k] == 0)
			continue;
		str_addf(out, "%s%s %llu", between, card_reason_word((enum card_reason)k),
			 (unsigned long long)counts[k]);
		between = ", ";
	}
	if (too_few > 0) {
		str_addf(out, "%snodes with too few cards %llu", between, (unsigned long long)too_few);
		between = ", ";
	}
	for (size_t k = 0; k < SCREEN_REASONS; k++) {
		if (screened[k] == 0)
			continue;
		str_addf(out, "%s%s %zu", between, screen_reason_words((enum screen_reason)k), screened[k]);
		between = ", ";
	}
}

static void add_line(const struct pod_ask *ask, const struct place_result *r, int placed,
		     const size_t screened[SCREEN_REASONS], struct str *out)
{
	str_addf(out, "%s/%s: ", ask->name_space, ask->name);
	if (placed) {
		str_addf(out, "%s", r->node->name);
		for (size_t i = 0; i < r->grant->count; i++)
			str_addf(out, " %s", r->node->cards[r->grant->shares[i].card].uuid);
	} else {
		str_add(out, "nowhere (");
		add_reasons(r, screened, out);
		str_addc(out, ')');
	}
	str_addc(out, '\n');
}

int snapshot_run(const struct snapshot *s, struct scene *scene, struct policy *p, struct snapshot_result *out,
		 struct str *lines, struct hm_err *e)
{
	int rc;

	*out = (struct snapshot_result) { .before = scene_sum(scene) };
	rc = scene_lost(scene, &p->mix, &out->lost_before, e);
	if (rc != 0)
		return rc;
	for (size_t i = 0; i < s->count; i++) {
		const struct snapshot_pod *pod = &s->gpu_pods[i];
		const struct scene_pod it = snapshot_scene_pod(pod);
		struct place_result r;

		out->bound += pod->held.holds;
		if (pod->held.holds)
			continue;
		rc = scene_place(scene, p->placer, &it, &r, e);
		if (rc < 0)
			return hm_err_wrap(e, "pod %s/%s", pod->ask.name_space, pod->ask.name);
		out->placed += rc == 1;
		out->refused += rc == 0;
		add_line(&pod->ask, &r, rc, scene->screened, lines);
	}
	out->after = scene_sum(scene);
	return scene_lost(scene, &p->mix, &out->lost_after, e);
}
