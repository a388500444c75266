/* Tables in plain text, in nvidia-smi's manner. Cells are ASCII (escaped by the caller); what does not fit its column
 * goes on in the next line. */
#ifndef HM_SMI_TABLE_H
#define HM_SMI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct column {
	const char *title;
	size_t width; /* of the text; two blanks and a bar come to it */
	bool right;
};

enum { TABLE_MAX_COLUMNS = 8 };

/* "+-----+---+", of any character. */
void table_rule(struct str *out, const struct column *columns, size_t count, char line);
void table_titles(struct str *out, const struct column *columns, size_t count);
/* NULL is an empty cell. */
void table_row(struct str *out, const struct column *columns, size_t count, const char *const *cells);

/* One cell over the whole width of a table. */
void table_line(struct str *out, const struct column *columns, size_t count, const char *text);
void table_line_rule(struct str *out, const struct column *columns, size_t count);

#endif
