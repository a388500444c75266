#include "sched/simulate/command.h"

#include <stdio.h>
#include <string.h>

#include "contract/exit_codes.h"
#include "core/fmt.h"
#include "io/file.h"

enum { MAX_FILE_BYTES = 1 << 30 };

int command_run(const char *name, const char *usage, const struct option_spec *table, size_t count, int argc,
		char **argv, int (*work)(void *settings, struct hm_err *e), void *settings)
{
	struct hm_err e;
	int first, rc = options_parse(table, count, argc, argv, &first, &e);

	if (rc == OPTIONS_HELP) {
		options_print_help(usage, table, count);
		return HM_EXIT_OK;
	}
	if (rc >= 0 && first < argc)
		rc = hm_err_set(&e, HM_EINVAL, "what is \"%s\"? --help lists the options", argv[first]);
	if (rc >= 0)
		rc = work(settings, &e);
	if (rc >= 0)
		return HM_EXIT_OK;
	fprintf(stderr, "hami-scheduler %s: %s\n", name, e.msg);
	return rc == -HM_ENOMEM || rc == -HM_EIO ? HM_EXIT_FAILED : HM_EXIT_USAGE;
}

int command_read_file(const char *option, const char *path, struct str *out, struct hm_err *e)
{
	if (path == NULL)
		return hm_err_set(e, HM_EINVAL, "--%s names a file; --help says what it may hold", option);
	return file_read(path, MAX_FILE_BYTES, out, e) == 0 ? 0 : hm_err_wrap(e, "--%s", option);
}

void command_add_percent(struct str *out, int64_t part, int64_t whole, int width)
{
	int64_t hundredths = whole == 0 ? 0 : (part * 10000 + whole / 2) / whole;
	char text[32];

	hm_fmt(text, sizeof text, "%lld.%02lld", (long long)(hundredths / 100), (long long)(hundredths % 100));
	str_addf(out, "  %*s", width, text);
}

void command_print_notes(const char *name, const struct snapshot *s)
{
	const char *end;

	for (const char *line = str_text(&s->notes); (end = strchr(line, '\n')) != NULL; line = end + 1)
		fprintf(stderr, "hami-scheduler %s: %.*s\n", name, (int)(end - line), line);
}

void policy_fini(struct policy *p)
{
	placer_free(p->placer);
	fgd_free(p->fgd);
	pod_mix_fini(&p->mix);
	*p = (struct policy) { 0 };
}

int policy_start(struct policy *p, const char *node_policy, const char *card_policy, const struct fgd_weights *weights,
		 struct hm_err *e)
{
	p->placer = placer_new(node_policy, card_policy);
	p->fgd = fgd_new(&p->mix, weights);
	if (p->placer == NULL || p->fgd == NULL)
		return hm_err_set(e, HM_ENOMEM, "placement: no memory");
	placer_set_policy(p->placer, fgd_order(p->fgd));
	return 0;
}
