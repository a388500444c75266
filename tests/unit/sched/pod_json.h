/* For tests that read objects of the API: ' for " so that they can be read here. */
#ifndef HM_TESTS_SCHED_POD_JSON_H
#define HM_TESTS_SCHED_POD_JSON_H

#include <stdlib.h>
#include <string.h>

#include "harness/unit.h"
#include "io/json.h"

static inline struct cJSON *json_of(const char *text)
{
	char *json = strdup(text);
	struct cJSON *tree = NULL;
	struct hm_err e = { 0 };

	assert_non_null(json);
	for (char *p = json; *p != '\0'; p++)
		*p = *p == '\'' ? '"' : *p;
	if (json_parse(json, strlen(json), &tree, &e) < 0)
		fail_msg("%s: %s", e.msg, json);
	free(json);
	return tree;
}

#endif
