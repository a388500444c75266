/* JSON in tests, with ' for " so that it can be read there. */
#ifndef HM_TESTS_HARNESS_JSON_OF_H
#define HM_TESTS_HARNESS_JSON_OF_H

#include <stdlib.h>
#include <string.h>

#include "harness/unit.h"
#include "io/json.h"

/* As it is on the wire; free it. */
static inline char *json_text_of(const char *text)
{
	char *json = strdup(text);

	assert_non_null(json);
	for (char *p = json; *p != '\0'; p++)
		*p = *p == '\'' ? '"' : *p;
	return json;
}

/* Fails the test where it is no JSON. */
static inline struct cJSON *json_of(const char *text)
{
	char *json = json_text_of(text);
	struct cJSON *tree = NULL;
	struct hm_err e = { 0 };

	if (json_parse(json, strlen(json), &tree, &e) < 0)
		fail_msg("%s: %s", e.msg, json);
	free(json);
	return tree;
}

#endif
