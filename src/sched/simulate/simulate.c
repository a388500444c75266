#include "sched/simulate/simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fmt.h"
#include "core/macros.h"
#include "io/file.h"
#include "io/json.h"
#include "sched/simulate/command.h"
#include "sched/simulate/picture.h"
#include "sched/simulate/run.h"
#include "sched/simulate/run_table.h"
#include "sched/simulate/snapshot_run.h"
#include "sched/simulate/trace.h"
#include "sched/simulate/weights_text.h"
#include "sched/simulate/workload.h"

enum { MAX_RUNS = 1000, OPTIONS = 13 };

static const char usage[] =
	"usage: hami-scheduler simulate --nodes FILE --pods FILE [options]\n\n"
	"Places pods one after another, by the scheduler's own code, and says how much of the cards was allocated:\n"
	"those of a trace (CSV files, docs/placement.md), or those that wait in a cluster (JSON files, as\n"
	"`kubectl get nodes -o json` and `kubectl get pods -A -o json` print them).";

struct settings {
	const char *nodes, *pods, *policy, *card_policy, *mix, *host, *weights, *picture, *device_config;
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
		{ "device-config-file", NULL, OPTION_TEXT, &s->device_config, .argument = "FILE",
		  .help = "of a JSON cluster, HAMi's device-config.yaml; without it the defaults of HAMi's chart" },
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

/* ---- the runs */

static int run_all(const struct settings *s, const struct run_options *o, const struct trace *t,
		   struct run_result *runs, struct scene *last, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	int rc = 0;

	str_addf(&text, "policy %s, cards %s, %zu nodes, %lld cards\n", o->node_policy, o->card_policy, t->node_count,
		 (long long)(t->milli / CARD_MILLI));
	run_table_head(&text);
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
		run_table_add(&text, name, &runs[i], t->milli);
		fputs(str_text(&text), stdout);
		fflush(stdout);
		str_clear(&text);
	}
	if (s->seeds > 1)
		run_table_mean(&text, runs, s->seeds, t->milli);
	fputs(str_text(&text), stdout);
	return 0;
}

/* "pods" of "dir/pods.csv". */
static void add_base_name(struct str *out, const char *path)
{
	const char *slash = strrchr(path, '/'), *base = slash == NULL ? path : slash + 1;
	const char *dot = strrchr(base, '.');

	str_add_n(out, base, dot == NULL || dot == base ? strlen(base) : (size_t)(dot - base));
}

static int draw(const struct settings *s, const struct run_result *runs, size_t count, int64_t milli,
		const struct scene *last, struct hm_err *e)
{
	hm_auto_str svg = { 0 }, title = { 0 };

	add_base_name(&title, s->pods);
	str_addf(&title, ", %s: %zu nodes, %lld cards", s->policy, last->node_count, (long long)(milli / CARD_MILLI));
	if (s->seed > 0 && count > 1)
		str_addf(&title, "; seeds %llu to %llu", (unsigned long long)s->seed,
			 (unsigned long long)(s->seed + count - 1));
	else if (s->seed > 0)
		str_addf(&title, "; seed %llu", (unsigned long long)s->seed);
	picture_write(runs, count, milli, last, str_text(&title), &svg);
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
	return rc == 0 && s->picture != NULL ? draw(s, runs, s->seeds, t.milli, &last, e) : rc;
}

/* ---- a snapshot */

static void add_sum(struct str *out, const char *when, const struct scene_sum *sum, int64_t lost_milli)
{
	str_addf(out, "%-7s", when);
	command_add_percent(out, sum->milli - sum->free_milli, sum->milli, 9);
	str_addf(out, "  %11lld", (long long)sum->empty_cards);
	command_add_percent(out, lost_milli, sum->free_milli, 12);
	str_addc(out, '\n');
}

static int read_snapshot(const struct settings *s, const struct files *f, struct snapshot *out, struct hm_err *e)
{
	int rc = snapshot_configure(out, s->device_config, e);

	if (rc != 0)
		return hm_err_wrap(e, "--device-config-file");
	if (snapshot_read_nodes(out, str_text(&f->nodes), f->nodes.n, e) != 0)
		return hm_err_wrap(e, "--nodes %s", s->nodes);
	if (snapshot_read_pods(out, str_text(&f->pods), f->pods.n, e) != 0)
		return hm_err_wrap(e, "--pods %s", s->pods);
	return 0;
}

static void print_snapshot(const struct run_options *o, const struct snapshot *snapshot, size_t nodes,
			   const struct snapshot_result *r, struct str *out)
{
	str_addf(out,
		 "policy %s, cards %s, %zu nodes, %lld cards; %llu pods bound, %llu placed, %llu refused, %zu not "
		 "read\n",
		 o->node_policy, o->card_policy, nodes, (long long)r->before.cards, (unsigned long long)r->bound,
		 (unsigned long long)r->placed, (unsigned long long)r->refused, snapshot->unread);
	str_add(out, "         allocated  empty cards  lost of free\n");
	add_sum(out, "before", &r->before, r->lost_before);
	add_sum(out, "after", &r->after, r->lost_after);
	command_print_notes("simulate", snapshot);
	fputs(str_text(out), stdout);
}

static int simulate_snapshot(const struct settings *s, const struct run_options *o, const struct files *f,
			     struct hm_err *e)
{
	hm_auto_snapshot snapshot = { 0 };
	hm_auto_scene scene = { 0 };
	hm_auto_policy policy = { 0 };
	hm_auto_str out = { 0 };
	struct snapshot_result r = { 0 };
	int rc = read_snapshot(s, f, &snapshot, e);

	if (rc == 0)
		rc = snapshot_build(&snapshot, &scene, e);
	if (rc == 0)
		rc = snapshot_mix(&snapshot, &policy.mix, e);
	if (rc == 0)
		rc = policy_start(&policy, o->node_policy, o->card_policy, &o->weights, e);
	if (rc == 0)
		rc = snapshot_run(&snapshot, &scene, &policy, &r, &out, e);
	if (rc != 0)
		return rc;
	print_snapshot(o, &snapshot, scene.node_count, &r, &out);
	return s->picture == NULL ? 0 : draw(s, NULL, 0, r.after.milli, &scene, e);
}

static bool is_text(const char *text, const char *other)
{
	return text != NULL && strcmp(text, other) == 0;
}

/* What would change nothing was meant to. */
static int check_settings(const struct settings *s, bool json, struct hm_err *e)
{
	bool fgd = is_text(s->policy, "fgd") || is_text(s->card_policy, "fgd");
	const struct {
		const char *option;
		bool given, of_trace, of_cluster, of_fgd;
	} all[] = {
		{ "seed", s->seed > 0, .of_trace = true },
		{ "seeds", s->seeds > 1, .of_trace = true },
		{ "load", s->load_percent > 0, .of_trace = true },
		{ "until", s->until_percent > 0, .of_trace = true },
		{ "mix", s->mix != NULL, .of_trace = true, .of_fgd = true },
		{ "host", s->host != NULL, .of_trace = true, .of_fgd = true },
		{ "weights", s->weights != NULL, .of_trace = true, .of_cluster = true, .of_fgd = true },
		{ "device-config-file", s->device_config != NULL, .of_cluster = true },
	};

	for (size_t i = 0; i < HM_COUNT(all); i++) {
		if (all[i].given && !(json ? all[i].of_cluster : all[i].of_trace))
			return hm_err_set(e, HM_EINVAL, "--%s is only for %s", all[i].option,
					  json ? "a trace (CSV files)" : "a cluster (JSON files)");
		if (all[i].given && all[i].of_fgd && !fgd)
			return hm_err_set(e, HM_EINVAL, "--%s is only for the policy fgd", all[i].option);
	}
	if (s->seeds > 1 && s->seed == 0)
		return hm_err_set(e, HM_EINVAL, "--seeds: without --seed all runs would be the same");
	return 0;
}

static int simulate(void *settings, struct hm_err *e)
{
	const struct settings *s = settings;
	struct run_options o = { .node_policy = s->policy,
				 .card_policy = s->card_policy == NULL ? s->policy : s->card_policy,
				 .weights = fgd_default_weights(),
				 .learn = is_text(s->mix, "learned"),
				 .blind = is_text(s->host, "unknown"),
				 .until_percent = s->until_percent };
	__attribute__((cleanup(files_fini))) struct files f = { 0 };
	bool json;
	int rc = 0;

	if (s->weights != NULL && weights_text_read(s->weights, &o.weights, e) != 0)
		rc = hm_err_wrap(e, "--weights");
	if (rc == 0)
		rc = read_files(s, &f, e);
	json = json_begins_object(str_text(&f.nodes), f.nodes.n);
	if (rc == 0)
		rc = check_settings(s, json, e);
	if (rc == 0)
		rc = json ? simulate_snapshot(s, &o, &f, e) : simulate_trace(s, &o, &f, e);
	return rc;
}

int simulate_main(int argc, char **argv)
{
	struct settings s = { .policy = "fgd", .seeds = 1 };
	struct option_spec table[OPTIONS];

	make_table(&s, table);
	return command_run("simulate", usage, table, HM_COUNT(table), argc, argv, simulate, &s);
}
