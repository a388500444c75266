#include "unit/hami/golden.h"

#include <stdlib.h>
#include <string.h>

#include "harness/unit.h"
#include "io/file.h"

size_t golden_each(const char *kind, void (*check)(const char *text))
{
	const char *path = getenv("HM_GOLDEN_TEXTS");
	hm_auto_str file = { 0 };
	struct hm_err e;
	size_t count = 0;
	char *rest;

	if (file_read(path == NULL ? HM_GOLDEN "texts.tsv" : path, 16 << 20, &file, &e) < 0)
		fail_msg("%s", e.msg);
	rest = file.p;
	for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
		const char *name = strsep(&line, "\t");

		if (line == NULL || strcmp(name, kind) != 0)
			continue;
		check(line);
		count++;
	}
	return count;
}
