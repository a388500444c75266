#include "sched/simulate/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "contract/hami.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "core/macros.h"

enum {
	MAX_COLUMNS = 32,
	CARD_MIB = CARD_MILLI, /* the trace says no memory: a MiB is a thousandth */
	MAX_SHARING = CARD_MILLI,
	TYPE_BYTES = 128,
	MAX_AMOUNT = 1 << 30,
};

/* One line's fields, by the columns that the file's first line names. */
struct table {
	struct piece columns[MAX_COLUMNS], fields[MAX_COLUMNS];
	size_t count, line;
};

static size_t split(struct piece line, struct piece out[MAX_COLUMNS])
{
	struct cur c = cur_of(line.p, line.n);
	size_t n = 0;

	if (line.n > 0 && line.p[line.n - 1] == '\r')
		c.end--;
	while (n < MAX_COLUMNS && !c.bad) {
		struct cur rest = c;

		out[n] = cur_until(&c, ',');
		if (c.bad) {
			out[n++] = cur_rest(&rest);
			break;
		}
		n++;
	}
	return n;
}

static bool next_line(struct table *t, struct cur *text)
{
	struct piece line;

	do {
		if (cur_at_end(text))
			return false;
		line = cur_line(text);
		t->line++;
	} while (!text->bad && line.n == 0);
	if (text->bad)
		return false;
	if (t->count == 0)
		t->count = split(line, t->columns);
	else
		for (size_t i = split(line, t->fields); i < t->count; i++)
			t->fields[i] = (struct piece) { 0 };
	return true;
}

/* NULL where the file has no such column. */
static const struct piece *field(const struct table *t, const char *column)
{
	for (size_t i = 0; i < t->count; i++)
		if (piece_is(t->columns[i], column))
			return &t->fields[i];
	return NULL;
}

static int number(const struct table *t, const char *column, int64_t *out, struct hm_err *e)
{
	const struct piece *f = field(t, column);
	uint64_t value;

	if (f == NULL)
		return hm_err_set(e, HM_EPROTO, "line 1: there is no column %s", column);
	if (!piece_u64(*f, MAX_AMOUNT, &value))
		return hm_err_set(e, HM_EPROTO, "line %zu: %s: \"%.*s\" is no whole number up to %d", t->line, column,
				  (int)HM_MIN(f->n, (size_t)40), f->p, MAX_AMOUNT);
	*out = (int64_t)value;
	return 0;
}

static int text_of(const struct table *t, const char *column, char **out, struct hm_err *e)
{
	const struct piece *f = field(t, column);

	if (f == NULL)
		return hm_err_set(e, HM_EPROTO, "line 1: there is no column %s", column);
	if (f->n == 0)
		return hm_err_set(e, HM_EPROTO, "line %zu: %s is empty", t->line, column);
	*out = strndup(f->p, f->n);
	return *out == NULL ? hm_err_set(e, HM_ENOMEM, "line %zu: no memory", t->line) : 0;
}

static void forget_node(struct trace_node *n)
{
	free(n->name);
	free(n->type);
}

static void forget_pod(struct trace_pod *p)
{
	free(p->name);
	free(p->types);
	pod_ask_fini(&p->ask);
}

void trace_fini(struct trace *t)
{
	for (size_t i = 0; i < t->node_count; i++)
		forget_node(&t->nodes[i]);
	for (size_t i = 0; i < t->pod_count; i++)
		forget_pod(&t->pods[i]);
	free(t->nodes);
	free(t->pods);
	*t = (struct trace) { 0 };
}

static int read_node(const struct table *t, struct trace_node *n, struct hm_err *e)
{
	int64_t cards = 0;
	int rc = number(t, "cpu_milli", &n->cpu_milli, e);

	if (rc == 0)
		rc = number(t, "memory_mib", &n->host_mib, e);
	if (rc == 0)
		rc = number(t, "gpu", &cards, e);
	if (rc == 0 && cards > NODE_MAX_CARDS)
		rc = hm_err_set(e, HM_EPROTO, "line %zu: gpu: more than %d", t->line, NODE_MAX_CARDS);
	if (rc == 0)
		rc = text_of(t, "sn", &n->name, e);
	if (rc == 0)
		rc = text_of(t, "model", &n->type, e);
	n->cards = (uint32_t)cards;
	return rc;
}

int trace_read_nodes(struct trace *t, const char *text, size_t n, struct hm_err *e)
{
	struct cur c = cur_of(text, n);
	struct table table = { 0 };

	if (!next_line(&table, &c))
		return hm_err_set(e, HM_EPROTO, "the file is empty");
	while (next_line(&table, &c)) {
		struct trace_node node = { 0 };
		int rc = read_node(&table, &node, e);

		if (rc == 0 && !HM_PUSH(t->nodes, t->node_count, t->node_cap, node))
			rc = hm_err_set(e, HM_ENOMEM, "nodes: no memory");
		if (rc != 0) {
			forget_node(&node);
			return rc;
		}
		t->milli += (int64_t)node.cards * CARD_MILLI;
	}
	return 0;
}

/* "T4|P100" as HAMi's annotation has it: "T4,P100". */
static int read_types(const struct table *t, char **out, struct hm_err *e)
{
	const struct piece *f = field(t, "gpu_spec");

	if (f == NULL || f->n == 0)
		return 0;
	*out = strndup(f->p, f->n);
	if (*out == NULL)
		return hm_err_set(e, HM_ENOMEM, "line %zu: no memory", t->line);
	for (char *p = *out; *p != '\0'; p++)
		*p = *p == '|' ? ',' : *p;
	return 0;
}

static int read_cards(const struct table *t, struct trace_pod *p, struct hm_err *e)
{
	int64_t cards, milli = 0;
	int rc = number(t, "num_gpu", &cards, e);

	if (rc != 0 || cards == 0)
		return rc;
	rc = number(t, "gpu_milli", &milli, e);
	if (rc == 0 && (cards > NODE_MAX_CARDS || milli < 1 || milli > CARD_MILLI))
		rc = hm_err_set(e, HM_EPROTO, "line %zu: num_gpu %lld, gpu_milli %lld: not up to %d cards of 1 to %d",
				t->line, (long long)cards, (long long)milli, NODE_MAX_CARDS, CARD_MILLI);
	if (rc != 0)
		return rc;
	p->milli = cards * milli;
	return pod_ask_add(&p->ask,
			   &(struct card_ask) { .kind = ASK_APP,
						.count = (uint32_t)cards,
						.memory_mib = (int32_t)milli,
						.cores = milli == CARD_MILLI ? 100 : 0 },
			   e);
}

static int read_pod(const struct table *t, struct trace_pod *p, struct hm_err *e)
{
	int rc = number(t, "cpu_milli", &p->ask.cpu_milli, e);

	if (rc == 0)
		rc = number(t, "memory_mib", &p->ask.host_mib, e);
	if (rc == 0)
		rc = read_cards(t, p, e);
	if (rc == 0)
		rc = read_types(t, &p->types, e);
	if (rc == 0)
		rc = text_of(t, "name", &p->name, e);
	p->ask.name_space = "";
	p->ask.name = p->name;
	p->ask.uid = p->name;
	p->ask.wishes.use_types = p->types;
	return rc;
}

int trace_read_pods(struct trace *t, const char *text, size_t n, struct hm_err *e)
{
	struct cur c = cur_of(text, n);
	struct table table = { 0 };

	if (!next_line(&table, &c))
		return hm_err_set(e, HM_EPROTO, "the file is empty");
	while (next_line(&table, &c)) {
		struct trace_pod pod = { 0 };
		int rc = read_pod(&table, &pod, e);

		if (rc == 0 && !HM_PUSH(t->pods, t->pod_count, t->pod_cap, pod))
			rc = hm_err_set(e, HM_ENOMEM, "pods: no memory");
		if (rc != 0) {
			forget_pod(&pod);
			return rc;
		}
	}
	return 0;
}

static int build_node(const struct trace_node *from, struct scene *out, struct hm_err *e)
{
	hm_auto(node_state) *n = node_state_new(from->name, cluster_texts(out->cluster));
	char type[TYPE_BYTES];
	struct node_card card = { .count = MAX_SHARING,
				  .memory_mib = CARD_MIB,
				  .cores = 100,
				  .healthy = true,
				  .type = type,
				  .mode = HAMI_MODE_CORE };
	int rc = 0;

	if (n == NULL)
		return hm_err_set(e, HM_ENOMEM, "node %s: no memory", from->name);
	hm_fmt(type, sizeof type, "%s-%s", HAMI_DEVICE_TYPE, from->type);
	n->cpu_milli = from->cpu_milli;
	n->host_mib = from->host_mib;
	for (uint32_t i = 0; i < from->cards && rc == 0; i++) {
		card.index = i;
		hm_fmt(card.uuid, sizeof card.uuid, "GPU-%u", i);
		rc = node_state_add_card(n, &card, e);
	}
	return rc == 0 ? scene_add_node(out, HM_STEAL(n), (struct screen_node) { 0 }, e) : rc;
}

int trace_build(const struct trace *t, struct scene *out, struct hm_err *e)
{
	int rc = scene_init(out, e);

	for (size_t i = 0; i < t->node_count && rc == 0; i++)
		rc = build_node(&t->nodes[i], out, e);
	return rc;
}
