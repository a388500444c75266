#include "sched/webhook/webhook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "core/macros.h"
#include "harness/sweep.h"
#include "harness/unit.h"
#include "io/json.h"

#define SCHEDULER "system:serviceaccount:hami:hami-scheduler"

static const char *const writers[] = { SCHEDULER, "system:serviceaccount:hami:agent" };

struct world {
	struct device_config *device;
	struct webhook_rules rules;
};

static bool quota_fits_4096(void *arg, const char *name_space, const struct card_ask *asks, size_t count, char *why,
			    size_t why_bytes)
{
	int64_t mib = 0;

	(void)arg;
	for (size_t i = 0; i < count; i++)
		mib += (int64_t)asks[i].count * asks[i].memory_mib;
	(void)snprintf(why, why_bytes, "%s: %lld MiB", name_space, (long long)mib);
	return mib <= 4096;
}

static struct webhook_largest largest_24000(void *arg)
{
	(void)arg;
	return (struct webhook_largest) { 24000, 50, 4 };
}

static unsigned types_asked; /* since the test began */

static bool knows_a100(void *arg, const char *part)
{
	(void)arg;
	types_asked++;
	return strcmp(part, "A100") == 0;
}

static void open_world(struct world *w, const char *config)
{
	struct hm_err e;

	if (device_config_parse(config, strlen(config), "config", NULL, &w->device, &e) < 0)
		fail_msg("%s", e.msg);
	w->rules = (struct webhook_rules) {
		.device = w->device,
		.scheduler_name = "hami-scheduler",
		.force_overwrite_default_scheduler = true,
		.writers = writers,
		.writer_count = HM_COUNT(writers),
		.ask = { quota_fits_4096, largest_24000, knows_a100, NULL },
	};
}

/* The answer as one text: "yes|no <code> <message>\n<patch>\n<warning>\n...". */
static void read_answer(const char *text, size_t n, struct str *out)
{
	hm_auto(cJSON) *tree = NULL;
	const struct cJSON *response, *status, *warning;
	const char *message, *patch;
	struct hm_err e;

	assert_int_equal(json_parse(text, n, &tree, &e), 0);
	response = cJSON_GetObjectItem(tree, "response");
	status = cJSON_GetObjectItem(response, "status");
	message = cJSON_GetStringValue(cJSON_GetObjectItem(status, "message"));
	patch = cJSON_GetStringValue(cJSON_GetObjectItem(response, "patch"));
	str_addf(out, "%s %d %s\n", cJSON_IsTrue(cJSON_GetObjectItem(response, "allowed")) ? "yes" : "no",
		 (int)cJSON_GetObjectItem(status, "code")->valuedouble, message == NULL ? "" : message);
	if (patch != NULL) {
		hm_auto_heap uint8_t *bytes = malloc(strlen(patch) + 1);
		size_t count = 0;

		assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(response, "patchType")), "JSONPatch");
		assert_true(base64_decode(patch, strlen(patch), bytes, &count));
		str_add_n(out, bytes, count);
	}
	cJSON_ArrayForEach(warning, cJSON_GetObjectItem(response, "warnings"))
		str_addf(out, "\n%s", warning->valuestring);
}

static void ask(const struct world *w, const char *request, struct str *out)
{
	hm_auto_str body = { 0 }, answer = { 0 };
	struct hm_err e;

	str_addf(&body, "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{%s}}",
		 request);
	assert_int_equal(webhook_answer(&w->rules, "application/json", str_text(&body), body.n, &answer, NULL, &e), 0);
	read_answer(str_text(&answer), answer.n, out);
}

/* A pod with this spec and these annotations is created by a user. */
static void ask_pod(const struct world *w, const char *annotations, const char *spec, struct str *out)
{
	hm_auto_str request = { 0 };

	str_addf(&request,
		 "\"uid\":\"1\",\"operation\":\"CREATE\",\"namespace\":\"ns\",\"userInfo\":{\"username\":\"eve\"},"
		 "\"object\":{\"kind\":\"Pod\",\"metadata\":{\"annotations\":{%s}},\"spec\":{%s}}",
		 annotations, spec);
	ask(w, str_text(&request), out);
}

#define LIMITS(text) "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{" text "}}}]"
#define GPU "\"nvidia.com/gpu\":\"1\""
#define NO_QUANTITY "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$': "
#define SET(path, value) "{\"op\":\"add\",\"path\":\"" path "\",\"value\":" value "}"
#define LIMIT(name, value) SET("/spec/containers/0/resources/limits/nvidia.com~1" name, "\"" value "\"")
#define OURS SET("/spec/schedulerName", "\"hami-scheduler\"")

static void test_pods(void **state)
{
	static const struct {
		const char *annotations, *spec, *want;
	} cases[] = {
		/* Nothing for those without our resources. */
		{ "", LIMITS("\"cpu\":\"1500m\""), "yes 200 \n" },
		{ "", LIMITS("\"nvidia.com/gpu\":0"), "yes 200 \n" },
		/* Defaults. */
		{ "", LIMITS(GPU), "yes 200 \n[" LIMIT("gpucores", "100") "," OURS "]" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem\":3000"), "yes 200 \n[" OURS "]" },
		{ "", LIMITS("\"nvidia.com/gpumem\":3000"), "yes 200 \n[" LIMIT("gpu", "1") "," OURS "]" },
		{ "", LIMITS("\"nvidia.com/gpumem-percentage\":100"),
		  "yes 200 \n[" LIMIT("gpu", "1") "," LIMIT("gpucores", "100") "," OURS "]" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem-percentage\":50") ",\"schedulerName\":\"hami-scheduler\"",
		  "yes 200 \n" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem\":1,\"nvidia.com/priority\":0"),
		  "yes 200 \n[" SET("/spec/containers/0/env",
				    "[{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"0\"}]") "," OURS "]" },
		{ "",
		  "\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"0\"},"
		  "{\"name\":\"X\"}],\"resources\":{\"limits\":{" GPU
		  ",\"nvidia.com/gpumem\":1,\"nvidia.com/priority\":1}}}]",
		  "yes 200 \n[{\"op\":\"replace\",\"path\":\"/spec/containers/0/env/0\",\"value\":"
		  "{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"1\"}}," OURS "]" },
		/* Of two the last counts. */
		{ "",
		  "\"containers\":[{\"name\":\"c\",\"env\":[{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"1\"},"
		  "{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"0\"}],\"resources\":{\"limits\":{" GPU
		  ",\"nvidia.com/gpumem\":1,\"nvidia.com/priority\":1}}}]",
		  "yes 200 \n[{\"op\":\"replace\",\"path\":\"/spec/containers/0/env/1\",\"value\":"
		  "{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"1\"}}," OURS "]" },
		{ "",
		  "\"containers\":[{\"name\":\"c\",\"env\":[],\"resources\":{\"limits\":{" GPU
		  ",\"nvidia.com/gpumem\":1,\"nvidia.com/priority\":1}}}]",
		  "yes 200 \n[" SET("/spec/containers/0/env/-",
				    "{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"1\"}") "," OURS "]" },
		{ "",
		  "\"initContainers\":[{\"name\":\"i\",\"resources\":{\"limits\":{\"nvidia.com/gpumem\":5}}}],"
		  "\"containers\":[{\"name\":\"c\"}]",
		  "yes 200 \n[" SET("/spec/initContainers/0/resources/limits/nvidia.com~1gpu", "\"1\"") "," OURS "]" },
		{ "", "\"containers\":[{\"name\":\"c\",\"resources\":{\"requests\":{" GPU "}}}]", "yes 200 \n" },
		/* Ranges. */
		{ "", LIMITS("\"nvidia.com/gpu\":17"),
		  "no 403 container c: nvidia.com/gpu is 17: must be a whole number between 0 and 16\n" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpucores\":\"101\""),
		  "no 403 container c: nvidia.com/gpucores is 101: must be a whole number between 0 and 100\n" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem\":\"1500m\""),
		  "no 403 container c: nvidia.com/gpumem is 1500m: must be a whole number of MiB between 0 and "
		  "2147483647\n" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem\":24001"),
		  "no 403 container c: nvidia.com/gpumem is 24001: must be at most 24000 MiB, which the largest card "
		  "of the cluster has\n" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpucores\":51"),
		  "no 403 container c: nvidia.com/gpucores is 51: must be at most 50, which the largest card of the "
		  "cluster has\n" },
		{ "", LIMITS("\"nvidia.com/gpu\":5,\"nvidia.com/gpumem\":1"),
		  "yes 200 \n[" OURS
		  "]\ncontainer c: nvidia.com/gpu is 5: no node of the cluster has more than 4 cards" },
		{ "", LIMITS("\"nvidia.com/gpu\":4,\"nvidia.com/gpumem\":1,\"nvidia.com/gpucores\":50"),
		  "yes 200 \n[" OURS "]" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem-percentage\":-1"),
		  "no 500 invalid nvidia.com/gpumem-percentage value -1 in container c: must be an integer between 0 "
		  "and 100\n" },
		{ "", LIMITS(GPU ",\"nvidia.com/priority\":2"),
		  "no 403 container c: nvidia.com/priority is 2: must be 0 (high) or 1\n" },
		{ "", LIMITS("\"nvidia.com/gpucores\":\"ten\""),
		  "no 400 " NO_QUANTITY "container c: nvidia.com/gpucores is ten: must be a whole number between 0 "
		  "and 100\n" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem\":\"\""),
		  "no 400 " NO_QUANTITY
		  "container c: nvidia.com/gpumem is \"\": must be a whole number of MiB between 0 "
		  "and 2147483647\n" },
		{ "",
		  "\"initContainers\":[{\"name\":\"i\",\"resources\":{\"requests\":{\"nvidia.com/priority\":\"x\"},"
		  "\"limits\":{\"nvidia.com/priority\":1}}}],\"containers\":[{\"name\":\"c\"}]",
		  "no 400 " NO_QUANTITY "container i: nvidia.com/priority is x: must be 0 (high) or 1\n" },
		{ "", LIMITS("\"nvidia.com/gpu\":[1]"),
		  "no 400 a quantity is a text or a number: container c: nvidia.com/gpu is no text or number: must be "
		  "a "
		  "whole number between 0 and 16\n" },
		/* Who may be where. */
		{ "", LIMITS(GPU) ",\"nodeName\":\"n\"", "no 403 pod has node assigned\n" },
		{ "", LIMITS("\"cpu\":1") ",\"nodeName\":\"n\"", "yes 200 \n" },
		{ "", LIMITS(GPU) ",\"schedulerName\":\"volcano\"",
		  "yes 200 pod already has different scheduler assigned\n\nspec.schedulerName is volcano: no card is "
		  "reserved for this pod, and an agent that wants signatures will not start its GPU containers" },
		{ "", LIMITS("\"cpu\":1") ",\"schedulerName\":\"volcano\"",
		  "yes 200 pod already has different scheduler assigned\n" },
		{ "",
		  "\"containers\":[{\"name\":\"c\",\"securityContext\":{\"privileged\":true},\"resources\":"
		  "{\"limits\":{" GPU "}}}]",
		  "no 403 container c is privileged\n" },
		{ "",
		  "\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{" GPU ",\"nvidia.com/gpumem\":1}}},"
		  "{\"name\":\"mesh\",\"securityContext\":{\"privileged\":true}}]",
		  "yes 200 \n[" OURS "]\ncontainer mesh is privileged: it can reach every card of its node" },
		{ "", "\"containers\":[]", "no 403 pod has no containers\n" },
		{ "",
		  "\"ephemeralContainers\":[{\"name\":\"d\",\"resources\":{\"limits\":{\"nvidia.com/gpumem\":1}}}],"
		  "\"containers\":[{}]",
		  "no 403 ephemeral container d: nvidia.com/gpumem: no card can be given to it; use a container of "
		  "the pod\n" },
		/* Quota: what is derived counts, and what is set. */
		{ "", LIMITS("\"nvidia.com/gpu\":2,\"nvidia.com/gpumem\":2048"), "yes 200 \n[" OURS "]" },
		{ "", LIMITS("\"nvidia.com/gpu\":2,\"nvidia.com/gpumem\":2049"),
		  "no 403 exceeding resource quota\n\nns: 4098 MiB" },
		/* Annotations. */
		{ "\"hami.io/vgpu-devices-allocated\":\"x\"", LIMITS("\"cpu\":1"),
		  "no 403 annotation hami.io/vgpu-devices-allocated may be written by the scheduler and the node "
		  "agents only, not by eve: leave it out\n" },
		{ "\"hami.io/vgpu-signature\":\"x\"", LIMITS(GPU) ",\"schedulerName\":\"volcano\"",
		  "no 403 annotation hami.io/vgpu-signature may be written by the scheduler and the node agents only, "
		  "not by eve: leave it out\n" },
		/* Advice. */
		{ "\"nvidia.com/use-gputype\":\" A100, A10O \"", LIMITS(GPU ",\"nvidia.com/gpumem\":1"),
		  "yes 200 \n[" OURS "]\nannotation nvidia.com/use-gputype: no card of the cluster has \"A10O\" in "
		  "its type" },
		{ "\"nvidia.com/use-gputpye\":\"A100\",\"nvidia.com/other\":\"\"", LIMITS("\"cpu\":1"),
		  "yes 200 \n\nannotation nvidia.com/use-gputpye is not known and has no effect: "
		  "nvidia.com/use-gputype is" },
		{ "\"hami.io/device-scoring-weights\":\"slot=1\"", LIMITS(GPU ",\"nvidia.com/gpumem\":1"),
		  "yes 200 \n[" OURS "]\ninvalid hami.io/device-scoring-weights annotation \"slot=1\": expected slot, "
		  "core, and memory weights" },
		{ "\"hami.io/gpu-scheduler-policy\":\"spread\"", LIMITS("\"cpu\":1"),
		  "yes 200 \n\nannotation hami.io/gpu-scheduler-policy has no effect: no container asks for "
		  "nvidia.com/gpu" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem\":0"),
		  "yes 200 \n[" OURS "]\ncontainer c: nvidia.com/gpumem is 0: this counts as not said, but "
		  "that nvidia.com/gpucores is not set to 100" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem\":0,\"nvidia.com/gpucores\":5"),
		  "yes 200 \n[" OURS "]\ncontainer c: nvidia.com/gpumem is 0: this counts as not said" },
		{ "", LIMITS(GPU ",\"nvidia.com/gpumem\":5,\"nvidia.com/gpumem-percentage\":5"),
		  "yes 200 \n[" OURS
		  "]\ncontainer c: nvidia.com/gpumem-percentage has no effect beside nvidia.com/gpumem" },
		{ "", LIMITS("\"nvidia.com/gpu\":0,\"nvidia.com/gpumem\":5"),
		  "yes 200 \n\ncontainer c: nvidia.com/gpumem has no effect: it asks for no nvidia.com/gpu" },
		{ "", "\"resources\":{\"limits\":{" GPU "}},\"containers\":[{}]",
		  "yes 200 \n\nspec.resources.limits: nvidia.com/gpu has no effect: cards are given to containers" },
	};
	struct world w;

	(void)state;
	open_world(&w, "nvidia: {}");
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str got = { 0 };

		ask_pod(&w, cases[i].annotations, cases[i].spec, &got);
		if (strcmp(str_text(&got), cases[i].want) != 0)
			fail_msg("%s\n%s\nis answered\n%s\nnot\n%s", cases[i].annotations, cases[i].spec,
				 str_text(&got), cases[i].want);
	}
	device_config_free(w.device);
}

static void test_configuration(void **state)
{
	hm_auto_str got = { 0 };
	struct world w;

	(void)state;
	open_world(&w, "nvidia: {gpuCorePolicy: force, overwriteEnv: true, runtimeClassName: nvidia, memoryFactor: 10,"
		       " defaultGPUNum: 0}");
	ask_pod(&w, "",
		"\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{" GPU
		",\"nvidia.com/gpumem\":9}}},{\"name\":\"d\",\"env\":[{\"name\":\"NVIDIA_VISIBLE_DEVICES\","
		"\"value\":\"all\"}]}]",
		&got);
	assert_string_equal(str_text(&got),
			    "yes 200 \n[" SET("/spec/containers/0/env",
					      "[{\"name\":\"GPU_CORE_UTILIZATION_POLICY\",\"value\":"
					      "\"force\"}]") ","
							     "{\"op\":\"replace\",\"path\":\"/spec/"
							     "containers/1/env/0\",\"value\":"
							     "{\"name\":\"NVIDIA_VISIBLE_DEVICES\","
							     "\"value\":\"none\"}}," SET("/spec/runtimeClassName",
											 "\"nvidia\"") "," OURS "]");
	str_clear(&got);
	ask_pod(&w, "", LIMITS(GPU ",\"nvidia.com/gpumem\":2401"), &got);
	assert_string_equal(str_text(&got), "no 403 container c: nvidia.com/gpumem is 2401: must be at most 2400 units "
					    "of 10 MiB, which the largest card of the cluster has\n");
	str_clear(&got);
	ask_pod(&w, "", LIMITS("\"nvidia.com/gpumem\":5"), &got); /* without a default count it is no GPU pod */
	assert_string_equal(
		str_text(&got),
		"yes 200 \n[" SET("/spec/containers/0/env",
				  "[{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":"
				  "\"none\"}]") "]\n"
						"container c: nvidia.com/gpumem has no effect: it asks for no "
						"nvidia.com/gpu");
	str_clear(&got);
	w.rules.force_overwrite_default_scheduler = false;
	ask_pod(&w, "", LIMITS(GPU) ",\"schedulerName\":\"default-scheduler\"", &got);
	assert_memory_equal(str_text(&got), "yes 200 pod already has different scheduler assigned\n", 51);
	device_config_free(w.device);
}

/* Changes, by whom, through what. */
static void test_changes(void **state)
{
#define META(text) "{\"kind\":\"Pod\",\"metadata\":{\"annotations\":{" text "}}}"
#define REFUSED(by, how)                                                                                               \
	"no 403 annotation hami.io/bind-phase may be written by the scheduler and the node agents only, not by " by    \
	": " how "\n"
	static const struct {
		const char *user, *operation, *subresource, *before, *now, *want;
	} cases[] = {
		{ "eve", "UPDATE", "", META(""), META("\"x\":\"y\""), "yes 200 \n" },
		{ "eve", "UPDATE", "", META("\"hami.io/bind-phase\":\"a\""), META("\"hami.io/bind-phase\":\"a\""),
		  "yes 200 \n" },
		{ "eve", "UPDATE", "", META("\"hami.io/bind-phase\":\"a\""), META("\"hami.io/bind-phase\":\"b\""),
		  REFUSED("eve", "leave it as it is") },
		{ "eve", "UPDATE", "", META("\"hami.io/bind-phase\":\"a\""), META(""),
		  REFUSED("eve", "leave it as it is") },
		{ "eve", "UPDATE", "status", META(""), META("\"hami.io/bind-phase\":\"b\""),
		  REFUSED("eve", "leave it out") },
		{ SCHEDULER, "UPDATE", "", META(""), META("\"hami.io/bind-phase\":\"b\""), "yes 200 \n" },
		{ SCHEDULER, "CREATE", "binding", "null",
		  "{\"kind\":\"Binding\",\"metadata\":{\"annotations\":{\"hami.io/bind-phase\":\"b\"}}}",
		  "yes 200 \n" },
		{ "eve", "CREATE", "binding", "null",
		  "{\"kind\":\"Binding\",\"metadata\":{\"annotations\":{\"hami.io/bind-phase\":\"b\"}}}",
		  REFUSED("eve", "leave it out") },
		{ "eve", "UPDATE", "ephemeralcontainers", META(""),
		  "{\"spec\":{\"containers\":[{}],\"ephemeralContainers\":[{\"name\":\"d\",\"resources\":{\"limits\":"
		  "{" GPU "}}}]}}",
		  "no 403 ephemeral container d: nvidia.com/gpu: no card can be given to it; use a container of the "
		  "pod\n" },
		{ "eve", "CREATE", "", "null",
		  "{\"kind\":\"Deployment\",\"metadata\":{\"annotations\":{\"nvidia.com/"
		  "numa-bind\":\"true\"}},\"spec\":"
		  "{\"template\":{}}}",
		  "yes 200 \n\nannotation nvidia.com/numa-bind has no effect on the Deployment: it belongs to the "
		  "pods' "
		  "template, spec.template.metadata.annotations" },
		{ "eve", "CREATE", "", "null",
		  "{\"kind\":\"CronJob\",\"metadata\":{\"annotations\":{\"nvidia.com/numa-bind\":\"true\"}},\"spec\":"
		  "{\"jobTemplate\":{\"spec\":{\"template\":" META("\"nvidia.com/numa-bind\":\"true\"") "}}}}",
		  "yes 200 \n" },
		{ "eve", "CREATE", "", "null", "{\"kind\":\"Service\",\"apiVersion\":\"v1\"}",
		  "no 400 unable to decode v1, Kind=Service into *v1.Pod\n" },
		{ "eve", "DELETE", "", META(""), "null", "no 400 there is no content to decode\n" },
	};
	struct world w;

	(void)state;
	open_world(&w, "nvidia: {}");
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto_str got = { 0 }, request = { 0 };

		str_addf(&request,
			 "\"operation\":\"%s\",\"subResource\":\"%s\",\"userInfo\":{\"username\":\"%s\"},\"object\":%s,"
			 "\"oldObject\":%s",
			 cases[i].operation, cases[i].subresource, cases[i].user, cases[i].now, cases[i].before);
		ask(&w, str_text(&request), &got);
		if (strcmp(str_text(&got), cases[i].want) != 0)
			fail_msg("%zu is answered\n%s\nnot\n%s", i, str_text(&got), cases[i].want);
	}
	device_config_free(w.device);
}

static void test_bodies(void **state)
{
	static const struct {
		const char *type, *body, *want;
	} cases[] = {
		{ "application/json", "",
		  "{\"response\":{\"uid\":\"\",\"allowed\":false,\"status\":{\"metadata\":{},"
		  "\"message\":\"request body is empty\",\"code\":400}}}" },
		{ NULL, "{}",
		  "{\"response\":{\"uid\":\"\",\"allowed\":false,\"status\":{\"metadata\":{},"
		  "\"message\":\"contentType=, expected application/json\",\"code\":400}}}" },
		{ "application/json",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\",\"request\":{\"uid\":"
		  "\"u\\\"1\",\"object\":{\"spec\":{\"containers\":[{}]}},\"operation\":\"CREATE\"}}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\",\"response\":{\"uid\":"
		  "\"u\\\"1\",\"allowed\":true,\"status\":{\"metadata\":{},\"code\":200}}}" },
	};
	struct world w;

	(void)state;
	open_world(&w, "nvidia: {}");
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct webhook_outcome outcome;
		hm_auto_str got = { 0 };
		struct hm_err e;

		assert_int_equal(webhook_answer(&w.rules, cases[i].type, cases[i].body, strlen(cases[i].body), &got,
						&outcome, &e),
				 0);
		assert_string_equal(str_text(&got), cases[i].want);
		assert_int_equal(outcome.code, i < 2 ? 400 : 200);
		assert_int_equal(outcome.allowed, i == 2);
	}
	device_config_free(w.device);
}

static int answer_once(void *arg)
{
	static const char body[] =
		"{\"kind\":\"AdmissionReview\",\"request\":{\"operation\":\"CREATE\",\"object\":{\"metadata\":"
		"{\"annotations\":{\"nvidia.com/use-gputype\":\"H1OO\"}},\"spec\":{\"containers\":[{\"name\":\"c\","
		"\"env\":[{\"name\":\"X\"}],\"resources\":{\"limits\":{\"nvidia.com/gpumem\":1,"
		"\"nvidia.com/priority\":1}}}]}}}}";
	const struct world *w = arg;
	hm_auto_str out = { 0 };
	struct webhook_outcome outcome;
	struct hm_err e;

	return webhook_answer(&w->rules, "application/json", body, sizeof body - 1, &out, &outcome, &e) < 0 ? -1 : 0;
}

static void test_memory_is_short(void **state)
{
	struct world w;

	(void)state;
	open_world(&w, "nvidia: {runtimeClassName: nvidia}");
	sweep_check("webhook", answer_once, &w);
	device_config_free(w.device);
}

/* What a pod's author may write is looked at for so long only: admission comes before the API server's own bounds. */
static void test_looks_are_bounded(void **state)
{
	hm_auto_str list = { 0 }, keys = { 0 }, long_list = { 0 }, got = { 0 };
	struct world w;

	(void)state;
	open_world(&w, "nvidia: {}");
	/* The same key many times: no object of the API server's, but nothing keeps it from us. */
	for (unsigned i = 0; i < 1000; i++)
		str_addf(&keys, "%s\"nvidia.com/use-gputype\":\"%s,A100\"", i > 0 ? "," : "", "A100,A100");
	types_asked = 0;
	ask_pod(&w, str_text(&keys), LIMITS(GPU ",\"nvidia.com/gpumem\":1"), &got);
	assert_in_range(types_asked, 3, 64);
	assert_string_equal(str_text(&got), "yes 200 \n[" OURS "]");
	for (unsigned i = 0; i < 128; i++)
		str_add(&list, "~, ");
	str_addf(&long_list, "\"nvidia.com/nouse-gputype\":\"%s\"", str_text(&list));
	types_asked = 0;
	str_clear(&got);
	ask_pod(&w, str_text(&long_list), LIMITS(GPU ",\"nvidia.com/gpumem\":1"), &got);
	assert_in_range(types_asked, 1, 64);
	assert_non_null(strstr(str_text(&got), "no card of the cluster has \"~\" in its type"));
	str_clear(&long_list);
	str_addf(&long_list, "\"nvidia.com/nouse-gputype\":\"%s,x\"", str_text(&list));
	types_asked = 0;
	str_clear(&got);
	ask_pod(&w, str_text(&long_list), LIMITS(GPU ",\"nvidia.com/gpumem\":1"), &got);
	assert_int_equal(types_asked, 0);
	assert_string_equal(str_text(&got),
			    "yes 200 \n[" OURS "]\nannotation nvidia.com/nouse-gputype: has more than 128 "
			    "words: the pod would be placed nowhere");
	device_config_free(w.device);
}

/* To compare two such trees would take 2 to the power of their depth. */
static void test_what_is_no_text_is_not_compared(void **state)
{
	hm_auto_str deep = { 0 }, request = { 0 }, got = { 0 };
	struct world w;

	(void)state;
	open_world(&w, "nvidia: {}");
	for (unsigned i = 0; i < 400; i++)
		str_add(&deep, "{\"a\":");
	str_addc(&deep, '1');
	for (unsigned i = 0; i < 400; i++)
		str_addc(&deep, '}');
	str_addf(&request,
		 "\"operation\":\"UPDATE\",\"userInfo\":{\"username\":\"eve\"},"
		 "\"object\":{\"metadata\":{\"annotations\":{\"hami.io/vgpu-node\":%s}}},"
		 "\"oldObject\":{\"metadata\":{\"annotations\":{\"hami.io/vgpu-node\":%s}}}",
		 str_text(&deep), str_text(&deep));
	ask(&w, str_text(&request), &got);
	assert_string_equal(str_text(&got), "no 403 annotation hami.io/vgpu-node may be written by the scheduler and "
					    "the node agents only, not by eve: leave it as it is\n");
	device_config_free(w.device);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_looks_are_bounded),
		cmocka_unit_test(test_what_is_no_text_is_not_compared),
		cmocka_unit_test(test_pods),
		cmocka_unit_test(test_configuration),
		cmocka_unit_test(test_changes),
		cmocka_unit_test(test_bodies),
		cmocka_unit_test(test_memory_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
