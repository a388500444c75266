#include "base/options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/cleanup.h"
#include "core/fmt.h"
#include "core/num.h"

static bool parse_bool(const char *text, bool *out)
{
	if (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0)
		*out = true;
	else if (strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0)
		*out = false;
	else
		return false;
	return true;
}

static bool is_choice(const char *choices, const char *text)
{
	size_t n = strlen(text);

	if (strchr(text, '|') != NULL)
		return false;
	for (const char *at = choices; at != NULL; at = strchr(at, '|')) {
		at += *at == '|';
		if (strncmp(at, text, n) == 0 && (at[n] == '|' || at[n] == '\0') && n > 0)
			return true;
	}
	return false;
}

int option_set(const struct option_spec *o, const char *where, const char *text, struct hm_err *e)
{
	uint64_t v;

	switch (o->kind) {
	case OPTION_BOOL:
		if (!parse_bool(text, o->value))
			return hm_err_set(e, HM_EINVAL, "%s: \"%s\" is neither true nor false", where, text);
		return 0;
	case OPTION_U64:
		if (!num_u64_str(text, o->max, &v) || v < o->min)
			return hm_err_set(e, HM_EINVAL, "%s: \"%s\" is not a number between %llu and %llu", where, text,
					  (unsigned long long)o->min, (unsigned long long)o->max);
		*(uint64_t *)o->value = v;
		return 0;
	case OPTION_CHOICE:
		if (!is_choice(o->choices, text))
			return hm_err_set(e, HM_EINVAL, "%s: \"%s\" is none of %s", where, text, o->choices);
		*(const char **)o->value = text;
		return 0;
	case OPTION_TEXT: *(const char **)o->value = text; return 0;
	}
	return hm_err_set(e, HM_EINTERNAL, "%s: unknown kind of option", where);
}

static int read_environment(const struct option_spec *specs, size_t count, struct hm_err *e)
{
	for (size_t i = 0; i < count; i++) {
		const char *text = specs[i].env != NULL ? getenv(specs[i].env) : NULL;
		char where[96];
		int r;

		if (text == NULL || *text == '\0')
			continue;
		hm_fmt(where, sizeof where, "environment %s", specs[i].env);
		r = option_set(&specs[i], where, text, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int options_parse(const struct option_spec *specs, size_t count, int argc, char **argv, int *first_operand,
		  struct hm_err *e)
{
	hm_auto_heap struct option *longs = calloc(count + 3, sizeof *longs);
	int r, at, index;

	if (longs == NULL)
		return hm_err_set(e, HM_ENOMEM, "options");
	r = read_environment(specs, count, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++)
		longs[i] = (struct option) { specs[i].name,
					     specs[i].kind == OPTION_BOOL ? optional_argument : required_argument, NULL,
					     'o' };
	longs[count] = (struct option) { "help", no_argument, NULL, 'h' };
	longs[count + 1] = (struct option) { "version", no_argument, NULL, 'V' };
	optind = 0;
	opterr = 0;
	for (;;) {
		char where[96];

		at = optind == 0 ? 1 : optind;
		r = getopt_long(argc, argv, "+:h", longs, &index);
		if (r == -1)
			break;
		if (r == 'h')
			return OPTIONS_HELP;
		if (r == 'V')
			return OPTIONS_VERSION;
		if (r == ':')
			return hm_err_set(e, HM_EINVAL, "%s needs a value; see --help", argv[at]);
		if (r != 'o')
			return hm_err_set(e, HM_EINVAL, "unknown option \"%s\"; see --help", argv[at]);
		hm_fmt(where, sizeof where, "--%s", specs[index].name);
		r = option_set(&specs[index], where, optarg != NULL ? optarg : "true", e);
		if (r < 0)
			return r;
	}
	if (first_operand != NULL)
		*first_operand = optind;
	return OPTIONS_RUN;
}

static const char *argument_of(const struct option_spec *o)
{
	if (o->argument != NULL)
		return o->argument;
	switch (o->kind) {
	case OPTION_BOOL: return "[=true|false]";
	case OPTION_U64: return "N";
	case OPTION_CHOICE: return o->choices;
	default: return "TEXT";
	}
}

static void print_default(const struct option_spec *o)
{
	if (o->kind == OPTION_BOOL)
		printf(" (default %s)", *(bool *)o->value ? "true" : "false");
	else if (o->kind == OPTION_U64)
		printf(" (default %llu)", (unsigned long long)*(uint64_t *)o->value);
	else if (*(const char **)o->value != NULL && **(const char **)o->value != '\0')
		printf(" (default %s)", *(const char **)o->value);
}

void options_print_help(const char *usage, const struct option_spec *specs, size_t count)
{
	printf("%s\n\nOptions:\n", usage);
	for (size_t i = 0; i < count; i++) {
		const struct option_spec *o = &specs[i];

		printf("  --%s%s%s\n        %s", o->name, o->kind == OPTION_BOOL ? "" : " ", argument_of(o), o->help);
		print_default(o);
		if (o->env != NULL)
			printf(" [%s]", o->env);
		putchar('\n');
	}
	printf("  --help\n        show this\n  --version\n        show the version\n");
}
