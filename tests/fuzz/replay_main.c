/* Runs a fuzz target over the files of its corpus, in order of their names, so that a corpus is an ordinary test. Each
 * name is printed before its input is tried: the last one of a crash is the culprit. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/fuzz.h"

static int replay(const char *folder, const char *name)
{
	char path[4096];
	uint8_t *data;
	size_t n;
	FILE *f;

	if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path || (f = fopen(path, "rb")) == NULL)
		return -1;
	fprintf(stderr, "replay: %s\n", name);
	data = malloc(16 << 20);
	n = data != NULL ? fread(data, 1, 16 << 20, f) : 0;
	fclose(f);
	/* Memory of just the input's size, so that a sanitizer sees one byte too many. */
	if (data != NULL && n > 0)
		data = realloc(data, n);
	if (data != NULL)
		LLVMFuzzerTestOneInput(data, n);
	free(data);
	return data != NULL ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct dirent **names;
	int count = argc == 2 ? scandir(argv[1], &names, NULL, alphasort) : -1;
	int done = 0, bad = 0;

	for (int i = 0; i < count; i++) {
		if (names[i]->d_name[0] != '.') {
			bad += replay(argv[1], names[i]->d_name) < 0;
			done++;
		}
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	if (done == 0)
		fprintf(stderr, "%s: no inputs\n", argc == 2 ? argv[1] : "replay");
	return bad > 0 || done == 0;
}
