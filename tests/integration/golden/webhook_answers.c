/* Answers admission reviews as hami-scheduler does. One JSON a line: a configuration
 *
 *     {"nvidia": {...}, "scheduler": "...", "force": true, "quotas": {"<namespace>": {"memory": 1, "cores": 1}},
 *      "held": {"<namespace>": {"memory": 1, "cores": 1}}}
 *
 * which holds from there on, or a request {"content_type": "...", "body": "..."}, whose answer is printed as a line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "io/json.h"
#include "model/placement/quota.h"
#include "sched/webhook/webhook.h"

struct answerer {
	struct cJSON *config; /* owned */
	struct device_config *device;
	struct quotas *quotas;
	struct quota_space *spaces[16];
	size_t space_count;
};

static bool quota_says(void *arg, const char *name_space, const struct card_ask *asks, size_t count, char *why,
		       size_t why_bytes)
{
	struct answerer *a = arg;

	(void)why, (void)why_bytes;
	return quota_fits(quotas_room(a->quotas, name_space), quota_of_asks(asks, count, 0));
}

static int64_t amount(const struct cJSON *of, const char *key, int64_t absent)
{
	const struct cJSON *v = cJSON_GetObjectItemCaseSensitive(of, key);

	return cJSON_IsNumber(v) ? (int64_t)v->valuedouble : absent;
}

static void close_config(struct answerer *a)
{
	for (size_t i = 0; i < a->space_count; i++) {
		struct quota_amount held = quota_space_held(a->spaces[i]);

		quota_space_add(a->spaces[i], (struct quota_amount) { -held.memory_mib, -held.cores });
		quotas_close(a->quotas, a->spaces[i]);
	}
	quotas_free(a->quotas);
	device_config_free(a->device);
	json_free(a->config);
	*a = (struct answerer) { 0 };
}

static int open_config(struct answerer *a, struct cJSON *take_config, struct hm_err *e)
{
	const struct cJSON *space;
	char *nvidia = cJSON_PrintUnformatted(take_config);
	int err;

	a->config = take_config;
	if (nvidia == NULL)
		return hm_err_set(e, HM_ENOMEM, "configuration");
	err = device_config_parse(nvidia, strlen(nvidia), "the line", NULL, &a->device, e);
	free(nvidia);
	if (err < 0)
		return err;
	a->quotas = quotas_new(a->device->memory_factor);
	cJSON_ArrayForEach(space, cJSON_GetObjectItem(take_config, "quotas"))
	{
		const struct quota_limits limits = { amount(space, "memory", QUOTA_NO_LIMIT),
						     amount(space, "cores", QUOTA_NO_LIMIT) };

		if (quotas_set(a->quotas, space->string, "q", limits, e) < 0)
			return -e->code;
	}
	cJSON_ArrayForEach(space, cJSON_GetObjectItem(take_config, "held"))
	{
		CHECK(a->space_count < HM_COUNT(a->spaces));
		a->spaces[a->space_count] = quotas_open(a->quotas, space->string);
		quota_space_add(a->spaces[a->space_count++],
				(struct quota_amount) { amount(space, "memory", 0), amount(space, "cores", 0) });
	}
	return 0;
}

static int answer(struct answerer *a, const struct cJSON *line, struct hm_err *e)
{
	const char *body = cJSON_GetStringValue(cJSON_GetObjectItem(line, "body"));
	const struct webhook_rules rules = {
		.device = a->device,
		.scheduler_name = cJSON_GetStringValue(cJSON_GetObjectItem(a->config, "scheduler")),
		.force_overwrite_default_scheduler = cJSON_IsTrue(cJSON_GetObjectItem(a->config, "force")),
		.ask = { .quota_fits = quota_says, .arg = a },
	};
	hm_auto_str out = { 0 };

	if (webhook_answer(&rules, cJSON_GetStringValue(cJSON_GetObjectItem(line, "content_type")), body, strlen(body),
			   &out, NULL, e) < 0)
		return -e->code;
	puts(str_text(&out));
	return 0;
}

static int take_line(struct answerer *a, const char *text, size_t n, struct hm_err *e)
{
	hm_auto(cJSON) *line = NULL;

	if (json_parse(text, n, &line, e) < 0)
		return -e->code;
	if (cJSON_HasObjectItem(line, "body"))
		return answer(a, line, e);
	close_config(a);
	return open_config(a, HM_STEAL(line), e);
}

int main(void)
{
	struct answerer a = { 0 };
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int rc = 0;

	while (rc == 0 && (n = getline(&line, &cap, stdin)) > 0) {
		struct hm_err e;

		if (take_line(&a, line, (size_t)n, &e) < 0) {
			(void)fprintf(stderr, "%s\n", e.msg);
			rc = 1;
		}
	}
	close_config(&a);
	free(line);
	return rc;
}
