#include "sched/options/ignored.h"

#include <stdbool.h>
#include <string.h>

#include "core/cursor.h"

static const struct ignored_flag {
	const char *name;
	bool takes_value; /* as "--name value", too; the others only as "--name=value" */
	bool prefix;      /* any name that begins so: a vendor's */
} flags[] = {
	{ "add_dir_header" },
	{ "alsologtostderr" },
	{ "legacy_stderr_threshold_behavior" },
	{ "log_backtrace_at", .takes_value = true },
	{ "log_dir", .takes_value = true },
	{ "log_file", .takes_value = true },
	{ "log_file_max_size", .takes_value = true },
	{ "logtostderr" },
	{ "one_output" },
	{ "skip_headers" },
	{ "skip_log_headers" },
	{ "stderrthreshold", .takes_value = true },
	{ "vmodule", .takes_value = true },
	{ "debug" },
	{ "profiling" },
	{ "enable-ascend" },
	{ "enable-iluvatar" },
	{ "sgpu-topology-aware" },
	{ "amd-", true, true },
	{ "ascend-", true, true },
	{ "aws-", true, true },
	{ "biren-", true, true },
	{ "cambricon-", true, true },
	{ "dcu-", true, true },
	{ "enflame-", true, true },
	{ "gcu-", true, true },
	{ "hygon-", true, true },
	{ "iluvatar-", true, true },
	{ "kunlun-", true, true },
	{ "metax-", true, true },
	{ "mlu-", true, true },
	{ "mthreads-", true, true },
	{ "vastai-", true, true },
	{ "xpu-", true, true },
};

static const struct ignored_flag *find(struct piece name)
{
	for (size_t i = 0; i < HM_COUNT(flags); i++)
		if (flags[i].prefix ? piece_starts(name, flags[i].name) : piece_is(name, flags[i].name))
			return &flags[i];
	return NULL;
}

int ignored_flags_drop(int argc, char **argv, char **out, struct str *ignored)
{
	int kept = 0;

	for (int i = 0; i < argc; i++) {
		const char *word = argv[i] + strspn(argv[i], "-");
		struct piece name = { word, strcspn(word, "=") };
		const struct ignored_flag *f = argv[i][0] == '-' && word - argv[i] <= 2 ? find(name) : NULL;

		if (f == NULL) {
			out[kept++] = argv[i];
			continue;
		}
		str_addf(ignored, "%s--%.*s", ignored->n > 0 ? ", " : "", (int)name.n, name.p);
		if (word[name.n] == '\0' && f->takes_value && i + 1 < argc && argv[i + 1][0] != '-')
			i++;
	}
	out[kept] = NULL;
	return kept;
}
