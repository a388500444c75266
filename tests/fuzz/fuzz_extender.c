/* What kube-scheduler sends, and JSON in place at all: a tree of the same text holds what was read from it. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/check.h"
#include "fuzz/fuzz.h"
#include "io/json_scan.h"
#include "sched/extender/answer.h"
#include "sched/extender/args.h"

static char *copy_of(const uint8_t *data, size_t n)
{
	char *text = malloc(n > 0 ? n : 1);

	CHECK(text != NULL);
	if (n > 0)
		memcpy(text, data, n);
	return text;
}

/* The last member of that name, in any case, as Go takes it. */
static const struct cJSON *last_member(const struct cJSON *object, const char *name)
{
	const struct cJSON *it, *found = NULL;

	cJSON_ArrayForEach(it, object) if (strcasecmp(it->string, name) == 0) found = it;
	return found;
}

/* cJSON is laxer in numbers and stricter in halves of surrogate pairs, so it may refuse what we take. */
static void compare_names(const struct extender_args *a, const struct cJSON *tree)
{
	const struct cJSON *names = last_member(tree, "NodeNames"), *item;
	size_t i = 0;

	if (names == NULL || cJSON_IsNull(names)) {
		CHECK(!a->has_names && a->name_count == 0);
		return;
	}
	CHECK(a->has_names && cJSON_IsArray(names));
	CHECK((size_t)cJSON_GetArraySize(names) == a->name_count);
	cJSON_ArrayForEach(item, names)
	{
		/* cJSON ends a text at an escaped NUL, where we put another character. */
		if (cJSON_IsString(item) && strstr(a->names[i], "\xef\xbf\xbd") == NULL)
			CHECK(strcmp(item->valuestring, a->names[i]) == 0);
		i++;
	}
}

static void read_args(const uint8_t *data, size_t n)
{
	char *text = copy_of(data, n);
	struct extender_args a;
	struct hm_err e;
	int r = extender_args_read(text, n, &a, &e);

	CHECK((r == 0) == (e.code == HM_OK));
	CHECK(r == 0 || e.msg[0] != '\0');
	if (r == 0) {
		struct cJSON *tree = cJSON_ParseWithLength((const char *)data, n);

		CHECK(cJSON_IsObject(a.pod));
		if (tree != NULL)
			compare_names(&a, tree);
		cJSON_Delete(tree);
		for (size_t i = 0; i < a.node_count; i++)
			CHECK(a.nodes[i].n >= 2 && a.nodes[i].p[0] == '{' && a.nodes[i].p[a.nodes[i].n - 1] == '}');
	}
	extender_args_fini(&a);
	free(text);
}

static void read_binding(const uint8_t *data, size_t n)
{
	char *text = copy_of(data, n);
	struct extender_binding b;
	hm_auto_str out = { 0 };
	struct hm_err e;

	if (extender_binding_read(text, n, &b, &e) == 0) {
		struct cJSON *tree;

		/* Whatever a name holds, the answer is JSON. */
		extender_add_bound(&out, b.pod_name);
		CHECK(!str_failed(&out));
		tree = cJSON_Parse(str_text(&out));
		CHECK(tree != NULL);
		cJSON_Delete(tree);
	}
	free(text);
}

static void skip(const uint8_t *data, size_t n)
{
	char *text = copy_of(data, n);
	struct json_scan s = json_scan_of(text, n);
	struct piece value = json_scan_skip(&s);
	struct hm_err e;

	if (json_scan_finish(&s, &e) == 0)
		CHECK(value.n > 0 && value.p >= text && value.p + value.n <= text + n);
	CHECK(n == 0 || memcmp(text, data, n) == 0);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	skip(data, n);
	read_args(data, n);
	read_binding(data, n);
	return 0;
}
