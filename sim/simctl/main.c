/* hami-simctl: starts, shows, disturbs and ends a simulated GPU node. docs/simulation.md */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "contract/exit_codes.h"
#include "core/cleanup.h"
#include "core/macros.h"
#include "sim/simctl/simctl.h"

static const char usage[] =
	"hami-simctl [--dir=DIR] COMMAND\n"
	"\n"
	"  up NODE.yaml [--clock=wall|virtual] [--lib-dir=DIR]   start a node\n"
	"  down                                   end it and remove all that up made\n"
	"  status [-j]                            its cards, processes and faults; -j: as JSON\n"
	"  gpu N xid NUMBER [GI CI]               post an XID event, of a MIG instance\n"
	"  gpu N ecc COUNT                        uncorrectable ECC errors, and an event\n"
	"  gpu N rows PENDING FAILED              0 or 1: rows to be remapped at a reset, or not any more\n"
	"  gpu N action NUMBER                    what the driver (R565 on) asks for; 0: nothing, 1: a reset\n"
	"  gpu N events 0|1                       the card tells no events, or does\n"
	"  gpu N lost                             the card falls off the bus (and XID 79)\n"
	"  gpu N recover                          it is reset: back, empty, without errors\n"
	"  gpu N nvml-error CALL CODE             that NVML call fails with CODE; 0: no longer\n"
	"  gpu N nvml-hang SECONDS                NVML calls on the card hang; 0: no longer\n"
	"  gpu N hold MIB                         a stray process takes memory; 0: all of them end\n"
	"  gpu N mig on|off                       the MIG mode; pending where the card is in use\n"
	"  gpu N mig create PROFILE [START]       a MIG device, from that memory slice on; prints its UUID\n"
	"  gpu N mig destroy UUID                 its end\n"
	"  driver-reload [--down-ms=MS]           unload the driver under all processes, load it again";

static struct simctl ctl = { .clock = "wall" };

static const struct option_spec specs[] = {
	{ .name = "dir",
	  .env = SIM_ENV_DIR,
	  .kind = OPTION_TEXT,
	  .value = &ctl.dir,
	  .argument = "DIR",
	  .help = "the node's folder" },
	{ .name = "clock",
	  .kind = OPTION_CHOICE,
	  .value = &ctl.clock,
	  .choices = "wall|virtual",
	  .help = "up: whose time kernels take" },
	{ .name = "lib-dir",
	  .kind = OPTION_TEXT,
	  .value = &ctl.lib_dir,
	  .argument = "DIR",
	  .help = "up: where libcuda.so.1 and libnvidia-ml.so.1 are; default: those installed or built with this "
		  "program" },
	{ .name = "json", .kind = OPTION_BOOL, .value = &ctl.json, .help = "status: as JSON; also -j" },
	{ .name = "down-ms",
	  .kind = OPTION_U64,
	  .value = &ctl.down_ms,
	  .max = 3600000,
	  .help = "driver-reload: how long no driver is there" },
};

static const struct command {
	const char *name;
	int min, max; /* operands */
	bool makes_node;
	int (*run)(struct simctl *c, struct hm_err *e);
} commands[] = {
	{ "up", 1, 1, true, simctl_up },
	{ "down", 0, 0, false, simctl_down },
	{ "status", 0, 0, false, simctl_status },
	{ "gpu", 2, 5, false, simctl_gpu },
	{ "driver-reload", 0, 0, false, simctl_reload },
};

/* Options may stand anywhere; the words between them are collected. */
static int read_words(int argc, char **argv, char **words, int *count, struct hm_err *e)
{
	static char json[] = "--json";
	struct option_spec later[HM_COUNT(specs)];
	const struct option_spec *use = specs;
	int at = 0;

	memcpy(later, specs, sizeof specs);
	later[0].env = NULL; /* else the environment would win over a flag read before */
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "-j") == 0)
			argv[i] = json;
	*count = 0;
	while (at < argc) {
		int operand = 0, r = options_parse(use, HM_COUNT(specs), argc - at, argv + at, &operand, e);

		if (r != OPTIONS_RUN)
			return r;
		use = later;
		at += operand;
		if (at < argc)
			words[(*count)++] = argv[at];
	}
	return OPTIONS_RUN;
}

static int resolve_dir(const struct command *cmd, struct hm_err *e)
{
	static char absolute[PATH_MAX];

	if (ctl.dir == NULL || ctl.dir[0] == '\0')
		return hm_err_set(e, HM_EINVAL, "which node? set " SIM_ENV_DIR " or give --dir");
	if (realpath(ctl.dir, absolute) != NULL)
		ctl.dir = absolute;
	else if (!cmd->makes_node)
		return hm_err_errno(e, errno, "%s", ctl.dir);
	return setenv(SIM_ENV_DIR, ctl.dir, 1) == 0 ? 0 : hm_err_set(e, HM_ENOMEM, "environment");
}

static int dispatch(char **words, int count, struct hm_err *e)
{
	if (count == 0)
		return hm_err_set(e, HM_EINVAL, "no command; see --help");
	for (size_t i = 0; i < HM_COUNT(commands); i++) {
		const struct command *cmd = &commands[i];
		int r;

		if (strcmp(words[0], cmd->name) != 0)
			continue;
		ctl.words = words + 1;
		ctl.word_count = count - 1;
		if (ctl.word_count < cmd->min || ctl.word_count > cmd->max)
			return hm_err_set(e, HM_EINVAL, "%s: too %s words; see --help", cmd->name,
					  ctl.word_count < cmd->min ? "few" : "many");
		r = resolve_dir(cmd, e);
		return r == 0 ? cmd->run(&ctl, e) : r;
	}
	return hm_err_set(e, HM_EINVAL, "unknown command \"%s\"; see --help", words[0]);
}

int main(int argc, char **argv)
{
	hm_auto_heap char **words = calloc((size_t)argc + 1, sizeof *words);
	struct hm_err e = { 0 };
	int r, count = 0;

	signal(SIGPIPE, SIG_IGN);
	if (words == NULL)
		return HM_EXIT_FAILED;
	r = read_words(argc, argv, words, &count, &e);
	if (r == OPTIONS_VERSION) {
		puts("hami-simctl " HM_VERSION);
		return HM_EXIT_OK;
	}
	if (r == OPTIONS_HELP) {
		options_print_help(usage, specs, HM_COUNT(specs));
		return HM_EXIT_OK;
	}
	if (r >= 0)
		r = dispatch(words, count, &e);
	if (r >= 0)
		return HM_EXIT_OK;
	fprintf(stderr, "hami-simctl: %s\n", e.msg);
	return -r == HM_EINVAL || -r == HM_EPROTO ? HM_EXIT_USAGE : HM_EXIT_FAILED;
}
