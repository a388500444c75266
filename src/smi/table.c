#include "smi/table.h"

#include <string.h>

#include "core/check.h"

void table_rule(struct str *out, const struct column *columns, size_t count, char line)
{
	for (size_t i = 0; i < count; i++) {
		str_addc(out, '+');
		for (size_t j = 0; j < columns[i].width + 2; j++)
			str_addc(out, line);
	}
	str_add(out, "+\n");
}

static void add_cell(struct str *out, const char *text, size_t n, size_t width, bool right)
{
	str_add(out, "| ");
	for (size_t i = n; right && i < width; i++)
		str_addc(out, ' ');
	str_add_n(out, text, n);
	for (size_t i = n; !right && i < width; i++)
		str_addc(out, ' ');
	str_addc(out, ' ');
}

void table_row(struct str *out, const struct column *columns, size_t count, const char *const *cells)
{
	const char *rest[TABLE_MAX_COLUMNS] = { 0 };
	bool more = true;

	CHECK(count <= TABLE_MAX_COLUMNS);
	for (size_t i = 0; i < count; i++)
		rest[i] = cells[i] == NULL ? "" : cells[i];
	while (more) {
		more = false;
		for (size_t i = 0; i < count; i++) {
			size_t n = strnlen(rest[i], columns[i].width);

			add_cell(out, rest[i], n, columns[i].width, columns[i].right);
			rest[i] += n;
			more = more || *rest[i] != '\0';
		}
		str_add(out, "|\n");
	}
}

void table_titles(struct str *out, const struct column *columns, size_t count)
{
	const char *titles[TABLE_MAX_COLUMNS] = { 0 };

	CHECK(count <= TABLE_MAX_COLUMNS);
	for (size_t i = 0; i < count; i++)
		titles[i] = columns[i].title;
	table_rule(out, columns, count, '-');
	table_row(out, columns, count, titles);
	table_rule(out, columns, count, '=');
}

static struct column whole_width(const struct column *columns, size_t count)
{
	struct column one = { NULL, 0, false };

	for (size_t i = 0; i < count; i++)
		one.width += columns[i].width + 3;
	one.width -= 3;
	return one;
}

void table_line(struct str *out, const struct column *columns, size_t count, const char *text)
{
	struct column one = whole_width(columns, count);

	table_row(out, &one, 1, &text);
}

void table_line_rule(struct str *out, const struct column *columns, size_t count)
{
	struct column one = whole_width(columns, count);

	table_rule(out, &one, 1, '-');
}
