/* Whatever is read as YAML can be written as JSON, and that reads back, as YAML too, to the same tree. */
#include "io/yaml.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

static void check(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(cJSON) *tree = NULL, *as_json = NULL;
	struct hm_err e = { 0 };
	char *text;

	if (yaml_parse((const char *)data, n, &tree, &e) < 0) {
		check(tree == NULL && e.code != 0 && e.msg[0] != '\0');
		return 0;
	}
	text = cJSON_PrintUnformatted(tree);
	check(text != NULL);
	check(json_parse(text, strlen(text), &as_json, &e) == 0);
	check(cJSON_Compare(tree, as_json, true));
	free(text);
	return 0;
}
