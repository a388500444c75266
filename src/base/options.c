#include "base/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/duration.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "core/num.h"

static bool parse_bool(const char *text, bool *out)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "true", true }, { "t", true }, { "1", true }, { "false", false }, { "f", false }, { "0", false }
	};

	for (size_t i = 0; i < HM_COUNT(words); i++) {
		if (strcasecmp(text, words[i].word) == 0) {
			*out = words[i].value;
			return true;
		}
	}
	return false;
}

/* No hexadecimal, no "inf", no spaces: what strtod takes beyond decimal numbers. */
static bool parse_f64(const char *text, double min, double max, double *out)
{
	char *end;
	double v;

	if (*text == '\0' || text[strspn(text, "0123456789.eE+-")] != '\0')
		return false;
	v = strtod(text, &end);
	if (*end != '\0' || !(v >= min && v <= max))
		return false;
	*out = v;
	return true;
}

static bool is_choice(const char *choices, struct piece word)
{
	struct cur c = cur_of(choices, strlen(choices) + 1);

	while (word.n > 0 && c.p < c.end) {
		size_t n = strcspn(c.p, "|");

		if (n == word.n && memcmp(c.p, word.p, n) == 0)
			return true;
		c.p += n + 1;
	}
	return false;
}

bool option_list_has(const struct option_list *l, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = l->text; *p != '\0'; p += strcspn(p, ","), p += *p == ',')
		if (strcspn(p, ",") == n && strncmp(p, word, n) == 0)
			return true;
	return false;
}

static int set_list(const struct option_spec *o, const char *where, const char *text, bool add, struct hm_err *e)
{
	struct option_list *l = o->value;
	struct option_list fresh;
	size_t n;

	if (o->choices != NULL && *text != '\0') {
		for (const char *p = text;; p++) {
			struct piece word = { p, strcspn(p, ",") };

			if (!is_choice(o->choices, word))
				return hm_err_set(e, HM_EINVAL, "%s: \"%.*s\" is none of %s", where, (int)word.n, p,
						  o->choices);
			p += word.n;
			if (*p == '\0')
				break;
		}
	}
	add = add && l->text[0] != '\0';
	n = hm_fmt(fresh.text, sizeof fresh.text, "%s%s%s", add ? l->text : "", add ? "," : "", text);
	if (n >= sizeof fresh.text)
		return hm_err_set(e, HM_EINVAL, "%s: longer than %zu characters", where, sizeof fresh.text - 1);
	*l = fresh;
	return 0;
}

static int set_text(const struct option_spec *o, const char *where, const char *text, struct hm_err *e)
{
	if (o->kind == OPTION_CHOICE && !is_choice(o->choices, (struct piece) { text, strlen(text) }))
		return hm_err_set(e, HM_EINVAL, "%s: \"%s\" is none of %s", where, text, o->choices);
	*(const char **)o->value = text;
	return 0;
}

static int set_duration(const struct option_spec *o, const char *where, const char *text, struct hm_err *e)
{
	hm_auto_str min = { 0 }, max = { 0 };
	uint64_t v;

	if (duration_parse(text, o->max, &v) && v >= o->min) {
		*(uint64_t *)o->value = v;
		return 0;
	}
	duration_add(&min, o->min);
	duration_add(&max, o->max);
	return hm_err_set(e, HM_EINVAL, "%s: \"%s\" is not a duration between %s and %s", where, text, str_text(&min),
			  str_text(&max));
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
	case OPTION_F64:
		if (!parse_f64(text, (double)o->min, (double)o->max, o->value))
			return hm_err_set(e, HM_EINVAL, "%s: \"%s\" is not a number between %llu and %llu", where, text,
					  (unsigned long long)o->min, (unsigned long long)o->max);
		return 0;
	case OPTION_MS: return set_duration(o, where, text, e);
	case OPTION_TEXT:
	case OPTION_CHOICE: return set_text(o, where, text, e);
	case OPTION_LIST: return set_list(o, where, text, false, e);
	}
	return hm_err_set(e, HM_EINTERNAL, "%s: unknown kind of option", where);
}

static const char *from_environment(const struct option_spec *o, const char **name)
{
	const char *const names[] = { o->env, o->env2 };

	for (size_t i = 0; i < HM_COUNT(names); i++) {
		const char *text = names[i] != NULL ? getenv(names[i]) : NULL;

		*name = names[i];
		if (text != NULL && *text != '\0')
			return text;
	}
	return NULL;
}

static int read_environment(const struct option_spec *specs, size_t count, struct hm_err *e)
{
	for (size_t i = 0; i < count; i++) {
		const char *name, *text = from_environment(&specs[i], &name);
		char where[96];
		int r;

		if (text == NULL)
			continue;
		hm_fmt(where, sizeof where, "environment %s", name);
		r = option_set(&specs[i], where, text, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct option_spec *find_flag(const struct option_spec *specs, size_t count, struct piece name)
{
	for (size_t i = 0; i < count; i++)
		if (piece_is(name, specs[i].name) || (specs[i].alias != NULL && piece_is(name, specs[i].alias)))
			return &specs[i];
	return NULL;
}

/* A list's first flag replaces what the environment said, the next ones add. */
static bool given_before(const struct option_spec *o, char **argv, int at)
{
	for (int i = 1; i < at; i++) {
		const char *word = argv[i] + strspn(argv[i], "-");
		struct piece name = { word, strcspn(word, "=") };

		if (argv[i][0] == '-' && find_flag(o, 1, name) != NULL)
			return true;
	}
	return false;
}

/* argv[*at] is a flag; moves *at to its last word. */
static int read_flag(const struct option_spec *specs, size_t count, int argc, char **argv, int *at, struct hm_err *e)
{
	const int first = *at;
	const char *word = argv[first] + 1 + (argv[first][1] == '-');
	struct piece name = { word, strcspn(word, "=") };
	const char *text = word[name.n] == '=' ? word + name.n + 1 : NULL;
	const struct option_spec *o;
	char where[96];

	if (text == NULL && (piece_is(name, "help") || piece_is(name, "h")))
		return OPTIONS_HELP;
	if (text == NULL && piece_is(name, "version"))
		return OPTIONS_VERSION;
	o = find_flag(specs, count, name);
	if (o == NULL)
		return hm_err_set(e, HM_EINVAL, "unknown option \"%s\"; see --help", argv[first]);
	if (text == NULL && o->kind == OPTION_BOOL)
		text = "true";
	else if (text == NULL && first + 1 < argc)
		text = argv[++*at];
	if (text == NULL)
		return hm_err_set(e, HM_EINVAL, "%s needs a value; see --help", argv[first]);
	hm_fmt(where, sizeof where, "--%.*s", (int)name.n, name.p);
	if (o->kind == OPTION_LIST)
		return set_list(o, where, text, given_before(o, argv, first), e);
	return option_set(o, where, text, e);
}

int options_parse(const struct option_spec *specs, size_t count, int argc, char **argv, int *first_operand,
		  struct hm_err *e)
{
	int at, r = read_environment(specs, count, e);

	if (r < 0)
		return r;
	for (at = 1; at < argc && argv[at][0] == '-' && argv[at][1] != '\0'; at++) {
		if (strcmp(argv[at], "--") == 0) {
			at++;
			break;
		}
		r = read_flag(specs, count, argc, argv, &at, e);
		if (r != OPTIONS_RUN)
			return r;
	}
	if (first_operand != NULL)
		*first_operand = at;
	return OPTIONS_RUN;
}

static const char *argument_of(const struct option_spec *o)
{
	if (o->argument != NULL)
		return o->argument;
	switch (o->kind) {
	case OPTION_BOOL: return "[=true|false]";
	case OPTION_U64:
	case OPTION_F64: return "N";
	case OPTION_MS: return "DURATION";
	case OPTION_CHOICE: return o->choices;
	case OPTION_LIST: return o->choices != NULL ? o->choices : "LIST";
	default: return "TEXT";
	}
}

static void print_default(const struct option_spec *o)
{
	const char *text = NULL;
	hm_auto_str duration = { 0 };

	switch (o->kind) {
	case OPTION_BOOL: text = *(bool *)o->value ? "true" : "false"; break;
	case OPTION_U64: printf(" (default %llu)", (unsigned long long)*(uint64_t *)o->value); return;
	case OPTION_F64: printf(" (default %g)", *(double *)o->value); return;
	case OPTION_MS:
		duration_add(&duration, *(uint64_t *)o->value);
		text = str_text(&duration);
		break;
	case OPTION_TEXT:
	case OPTION_CHOICE: text = *(const char **)o->value; break;
	case OPTION_LIST: text = ((const struct option_list *)o->value)->text; break;
	}
	if (text != NULL && *text != '\0')
		printf(" (default %s)", text);
}

void options_print_help(const char *usage, const struct option_spec *specs, size_t count)
{
	printf("%s\n\nOptions:\n", usage);
	for (size_t i = 0; i < count; i++) {
		const struct option_spec *o = &specs[i];

		printf("  --%s%s%s\n        %s", o->name, o->kind == OPTION_BOOL ? "" : " ", argument_of(o), o->help);
		if (o->alias != NULL)
			printf("; also --%s", o->alias);
		print_default(o);
		if (o->env != NULL)
			printf(" [%s%s%s]", o->env, o->env2 != NULL ? ", " : "", o->env2 != NULL ? o->env2 : "");
		putchar('\n');
	}
	printf("  --help\n        show this\n  --version\n        show the version\n");
}
