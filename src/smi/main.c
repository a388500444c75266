/* hami-smi: cards, slots, who holds them and what they use, for people and (as JSON) for scripts. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options.h"
#include "contract/exit_codes.h"
#include "contract/host.h"
#include "core/fmt.h"
#include "io/loop.h"
#include "smi/report.h"

static const char usage[] =
	"usage: hami-smi [-L | -q] [-j] [options]\n"
	"\n"
	"Shows the node's cards, how they are cut into slots, which container holds which vGPU, and what it uses.\n"
	"  -L   the cards, one a line (as --list-gpus)\n"
	"  -q   everything, one value a line (as --query)\n"
	"  -j   everything, as JSON (as --json; docs/hami-smi.md has the keys)\n"
	"Exit codes: 0 all shown, 1 failed, 2 bad usage, 3 no driver, 4 no agent, 5 no permission; what is there is "
	"shown.";

struct settings {
	bool list, query, json;
	const char *state_dir, *nvml_library;
	uint64_t timeout_s;
};

/* A missing source: what we say, what to do about it, and the exit code. By enum hamivgpu_code. */
struct advice {
	const char *what, *todo;
	int exit_code;
};

static const struct advice driver_advice[] = {
	[HAMIVGPU_NOT_FOUND] = { "no driver",
				 "install NVIDIA's driver, or say where its libnvidia-ml.so.1 is with --nvml-library",
				 HM_EXIT_NO_DRIVER },
	[HAMIVGPU_NOT_READY] = { "the driver is not ready", "load the kernel module (modprobe nvidia), see dmesg",
				 HM_EXIT_NO_DRIVER },
	[HAMIVGPU_UNSUPPORTED] = { "no driver", "name NVIDIA's libnvidia-ml.so.1 with --nvml-library",
				   HM_EXIT_NO_DRIVER },
	[HAMIVGPU_NO_PERMISSION] = { "no permission to use the driver",
				     "run as root, or as a user that may open /dev/nvidiactl", HM_EXIT_NO_PERMISSION },
	[HAMIVGPU_FAILED] = { "the driver does not answer", "see dmesg for Xid errors", HM_EXIT_FAILED },
};

static const struct advice agent_advice[] = {
	[HAMIVGPU_NOT_FOUND] = { "no agent",
				 "start hami-device-plugin on this node, or name its folder with --state-dir",
				 HM_EXIT_NO_AGENT },
	[HAMIVGPU_UNSUPPORTED] = { "the agent is of another release", "use the hami-smi that came with it",
				   HM_EXIT_FAILED },
	[HAMIVGPU_NO_PERMISSION] = { "no permission to read the agent's folder", "run as root", HM_EXIT_NO_PERMISSION },
	[HAMIVGPU_FAILED] = { "the agent's folder cannot be read", "restart hami-device-plugin, which writes it anew",
			      HM_EXIT_FAILED },
};

/* Says on stderr what is missing; the exit code. */
static int advise(const struct hamivgpu_error *state, const struct advice *table, size_t count)
{
	const struct advice *a = &table[HAMIVGPU_FAILED];
	hm_auto_str why = { 0 };

	if (state->code == HAMIVGPU_OK)
		return HM_EXIT_OK;
	if ((size_t)state->code < count && table[state->code].what != NULL)
		a = &table[state->code];
	str_add_escaped(&why, state->message, strlen(state->message));
	fprintf(stderr, "hami-smi: %s: %s\n          %s\n", a->what, str_text(&why), a->todo);
	return a->exit_code;
}

/* NVML hangs where the driver does. The handler may only write what was made before. */
static char hang_message[128];

static void give_up(int signal_number)
{
	(void)signal_number;
	if (write(STDERR_FILENO, hang_message, strlen(hang_message)) < 0)
		_exit(HM_EXIT_FAILED);
	_exit(HM_EXIT_FAILED);
}

static void set_timeout(uint64_t seconds)
{
	struct sigaction action = { .sa_handler = give_up };

	hm_fmt(hang_message, sizeof hang_message,
	       "hami-smi: the driver does not answer within %llu s (--timeout); see dmesg for Xid errors\n",
	       (unsigned long long)seconds);
	sigaction(SIGALRM, &action, NULL);
	alarm((unsigned)seconds);
}

static int make_report(const struct settings *s, const struct hamivgpu *h, struct str *out, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	int r = 0;

	if (s->list && !s->json) {
		report_list(h, out);
	} else if (s->json || s->query) {
		r = report_json(h, clock_wall_ms(), &tree, e);
		if (r == 0 && s->json)
			r = report_json_text(tree, out, e);
		else if (r == 0)
			report_query(tree, out);
	} else if (hamivgpu_driver_state(h)->code == HAMIVGPU_OK || hamivgpu_agent_state(h)->code == HAMIVGPU_OK) {
		report_table(h, HM_VERSION, out);
	}
	if (r == 0 && str_failed(out))
		return hm_err_set(e, HM_ENOMEM, "report");
	return r;
}

static int show(const struct settings *s, const struct hamivgpu *h)
{
	hm_auto_str out = { 0 };
	struct hm_err e;
	int driver, agent;

	if (make_report(s, h, &out, &e) < 0) {
		fprintf(stderr, "hami-smi: %s\n", e.msg);
		return HM_EXIT_FAILED;
	}
	if (fwrite(str_text(&out), 1, out.n, stdout) != out.n || fflush(stdout) != 0) {
		fprintf(stderr, "hami-smi: cannot write: %m\n");
		return HM_EXIT_FAILED;
	}
	driver = advise(hamivgpu_driver_state(h), driver_advice, HM_COUNT(driver_advice));
	if (s->list) /* the cards are the driver's */
		return driver;
	agent = advise(hamivgpu_agent_state(h), agent_advice, HM_COUNT(agent_advice));
	return driver != HM_EXIT_OK ? driver : agent;
}

/* nvidia-smi's short options are the long ones of ours. */
static char *long_option_of(char *word)
{
	static const struct {
		const char *brief;
		char *full;
	} names[] = { { "-L", "--list-gpus" },
		      { "-q", "--query" },
		      { "-j", "--json" },
		      { "-h", "--help" },
		      { "-V", "--version" } };

	for (size_t i = 0; i < HM_COUNT(names); i++) {
		if (strcmp(word, names[i].brief) == 0)
			return names[i].full;
	}
	return word;
}

static int run(const struct settings *s)
{
	const struct hamivgpu_options options = { .size = sizeof options,
						  .state_dir = s->state_dir,
						  .nvml_library = s->nvml_library };
	struct hamivgpu *h = NULL;
	struct hamivgpu_error e;
	int code;

	if (s->timeout_s > 0)
		set_timeout(s->timeout_s);
	if (hamivgpu_open(&options, &h, &e) < 0) {
		fprintf(stderr, "hami-smi: %s\n", e.message);
		return HM_EXIT_FAILED;
	}
	code = show(s, h);
	hamivgpu_close(h);
	return code;
}

int main(int argc, char **argv)
{
	struct settings s = { .state_dir = HM_STATE_DIR, .timeout_s = 30 };
	const struct option_spec specs[] = {
		{ "list-gpus", NULL, OPTION_BOOL, &s.list, 0, 0, NULL, NULL, "list the cards, one a line" },
		{ "query", NULL, OPTION_BOOL, &s.query, 0, 0, NULL, NULL, "show everything, one value a line" },
		{ "json", NULL, OPTION_BOOL, &s.json, 0, 0, NULL, NULL, "show everything as JSON" },
		{ "state-dir", NULL, OPTION_TEXT, &s.state_dir, 0, 0, NULL, "PATH", "the agent's state folder" },
		{ "nvml-library", NULL, OPTION_TEXT, &s.nvml_library, 0, 0, NULL, "PATH",
		  "NVML instead of the loader's libnvidia-ml.so.1" },
		{ "timeout", NULL, OPTION_U64, &s.timeout_s, 0, 3600, NULL, "SECONDS",
		  "give up when the driver hangs this long; 0: never" },
	};
	int first = argc, result;
	struct hm_err e;

	for (int i = 1; i < argc; i++)
		argv[i] = long_option_of(argv[i]);
	result = options_parse(specs, HM_COUNT(specs), argc, argv, &first, &e);
	if (result == OPTIONS_HELP) {
		options_print_help(usage, specs, HM_COUNT(specs));
		return HM_EXIT_OK;
	}
	if (result == OPTIONS_VERSION) {
		puts("hami-smi " HM_VERSION);
		return HM_EXIT_OK;
	}
	if (result >= 0 && first < argc)
		result = hm_err_set(&e, HM_EINVAL, "\"%s\" is no option; see --help", argv[first]);
	if (result < 0) {
		fprintf(stderr, "hami-smi: %s\n", e.msg);
		return HM_EXIT_USAGE;
	}
	return run(&s);
}
