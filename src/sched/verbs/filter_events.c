#include "sched/verbs/filter_events.h"

static void add_count(struct str *out, size_t nodes, const char *reason, const char **between)
{
	if (nodes == 0)
		return;
	str_addf(out, "%s%zu %s", *between, nodes, reason);
	*between = ", ";
}

void filter_describe(const struct filter_outcome *o, struct str *out)
{
	size_t unregistered = 0, few = 0, nodes[REASON_COUNT] = { 0 };
	const char *between = ": ";

	if (o->error != NULL) {
		str_add(out, o->error);
		return;
	}
	for (size_t i = 0; i < o->refused_count; i++) {
		const struct refused_node *n = &o->refused[i];

		unregistered += n->unregistered;
		few += n->why.too_few_cards;
		for (size_t r = 0; r < REASON_COUNT && !n->unregistered; r++)
			nodes[r] += n->why.counts[r] > 0;
	}
	str_addf(out, "no available node, %zu nodes do not meet", o->candidates);
	for (size_t r = 0; r < REASON_COUNT; r++)
		add_count(out, nodes[r], card_reason_word((enum card_reason)r), &between);
	add_count(out, few, REASON_TOO_FEW_CARDS, &between);
	add_count(out, unregistered, REASON_UNREGISTERED, &between);
}

void filter_tell(struct kube_events *events, const struct filter_outcome *o)
{
	const struct kube_event_object pod = { "v1", "Pod", o->ask->name_space, o->ask->name, o->ask->uid };
	hm_auto_str text = { 0 };

	if (o->node != NULL || o->ask->uid == NULL || o->ask->uid[0] == '\0' || o->ask->name[0] == '\0')
		return;
	filter_describe(o, &text);
	if (!str_failed(&text))
		kube_events_tell(events, &pod, "Warning", "FilteringFailed", str_text(&text));
}
