#include "sched/verbs/what_if.h"

#include <stdlib.h>
#include <string.h>

#include "sched/view/pod_read.h"

static int read_node(const struct piece *text, const struct node_rules *rules, struct what_if *w, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	const char *name;
	int r = json_parse(text->p, text->n, &tree, e);

	name = pod_text(pod_member(tree, "metadata"), "name");
	w->states[w->count] = NULL;
	w->names[w->count] = strdup(name != NULL ? name : "");
	if (w->names[w->count] == NULL)
		return hm_err_set(e, HM_ENOMEM, "the request's nodes");
	if (r == 0)
		r = node_read(tree, rules, w->texts, &w->states[w->count], e);
	w->count++;
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
