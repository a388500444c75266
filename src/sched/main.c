/* hami-scheduler: places pods that ask for GPU slices. docs/scheduler.md */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "contract/exit_codes.h"
#include "io/loop.h"
#include "sched/options/options.h"
#include "sched/options/version.h"
#include "sched/scheduler.h"
#include "sched/simulate/advise_command.h"
#include "sched/simulate/simulate.h"

static const char usage[] = "usage: hami-scheduler [options]\n"
			    "       hami-scheduler simulate|advise|version [--help]\n\n"
			    "The extender and the admission webhook beside a kube-scheduler: pods that ask for GPU\n"
			    "slices get a node and cards.";

static int run_version(int argc, char **argv)
{
	hm_auto_str text = { 0 };

	(void)argc, (void)argv;
	version_add_lines(&text);
	fputs(str_text(&text), stdout);
	return HM_EXIT_OK;
}

/* `hami-scheduler NAME ...`; argv[0] is the name. */
static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "advise", advise_main },
	{ "simulate", simulate_main },
	{ "version", run_version },
};

static int finish_early(int result, const struct option_spec *table)
{
	if (result == OPTIONS_HELP)
		options_print_help(usage, table, SCHED_OPTION_COUNT);
	else
		printf("hami-scheduler %s\n", version_of(VERSION_VERSION));
	return HM_EXIT_OK;
}

static int serve(int argc, char **argv)
{
	struct option_spec table[SCHED_OPTION_COUNT];
	struct sched_options options;
	struct hm_err e;
	int r;

	mallopt(M_ARENA_MAX, 1);
	signal(SIGPIPE, SIG_IGN);
	log_set_clock(clock_wall_ms);
	sched_options_init(&options, table);
	r = sched_options_read(&options, table, argc, argv, &e);
	if (r > OPTIONS_RUN) {
		sched_options_fini(&options);
		return finish_early(r, table);
	}
	if (r < 0 || sched_options_set_log(&options, &e) < 0) {
		fprintf(stderr, "hami-scheduler: %s\n", e.msg);
		sched_options_fini(&options);
		return HM_EXIT_USAGE;
	}
	r = scheduler_run(&options, &e);
	if (r < 0)
		log_error("hami-scheduler ends", KV_ERR(&e));
	sched_options_fini(&options);
	return r < 0 ? HM_EXIT_FAILED : HM_EXIT_OK;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < HM_COUNT(commands); i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	return serve(argc, argv);
}
