/* hami-device-plugin: the node agent. docs/agent.md */
#include <malloc.h>
#include <signal.h>
#include <stdio.h>

#include "agent/agent.h"
#include "agent/options/options.h"
#include "agent/reload/options_change.h"
#include "agent/reload/selftest.h"
#include "base/log.h"
#include "contract/exit_codes.h"
#include "io/loop.h"

static const char usage[] = "usage: hami-device-plugin [options]\n\n"
			    "Offers slices of this node's GPUs to the kubelet and gives each container its own.";

static int finish_early(int result, const struct option_spec *table)
{
	if (result == OPTIONS_HELP)
		options_print_help(usage, table, AGENT_OPTION_COUNT);
	else if (result == OPTIONS_VERSION_WORD) /* as HAMi's plugin says it */
		printf("NVIDIA Device Plugin version: %s\n", HM_VERSION);
	else
		printf("hami-device-plugin %s\n", HM_VERSION);
	return HM_EXIT_OK;
}

/* The options anew where they can be used; else the former ones once more. */
static void read_again(struct agent_options *o)
{
	struct agent_options fresh;
	struct hm_err e;

	if (options_change_read(o, &fresh, &e) < 0) {
		log_error("the new configuration is refused; the former one stays", KV_ERR(&e));
		return;
	}
	hami_options_fini(&o->hami);
	*o = fresh;
	if (agent_options_set_log(o, &e) < 0)
		log_warn("the log's level stays", KV_ERR(&e));
}

static int run(struct agent_options *o, struct hm_err *e)
{
	for (;;) {
		int r;

		log_info("hami-device-plugin starts", KV("version", HM_VERSION), KV("mode", o->mode),
			 KV("binding", o->binding), KV("resource", o->resource_name),
			 KV_U64("cores_per_device", o->cores_per_device));
		r = agent_run(o, e);
		if (r != AGENT_RUN_AGAIN)
			return r;
		read_again(o);
	}
}

int main(int argc, char **argv)
{
	struct option_spec table[AGENT_OPTION_COUNT];
	struct agent_options options;
	struct hm_err e;
	int r;

	mallopt(M_ARENA_MAX, 1); /* the worker allocates little; an arena of its own would only cost memory */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN); /* until there is a configuration to read again */
	log_set_clock(clock_wall_ms);
	agent_options_init(&options, table);
	r = agent_options_read(&options, table, argc, argv, &e);
	if (r > OPTIONS_RUN)
		return finish_early(r, table);
	if (r < 0 || agent_options_set_log(&options, &e) < 0) {
		fprintf(stderr, "hami-device-plugin: %s\n", e.msg);
		agent_options_fini(&options);
		return HM_EXIT_USAGE;
	}
	r = selftest_settle(&options, &e);
	if (r == 0)
		r = run(&options, &e);
	if (r < 0)
		log_error("hami-device-plugin ends", KV_ERR(&e));
	agent_options_fini(&options);
	return r < 0 ? HM_EXIT_FAILED : HM_EXIT_OK;
}
