/* Command-line options and environment as one table: name, variable, kind, default text, help. Precedence: flag over
 * environment over default. getopt_long does the parsing; the table also writes --help. */
#ifndef HM_BASE_OPTIONS_H
#define HM_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

enum option_kind {
	OPTION_BOOL,   /* bool *: --name, --name=true|false|1|0 */
	OPTION_U64,    /* uint64_t *: between min and max */
	OPTION_TEXT,   /* const char **: borrowed from argv or the environment */
	OPTION_CHOICE, /* const char **: one of `choices`, "a|b|c" */
};

struct option_spec {
	const char *name; /* long option without "--" */
	const char *env;  /* environment variable, or NULL */
	enum option_kind kind;
	void *value;          /* holds the default before options_parse */
	uint64_t min, max;    /* OPTION_U64 */
	const char *choices;  /* OPTION_CHOICE */
	const char *argument; /* what --help calls the value: "PATH"; NULL: by kind */
	const char *help;
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
