#include "sched/simulate/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "core/macros.h"
#include "io/file.h"
#include "sched/simulate/command.h"
#include "sched/simulate/picture.h"
#include "sched/simulate/run.h"
#include "sched/simulate/snapshot_run.h"
#include "sched/simulate/trace.h"
#include "sched/simulate/weights_text.h"
#include "sched/simulate/workload.h"

enum { MAX_RUNS = 1000, OPTIONS = 12 };

static const char usage[] =
	"usage: hami-scheduler simulate --nodes FILE --pods FILE [options]\n\n"
	"Places pods one after another, by the scheduler's own code, and says how much of the cards was allocated:\n"
	"those of a trace (CSV files, docs/placement.md), or those that wait in a cluster (JSON files, as\n"
	"`kubectl get nodes -o json` and `kubectl get pods -A -o json` print them).";

struct settings {
	const char *nodes, *pods, *policy, *card_policy, *mix, *host, *weights, *picture;
	uint64_t seed, seeds, load_percent, until_percent;
};

static void make_table(struct settings *s, struct option_spec table[static OPTIONS])
{
	const struct option_spec specs[] = {
		{ "nodes", NULL, OPTION_TEXT, &s->nodes, .argument = "FILE", .help = "nodes, CSV or JSON" },
		{ "pods", NULL, OPTION_TEXT, &s->pods, .argument = "FILE", .help = "pods, CSV or JSON" },
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
		{ "host", NULL, OPTION_CHOICE, &s->host, .choices = "known|unknown",
		  .help = "what fgd knows of the CPU and memory of nodes" },
		{ "weights", NULL, OPTION_TEXT, &s->weights, .argument = "PARTS",
		  .help = "of fgd: fragment=1000,copies=300" },
		{ "picture", NULL, OPTION_TEXT, &s->picture, .argument = "FILE", .help = "an SVG file to write" },
	};

	memcpy(table, specs, sizeof specs);
}

struct files {
	struct str nodes, pods;
};

static void files_fini(struct files *f)
{
	str_fini(&f->nodes);
	str_fini(&f->pods);
}

static int read_files(const struct settings *s, struct files *f, struct hm_err *e)
{
	int rc = command_read_file("nodes", s->nodes, &f->nodes, e);

	return rc == 0 ? command_read_file("pods", s->pods, &f->pods, e) : rc;
}

static int read_trace(const struct settings *s, const struct files *f, struct trace *t, struct hm_err *e)
{
	if (trace_read_nodes(t, str_text(&f->nodes), f->nodes.n, e) != 0)
		return hm_err_wrap(e, "--nodes %s", s->nodes);
	if (trace_read_pods(t, str_text(&f->pods), f->pods.n, e) != 0)
		return hm_err_wrap(e, "--pods %s", s->pods);
	return 0;
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
	command_add_percent(out, r->arrived_milli, milli, 6);
	command_add_percent(out, r->allocated_milli, milli, 9);
	command_add_percent(out, at_full(r), milli, 6);
	str_addf(out, "  %11lld", (long long)r->end.empty_cards);
	command_add_percent(out, r->lost_milli, r->end.free_milli, 12);
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

static int simulate_trace(const struct settings *s, const struct run_options *o, const struct files *f,
			  struct hm_err *e)
{
	hm_auto_heap void *memory = calloc(s->seeds, sizeof(struct run_result));
	struct run_result *runs = memory;
	hm_auto_trace t = { 0 };
	hm_auto_scene last = { 0 };
	int rc = runs == NULL ? hm_err_set(e, HM_ENOMEM, "runs: no memory") : read_trace(s, f, &t, e);

	if (rc == 0)
		rc = run_all(s, o, &t, runs, &last, e);
	return rc == 0 && s->picture != NULL ? draw(s, &t, runs, &last, e) : rc;
}

/* ---- a snapshot */

static void add_sum(struct str *out, const char *when, const struct scene_sum *sum)
{
	str_addf(out, "%-7s", when);
	command_add_percent(out, sum->milli - sum->free_milli, sum->milli, 9);
	str_addf(out, "  %11lld\n", (long long)sum->empty_cards);
}

static int simulate_snapshot(const struct settings *s, const struct run_options *o, const struct files *f,
			     struct hm_err *e)
{
	hm_auto_snapshot snapshot = { 0 };
	hm_auto_scene scene = { 0 };
	hm_auto_policy policy = { 0 };
	hm_auto_str out = { 0 };
	struct snapshot_result r = { 0 };
	int rc = snapshot_read_nodes(&snapshot, str_text(&f->nodes), f->nodes.n, e);

	if (rc != 0)
		return hm_err_wrap(e, "--nodes %s", s->nodes);
	if (snapshot_read_pods(&snapshot, str_text(&f->pods), f->pods.n, e) != 0)
		return hm_err_wrap(e, "--pods %s", s->pods);
	rc = snapshot_build(&snapshot, &scene, e);
	if (rc == 0)
		rc = snapshot_mix(&snapshot, &policy.mix, e);
	if (rc == 0)
		rc = policy_start(&policy, o->node_policy, o->card_policy, &o->weights, e);
	if (rc == 0)
		rc = snapshot_run(&snapshot, &scene, policy.placer, &r, &out, e);
	if (rc != 0)
		return rc;
	str_addf(&out,
		 "policy %s, cards %s, %zu nodes, %lld cards; %llu pods bound, %llu placed, %llu refused, %zu not "
		 "read\n",
		 o->node_policy, o->card_policy, scene.host_count, (long long)r.before.cards,
		 (unsigned long long)r.bound, (unsigned long long)r.placed, (unsigned long long)r.refused,
		 snapshot.unread);
	str_add(&out, "         allocated  empty cards\n");
	add_sum(&out, "before", &r.before);
	add_sum(&out, "after", &r.after);
	fputs(str_text(&out), stdout);
	return 0;
}

static bool is_json(const struct str *text)
{
	const char *p = str_text(text);

	return p[strspn(p, " \t\r\n")] == '{';
}

static int simulate(void *settings, struct hm_err *e)
{
	const struct settings *s = settings;
	struct run_options o = { .node_policy = s->policy,
				 .card_policy = s->card_policy == NULL ? s->policy : s->card_policy,
				 .weights = fgd_default_weights(),
				 .learn = strcmp(s->mix, "learned") == 0,
				 .blind = strcmp(s->host, "unknown") == 0,
				 .until_percent = s->until_percent };
	__attribute__((cleanup(files_fini))) struct files f = { 0 };
	int rc = 0;

	if (s->weights != NULL && weights_text_read(s->weights, &o.weights, e) != 0)
		rc = hm_err_wrap(e, "--weights");
	if (rc == 0)
		rc = read_files(s, &f, e);
	if (rc == 0)
		rc = is_json(&f.nodes) ? simulate_snapshot(s, &o, &f, e) : simulate_trace(s, &o, &f, e);
	return rc;
}

int simulate_main(int argc, char **argv)
{
	struct settings s = { .policy = "fgd", .mix = "given", .host = "known", .seeds = 1 };
	struct option_spec table[OPTIONS];

	make_table(&s, table);
	return command_run("simulate", usage, table, HM_COUNT(table), argc, argv, simulate, &s);
}
