#include "sched/simulate/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/str.h"
#include "contract/exit_codes.h"
#include "core/fmt.h"
#include "core/macros.h"
#include "io/file.h"
#include "sched/simulate/picture.h"
#include "sched/simulate/run.h"
#include "sched/simulate/trace.h"
#include "sched/simulate/weights_text.h"
#include "sched/simulate/workload.h"

enum { MAX_FILE_BYTES = 256 << 20, MAX_RUNS = 1000 };

static const char usage[] =
	"usage: hami-scheduler simulate --nodes FILE --pods FILE [options]\n\n"
	"Places the pods of a trace one after another, by the scheduler's own code, and says how much of the\n"
	"cards was allocated. docs/placement.md has the files' form and an experiment.";

struct settings {
	const char *nodes, *pods, *policy, *card_policy, *mix, *weights, *picture;
	uint64_t seed, seeds, load_percent, until_percent;
};

static void make_table(struct settings *s, struct option_spec table[static 11])
{
	const struct option_spec specs[] = {
		{ "nodes", NULL, OPTION_TEXT, &s->nodes, .argument = "FILE", .help = "nodes, a CSV file" },
		{ "pods", NULL, OPTION_TEXT, &s->pods, .argument = "FILE", .help = "pods, a CSV file" },
		{ "policy", NULL, OPTION_CHOICE, &s->policy, .choices = "fgd|binpack|spread", .help = "of nodes" },
		{ "card-policy", NULL, OPTION_TEXT, &s->card_policy, .argument = "NAME",
		  .help = "of a node's cards; default: as --policy" },
		{ "seed", NULL, OPTION_U64, &s->seed, .max = UINT32_MAX,
		  .help = "the order in which pods come; 0: as in the file" },
		{ "seeds", NULL, OPTION_U64, &s->seeds, .min = 1, .max = MAX_RUNS,
		  .help = "how many runs, of this and the next seeds" },
		{ "load", NULL, OPTION_U64, &s->load_percent, .max = RUN_MAX_PERCENT, .argument = "PERCENT",
		  .help = "copies of pods are added, or pods left out, until all ask for so much of the cards; 0: as "
			  "they are" },
		{ "until", NULL, OPTION_U64, &s->until_percent, .max = RUN_MAX_PERCENT, .argument = "PERCENT",
		  .help = "stop when so much of the cards was asked for; 0: after the last pod" },
		{ "mix", NULL, OPTION_CHOICE, &s->mix, .choices = "given|learned",
		  .help = "what fgd knows of typical pods: all of the file, or those that came" },
		{ "weights", NULL, OPTION_TEXT, &s->weights, .argument = "PARTS",
		  .help = "of fgd: fragment=1000,copies=300" },
		{ "picture", NULL, OPTION_TEXT, &s->picture, .argument = "FILE", .help = "an SVG file to write" },
	};

	memcpy(table, specs, sizeof specs);
}

static int read_trace(const struct settings *s, struct trace *t, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	int rc;

	if (s->nodes == NULL || s->pods == NULL)
		return hm_err_set(e, HM_EINVAL, "--nodes and --pods name the trace's files");
	rc = file_read(s->nodes, MAX_FILE_BYTES, &text, e);
	if (rc == 0)
		rc = trace_read_nodes(t, str_text(&text), text.n, e);
	if (rc != 0)
		return hm_err_wrap(e, "--nodes %s", s->nodes);
	rc = file_read(s->pods, MAX_FILE_BYTES, &text, e);
	if (rc == 0)
		rc = trace_read_pods(t, str_text(&text), text.n, e);
	return rc == 0 ? 0 : hm_err_wrap(e, "--pods %s", s->pods);
}

static int make_order(const struct settings *s, const struct trace *t, uint64_t seed, struct workload *w,
		      struct hm_err *e)
{
	int64_t load = 0;

	if (seed == 0 && s->load_percent == 0)
		return workload_plain(t, w, e);
	for (size_t i = 0; i < t->pod_count; i++)
		load += t->pods[i].milli;
	if (s->load_percent > 0)
		load = t->milli * (int64_t)s->load_percent / 100;
	return workload_shuffled(t, load, seed, w, e);
}

/* ---- the table */

/* "95.23", of all that is `whole`. */
static void add_percent(struct str *out, int64_t part, int64_t whole, int width)
{
	int64_t hundredths = whole == 0 ? 0 : (part * 10000 + whole / 2) / whole;
	char text[32];

	hm_fmt(text, sizeof text, "%lld.%02lld", (long long)(hundredths / 100), (long long)(hundredths % 100));
	str_addf(out, "  %*s", width, text);
}

static int64_t at_full(const struct run_result *r)
{
	return r->curve_count > 100 ? r->curve[100] : r->allocated_milli;
}

static void add_head(struct str *out)
{
	str_add(out, "seed    pods  placed  no CPU or memory  no cards   asked  allocated  at 100  empty cards  lost "
		     "of free\n");
}

static void add_run(struct str *out, const char *name, const struct run_result *r, int64_t milli)
{
	str_addf(out, "%-4s  %6llu  %6llu  %16llu  %8llu", name, (unsigned long long)r->pods,
		 (unsigned long long)r->placed, (unsigned long long)r->short_of_host,
		 (unsigned long long)r->short_of_cards);
	add_percent(out, r->arrived_milli, milli, 6);
	add_percent(out, r->allocated_milli, milli, 9);
	add_percent(out, at_full(r), milli, 6);
	str_addf(out, "  %11lld", (long long)r->end.empty_cards);
	add_percent(out, r->lost_milli, r->end.free_milli, 12);
	str_addc(out, '\n');
}

static void add_mean(struct str *out, const struct run_result *runs, size_t count, int64_t milli)
{
	struct run_result sum = { 0 };

	for (size_t i = 0; i < count; i++) {
		sum.pods += runs[i].pods;
		sum.placed += runs[i].placed;
		sum.short_of_host += runs[i].short_of_host;
		sum.short_of_cards += runs[i].short_of_cards;
		sum.arrived_milli += runs[i].arrived_milli;
		sum.allocated_milli += runs[i].allocated_milli;
		sum.curve[100] += at_full(&runs[i]);
		sum.end.empty_cards += runs[i].end.empty_cards;
		sum.end.free_milli += runs[i].end.free_milli;
		sum.lost_milli += runs[i].lost_milli;
	}
	sum.curve_count = 101;
	sum.pods /= count;
	sum.placed /= count;
	sum.short_of_host /= count;
	sum.short_of_cards /= count;
	sum.end.empty_cards /= (int64_t)count;
	add_run(out, "mean", &sum, milli * (int64_t)count);
}

/* ---- the runs */

static int run_all(const struct settings *s, const struct run_options *o, const struct trace *t,
		   struct run_result *runs, struct scene *last, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	int rc = 0;

	str_addf(&text, "policy %s, cards %s, %zu nodes, %lld cards\n", o->node_policy, o->card_policy, t->node_count,
		 (long long)(t->milli / CARD_MILLI));
	add_head(&text);
	for (size_t i = 0; i < s->seeds && rc == 0; i++) {
		uint64_t seed = s->seed == 0 ? 0 : s->seed + i;
		hm_auto_workload w = { 0 };
		char name[24];

		scene_fini(last);
		rc = make_order(s, t, seed, &w, e);
		if (rc == 0)
			rc = run_trace(t, &w, o, last, &runs[i], e);
		if (rc != 0)
			return rc;
		hm_fmt(name, sizeof name, "%llu", (unsigned long long)seed);
		add_run(&text, name, &runs[i], t->milli);
		fputs(str_text(&text), stdout);
		fflush(stdout);
		str_clear(&text);
	}
	if (s->seeds > 1)
		add_mean(&text, runs, s->seeds, t->milli);
	fputs(str_text(&text), stdout);
	return 0;
}

static int draw(const struct settings *s, const struct trace *t, const struct run_result *runs,
		const struct scene *last, struct hm_err *e)
{
	hm_auto_str svg = { 0 }, title = { 0 };

	str_addf(&title, "%s: %zu nodes, %lld cards", s->policy, t->node_count, (long long)(t->milli / CARD_MILLI));
	picture_write(runs, s->seeds, t->milli, last, str_text(&title), &svg);
	if (str_failed(&svg))
		return hm_err_set(e, HM_ENOMEM, "the picture: no memory");
	return file_swap(s->picture, str_text(&svg), svg.n, 0644, e);
}

static int simulate(const struct settings *s, struct hm_err *e)
{
	struct run_options o = { .node_policy = s->policy,
				 .card_policy = s->card_policy == NULL ? s->policy : s->card_policy,
				 .weights = fgd_default_weights(),
				 .learn = strcmp(s->mix, "learned") == 0,
				 .until_percent = s->until_percent };
	hm_auto_heap void *memory = calloc(s->seeds, sizeof(struct run_result));
	struct run_result *runs = memory;
	hm_auto_trace t = { 0 };
	hm_auto_scene last = { 0 };
	int rc = runs == NULL ? hm_err_set(e, HM_ENOMEM, "runs: no memory") : 0;

	if (rc == 0 && s->weights != NULL && weights_text_read(s->weights, &o.weights, e) != 0)
		rc = hm_err_wrap(e, "--weights");
	if (rc == 0)
		rc = read_trace(s, &t, e);
	if (rc == 0)
		rc = run_all(s, &o, &t, runs, &last, e);
	return rc == 0 && s->picture != NULL ? draw(s, &t, runs, &last, e) : rc;
}

int simulate_main(int argc, char **argv)
{
	struct settings s = { .policy = "fgd", .mix = "given", .seeds = 1 };
	struct option_spec table[11];
	struct hm_err e;
	int first, rc;

	make_table(&s, table);
	rc = options_parse(table, HM_COUNT(table), argc, argv, &first, &e);
	if (rc == OPTIONS_HELP) {
		options_print_help(usage, table, HM_COUNT(table));
		return HM_EXIT_OK;
	}
	if (rc >= 0 && first < argc)
		rc = hm_err_set(&e, HM_EINVAL, "what is \"%s\"? --help lists the options", argv[first]);
	if (rc >= 0)
		rc = simulate(&s, &e);
	if (rc >= 0)
		return HM_EXIT_OK;
	fprintf(stderr, "hami-scheduler simulate: %s\n", e.msg);
	return rc == -HM_ENOMEM || rc == -HM_EIO ? HM_EXIT_FAILED : HM_EXIT_USAGE;
}
