#include <stdio.h>
#include <string.h>

#include "contract/exit_codes.h"
#include "core/macros.h"
#include "sim/simkubelet/commands.h"

static const struct {
	const char *name, *usage, *help;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "serve", "--dir=DIR", "be the node's kubelet and runtime until SIGTERM", command_serve },
	{ "run", "--dir=DIR [--wait=none|running|done] POD.json|-", "run a pod; events as JSON lines", command_client },
	{ "exec", "--dir=DIR POD[/CONTAINER] COMMAND...", "run a command inside a container", command_client },
	{ "logs", "--dir=DIR POD[/CONTAINER]", "what a container printed", command_client },
	{ "status", "--dir=DIR", "resources and pods as JSON", command_client },
	{ "delete", "--dir=DIR POD", "kill a pod's containers and forget it", command_client },
	{ "kill", "--dir=DIR POD[/CONTAINER] [SIGNAL]", "a signal (9) to a container's first process", command_client },
	{ "wait", "--dir=DIR RESOURCE [COUNT]", "until so many devices can be allocated", command_client },
	{ "kubelet-stop", "--dir=DIR", "the kubelet ends, containers go on", command_client },
	{ "kubelet-start", "--dir=DIR", "it comes back", command_client },
	{ "kubelet-restart", "--dir=DIR", "both", command_client },
	{ "ctl", "--dir=DIR JSON", "any request of the control socket", command_client },
	{ "stop", "--dir=DIR", "end serve", command_client },
};

static int usage(FILE *to, int code)
{
	fprintf(to, "Usage: hami-simkubelet COMMAND ...\n");
	for (size_t i = 0; i < HM_COUNT(commands); i++)
		fprintf(to, "  %-15s %-52s %s\n", commands[i].name, commands[i].usage, commands[i].help);
	return code;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return usage(stderr, HM_EXIT_USAGE);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)
		return usage(stdout, HM_EXIT_OK);
	if (strcmp(argv[1], "--version") == 0)
		return puts("hami-simkubelet " HM_VERSION) < 0;
	for (size_t i = 0; i < HM_COUNT(commands); i++) {
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	}
	fprintf(stderr, "hami-simkubelet: no command \"%s\"\n", argv[1]);
	return usage(stderr, HM_EXIT_USAGE);
}
