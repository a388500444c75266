/* Whatever is read as JSON can be written and read back to the same tree; every typed read stays inside it. */
#include "io/json.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"

static void check(bool good)
{
	if (!good)
		abort();
}

/* All kinds of reads of one value: at most one may succeed. */
static void read_as_all(const struct json_at *at)
{
	struct json_at inside;
	const char *text;
	struct hm_err e;
	char small[8];
	uint64_t v;
	bool yes;
	int good;

	if (cJSON_IsNull(at->node))
		return;
	good = json_text(at, NULL, JSON_REQUIRED, &text, &e) == 0;
	good += json_u64(at, NULL, JSON_REQUIRED, 0, UINT64_MAX, &v, &e) == 0;
	good += json_bool(at, NULL, JSON_REQUIRED, &yes, &e) == 0;
	good += json_object(at, NULL, JSON_REQUIRED, &inside, &e) == 0;
	good += json_array(at, NULL, JSON_REQUIRED, &inside, &e) == 0;
	check(good <= 1);
	if (json_copy(at, NULL, JSON_REQUIRED, small, sizeof small, &e) == 0)
		check(strlen(small) < sizeof small);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(cJSON) *tree = NULL, *again = NULL, *emptied = NULL;
	struct hm_err e = { 0 };
	struct json_at root, list;
	char *text;

	if (json_parse((const char *)data, n, &tree, &e) < 0) {
		check(tree == NULL && e.code != 0 && e.msg[0] != '\0');
		return 0;
	}
	root = json_root(tree);
	read_as_all(&root);
	if (cJSON_IsArray(tree) && json_array(&root, NULL, JSON_REQUIRED, &list, &e) == 0)
		for (size_t i = 0; i < json_count(&list) && i < 100; i++) {
			struct json_at item = json_item(&list, i);

			read_as_all(&item);
		}
	text = cJSON_PrintUnformatted(tree);
	check(text != NULL);
	check(json_parse(text, strlen(text), &again, &e) == 0);
	json_empty_arrays(text, strlen(text), "a");
	check(json_parse(text, strlen(text), &emptied, &e) == 0);
	free(text);
	return 0;
}
