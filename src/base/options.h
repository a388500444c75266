/* Command-line options and environment as one table: name, variable, kind, default text, help. Precedence: flag over
 * environment over default. A flag is written --name=value, --name value, or with one dash, as Go's programs take it;
 * the table also writes --help. */
#ifndef HM_BASE_OPTIONS_H
#define HM_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum option_kind {
	OPTION_BOOL,   /* bool *: --name, --name=true|false|t|f|1|0, in any case */
	OPTION_U64,    /* uint64_t *: between min and max */
	OPTION_F64,    /* double *: decimal, between min and max */
	OPTION_MS,     /* uint64_t *, milliseconds: a duration as Go's programs take it ("5m"), between min and max */
	OPTION_TEXT,   /* const char **: borrowed from argv or the environment */
	OPTION_CHOICE, /* const char **: one of `choices`, "a|b|c" */
	OPTION_LIST,   /* struct option_list *: words with commas between, each of `choices` where there are any; a flag
			  given again adds to it */
};

enum { OPTION_LIST_BYTES = 128 };

/* "a,b,c", "" for none. */
struct option_list {
	char text[OPTION_LIST_BYTES];
};
bool option_list_has(const struct option_list *l, const char *word);

struct option_spec {
	const char *name; /* long option without "--" */
	const char *env;  /* environment variable, or NULL */
	enum option_kind kind;
	void *value;          /* holds the default before options_parse */
	uint64_t min, max;    /* OPTION_U64, OPTION_F64, OPTION_MS */
	const char *choices;  /* OPTION_CHOICE, OPTION_LIST */
	const char *argument; /* what --help calls the value: "PATH"; NULL: by kind */
	const char *help;
	const char *alias; /* a second name, or NULL */
	const char *env2;  /* a second variable, read where the first is absent or empty; or NULL */
};

enum options_result { OPTIONS_RUN, OPTIONS_HELP, OPTIONS_VERSION };

/* Reads the environment, then argv. Returns an options_result (for HELP and VERSION the caller prints and exits 0) or a
 * negative code; the message names the flag or variable, the value and what is accepted. Words that are no options are
 * left: *first_operand is the index of the first. */
int options_parse(const struct option_spec *specs, size_t count, int argc, char **argv, int *first_operand,
		  struct hm_err *e) HM_MUST_USE;

/* Sets one option from text, for a third source (a configuration file). `where` names the source in the message:
 * "--name", "environment NAME". OPTION_TEXT and OPTION_CHOICE borrow the text. */
int option_set(const struct option_spec *o, const char *where, const char *text, struct hm_err *e) HM_MUST_USE;

/* Prints usage, one option a line, to stdout. */
void options_print_help(const char *usage, const struct option_spec *specs, size_t count);

#endif
