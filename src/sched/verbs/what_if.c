#include "sched/verbs/what_if.h"

#include <stdlib.h>
#include <string.h>

#include "sched/extender/args.h"
#include "sched/view/pod_read.h"

static size_t bytes_of(const struct node_state *n)
{
	return n->cap * (sizeof n->cards[0] + sizeof n->used[0]) + n->profile_cap * sizeof n->profiles[0] +
	       n->place_cap * sizeof n->places[0] +
	       (n->pair_scores != NULL ? n->count * n->count * sizeof n->pair_scores[0] : 0);
}

static int read_node(const struct piece *text, const struct node_rules *rules, struct what_if *w, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	const char *name;
	int r = json_parse_within(text->p, text->n, EXTENDER_MAX_OBJECT_VALUES, &tree, e);

	if (r == -HM_ELIMIT)
		return hm_err_wrap(e, "a Node");
	name = pod_text(pod_member(tree, "metadata"), "name");
	if (name != NULL && strlen(name) > EXTENDER_MAX_NAME_BYTES)
		return hm_err_set(e, HM_ELIMIT, "a Node's name is longer than %d bytes", EXTENDER_MAX_NAME_BYTES);
	w->states[w->count] = NULL;
	w->names[w->count] = strdup(name != NULL ? name : "");
	if (w->names[w->count] == NULL)
		return hm_err_set(e, HM_ENOMEM, "the request's nodes");
	if (r == 0)
		r = node_read(tree, rules, w->texts, &w->states[w->count], e);
	w->bytes += w->states[w->count] != NULL ? bytes_of(w->states[w->count]) : 0;
	w->count++;
	if (w->bytes > WHAT_IF_MAX_BYTES)
		return hm_err_set(e, HM_ELIMIT, "the request's nodes have too many cards");
	return r == -HM_ENOMEM ? r : 0;
}

int what_if_read(const struct piece *nodes, size_t count, const struct node_rules *rules, struct what_if *out,
		 struct hm_err *e)
{
	*out = (struct what_if) { .names = calloc(count + 1, sizeof *out->names),
				  .states = calloc(count + 1, sizeof(struct node_state *)),
				  .texts = texts_new() };
	if (out->names == NULL || out->states == NULL || out->texts == NULL)
		return hm_err_set(e, HM_ENOMEM, "the request's nodes");
	for (size_t i = 0; i < count; i++)
		if (read_node(&nodes[i], rules, out, e) < 0)
			return -e->code;
	return 0;
}

void what_if_fini(struct what_if *w)
{
	for (size_t i = 0; i < w->count; i++) {
		node_state_free(w->states[i]);
		free(w->names[i]);
	}
	free(w->states);
	free(w->names);
	texts_free(w->texts);
	*w = (struct what_if) { 0 };
}
