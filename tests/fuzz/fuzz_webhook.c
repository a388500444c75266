/* A whole admission request: whatever it is, the answer is JSON and says yes or no; a patch comes with a yes only. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "base/base64.h"
#include "core/check.h"
#include "io/json.h"
#include "sched/webhook/webhook.h"

static bool quota_says(void *arg, const char *name_space, const struct card_ask *asks, size_t count, char *why,
		       size_t why_bytes)
{
	int64_t mib = 0;

	(void)arg, (void)name_space, (void)why, (void)why_bytes;
	for (size_t i = 0; i < count; i++) {
		CHECK(asks[i].count <= 1000 && asks[i].percent <= 100 && asks[i].cores <= 100 &&
		      asks[i].memory_mib >= 0);
		mib += asks[i].memory_mib;
	}
	return mib < 100000;
}

static struct webhook_largest largest(void *arg)
{
	(void)arg;
	return (struct webhook_largest) { 81920, 80, 4 };
}

static bool type_known(void *arg, const char *part)
{
	(void)arg;
	CHECK(*part != '\0' && strchr(part, ',') == NULL);
	return strcmp(part, "A100") == 0;
}

static void look_at(const struct str *answer, const struct webhook_outcome *outcome)
{
	hm_auto(cJSON) *tree = NULL, *patch = NULL;
	hm_auto_heap uint8_t *bytes = NULL;
	const struct cJSON *response;
	const char *text;
	size_t n = 0;
	struct hm_err e;

	CHECK(json_parse(str_text(answer), answer->n, &tree, &e) == 0);
	response = cJSON_GetObjectItem(tree, "response");
	CHECK(cJSON_IsTrue(cJSON_GetObjectItem(response, "allowed")) == outcome->allowed);
	text = cJSON_GetStringValue(cJSON_GetObjectItem(response, "patch"));
	CHECK((text != NULL) == outcome->patched && (!outcome->patched || outcome->allowed));
	if (text == NULL)
		return;
	bytes = malloc(strlen(text));
	CHECK(bytes != NULL && base64_decode(text, strlen(text), bytes, &n));
	CHECK(json_parse((const char *)bytes, n, &patch, &e) == 0);
	CHECK(cJSON_IsArray(patch) && cJSON_GetArraySize(patch) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char config[] = "{nvidia: {gpuCorePolicy: force, overwriteEnv: true, runtimeClassName: nvidia}}";
	static const char *const writers[] = { "w" };
	static struct device_config *device;
	struct webhook_rules rules = {
		.scheduler_name = "hami-scheduler",
		.force_overwrite_default_scheduler = true,
		.writers = writers,
		.writer_count = 1,
		.ask = { quota_says, largest, type_known, NULL },
	};
	hm_auto_str answer = { 0 };
	struct webhook_outcome outcome;
	struct hm_err e;

	if (device == NULL)
		CHECK(device_config_parse(config, strlen(config), "config", NULL, &device, &e) == 0);
	rules.device = device;
	if (webhook_answer(&rules, "application/json", (const char *)data, n, &answer, &outcome, &e) == 0)
		look_at(&answer, &outcome);
	return 0;
}
