#include "sched/simulate/advise_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/macros.h"
#include "sched/simulate/advise.h"
#include "sched/simulate/command.h"
#include "sched/simulate/snapshot.h"

static const char usage[] =
	"usage: hami-scheduler advise --nodes FILE --pods FILE [--pod NAMESPACE/NAME] [--moves N]\n\n"
	"Names the few pods whose move would make most cards whole again or, with --pod, let that pod in. Nothing\n"
	"is moved. The files are what `kubectl get nodes -o json` and `kubectl get pods -A -o json` print.";

struct settings {
	const char *nodes, *pods, *pod, *device_config;
	uint64_t moves;
};

struct advice {
	struct snapshot snapshot;
	struct scene scene;
	struct policy policy;
	struct advise_pod *pods; /* bound ones */
	size_t count;
};

static void advice_fini(struct advice *a)
{
	free(a->pods);
	policy_fini(&a->policy);
	scene_fini(&a->scene);
	snapshot_fini(&a->snapshot);
}
#define hm_auto_advice __attribute__((cleanup(advice_fini))) struct advice

static int read_files(const struct settings *s, struct advice *a, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	int rc = command_read_file("nodes", s->nodes, &text, e);

	if (rc == 0 && snapshot_configure(&a->snapshot, s->device_config, e) != 0)
		rc = hm_err_wrap(e, "--device-config-file");
	if (rc == 0 && snapshot_read_nodes(&a->snapshot, str_text(&text), text.n, e) != 0)
		rc = hm_err_wrap(e, "--nodes %s", s->nodes);
	if (rc == 0)
		rc = command_read_file("pods", s->pods, &text, e);
	if (rc == 0 && snapshot_read_pods(&a->snapshot, str_text(&text), text.n, e) != 0)
		rc = hm_err_wrap(e, "--pods %s", s->pods);
	if (rc == 0)
		rc = snapshot_build(&a->snapshot, &a->scene, e);
	return rc;
}

static int prepare(const struct settings *s, struct advice *a, struct hm_err *e)
{
	struct fgd_weights weights = fgd_default_weights();
	int rc = read_files(s, a, e);

	weights.blind_step = 0; /* the few pods that move are to fit closely */
	if (rc == 0)
		rc = snapshot_mix(&a->snapshot, &a->policy.mix, e);
	if (rc == 0)
		rc = policy_start(&a->policy, "fgd", "fgd", &weights, e);
	if (rc != 0)
		return rc;
	a->pods = calloc(a->snapshot.count + 1, sizeof *a->pods);
	if (a->pods == NULL)
		return hm_err_set(e, HM_ENOMEM, "pods: no memory");
	for (size_t i = 0; i < a->snapshot.count; i++) {
		struct snapshot_pod *p = &a->snapshot.gpu_pods[i];

		if (p->held.holds)
			a->pods[a->count++] = (struct advise_pod) { snapshot_scene_pod(p), &p->held.hold };
	}
	return 0;
}

/* "NAMESPACE/NAME" of the pods that wait. */
static int find_waiting(const struct advice *a, const char *name, struct scene_pod *out, struct hm_err *e)
{
	for (size_t i = 0; i < a->snapshot.count; i++) {
		const struct snapshot_pod *p = &a->snapshot.gpu_pods[i];
		size_t n = strlen(p->ask.name_space);

		if (strncmp(name, p->ask.name_space, n) != 0 || name[n] != '/' ||
		    strcmp(name + n + 1, p->ask.name) != 0)
			continue;
		if (p->held.holds)
			return hm_err_set(e, HM_EINVAL, "--pod %s: it has cards already", name);
		*out = snapshot_scene_pod(p);
		return 0;
	}
	return hm_err_set(e, HM_EINVAL, "--pod %s: no pod of this name in --pods asks for cards", name);
}

static void add_moves(struct str *out, const struct advice *a, const struct advise_plan *plan)
{
	for (size_t i = 0; i < plan->count; i++) {
		const struct advise_move *m = &plan->moves[i];
		const struct hold *h = a->pods[m->pod].hold;

		str_addf(out, "move %s/%s from %s (%s) to %s (%s)\n", h->name_space, h->name, h->node,
			 h->shares[0].uuid, m->to, m->card);
	}
}

static int advise_whole(const struct settings *s, struct advice *a, struct str *out, struct hm_err *e)
{
	struct advise_plan plan;
	int rc = advise_free_cards(&a->scene, a->policy.placer, a->pods, a->count, s->moves, &plan, e);

	if (rc != 0)
		return rc;
	add_moves(out, a, &plan);
	if (plan.count == 0)
		str_addf(out, "No move of at most %llu pods frees a whole card; %lld are.\n",
			 (unsigned long long)s->moves, (long long)plan.empty_before);
	else
		str_addf(out, "Whole cards: %lld now, %lld then.\n", (long long)plan.empty_before,
			 (long long)plan.empty_after);
	return 0;
}

static int advise_one(const struct settings *s, struct advice *a, struct str *out, struct hm_err *e)
{
	struct scene_pod waiting;
	struct advise_plan plan;
	int rc = find_waiting(a, s->pod, &waiting, e);

	if (rc == 0)
		rc = advise_let_in(&a->scene, a->policy.placer, a->pods, a->count, &waiting, &plan, e);
	if (rc != 0)
		return rc;
	add_moves(out, a, &plan);
	if (plan.node == NULL)
		str_addf(out, "No move of one or two pods lets %s in.\n", s->pod);
	else if (plan.count == 0)
		str_addf(out, "%s fits on %s as it is.\n", s->pod, plan.node);
	else
		str_addf(out, "Then %s fits on %s.\n", s->pod, plan.node);
	return 0;
}

static int advise(void *settings, struct hm_err *e)
{
	const struct settings *s = settings;
	hm_auto_advice a = { 0 };
	hm_auto_str out = { 0 };
	int rc = prepare(s, &a, e);

	if (rc == 0)
		command_print_notes("advise", &a.snapshot);
	if (rc == 0)
		rc = s->pod != NULL ? advise_one(s, &a, &out, e) : advise_whole(s, &a, &out, e);
	fputs(str_text(&out), stdout);
	return rc;
}

int advise_main(int argc, char **argv)
{
	struct settings s = { .moves = 5 };
	const struct option_spec table[] = {
		{ "nodes", NULL, OPTION_TEXT, &s.nodes, .argument = "FILE", .help = "nodes, as kubectl prints them" },
		{ "pods", NULL, OPTION_TEXT, &s.pods, .argument = "FILE", .help = "pods, as kubectl prints them" },
		{ "pod", NULL, OPTION_TEXT, &s.pod, .argument = "NAMESPACE/NAME", .help = "the pod to let in" },
		{ "device-config-file", NULL, OPTION_TEXT, &s.device_config, .argument = "FILE",
		  .help = "HAMi's device-config.yaml; without it the defaults of HAMi's chart" },
		{ "moves", NULL, OPTION_U64, &s.moves, .min = 1, .max = ADVISE_MAX_MOVES,
		  .help = "pods that may move" },
	};

	return command_run("advise", usage, table, HM_COUNT(table), argc, argv, advise, &s);
}
