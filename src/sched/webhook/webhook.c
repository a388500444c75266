#include "sched/webhook/webhook.h"

#include <string.h>

#include "core/macros.h"
#include "io/json.h"
#include "sched/webhook/annotations.h"
#include "sched/webhook/pod.h"
#include "sched/webhook/review.h"

/* Objects that make pods, and where their template is. */
static const struct workload {
	const char *kind;
	bool cron;
} workloads[] = {
	{ "Deployment", false }, { "ReplicaSet", false }, { "StatefulSet", false },
	{ "DaemonSet", false },  { "Job", false },        { "ReplicationController", false },
	{ "CronJob", true },
};

static const struct workload *find_workload(const char *kind)
{
	for (size_t i = 0; i < HM_COUNT(workloads); i++)
		if (strcmp(kind, workloads[i].kind) == 0)
			return &workloads[i];
	return NULL;
}

static void advise_workload(const struct workload *w, const struct cJSON *object, struct answer *answer)
{
	const struct cJSON *spec = review_member(object, "spec");

	if (w->cron)
		spec = review_member(review_member(spec, "jobTemplate"), "spec");
	annotations_advise_workload(object, review_member(spec, "template"), w->kind, answer);
}

static int decide(const struct webhook_rules *rules, const struct review *r, struct answer *answer, struct hm_err *e)
{
	const char *kind = review_text(r->object, "kind"), *version = review_text(r->object, "apiVersion");
	const struct workload *workload;

	if (r->object == NULL) {
		(void)answer_fail(answer, 400, "there is no content to decode");
		return 0;
	}
	if (!cJSON_IsObject(r->object)) {
		(void)answer_fail(answer, 400, "request.object is no object");
		return 0;
	}
	if (kind == NULL || strcmp(kind, "Pod") == 0) {
		if (strcmp(r->operation, "CREATE") == 0 && *r->subresource == '\0')
			return pod_admit(rules, r, answer, e);
		pod_change(rules, r, answer);
		return 0;
	}
	workload = find_workload(kind);
	if (strcmp(kind, "Binding") == 0) /* its annotations become the pod's */
		(void)annotations_guard(rules, r, answer);
	else if (workload != NULL)
		advise_workload(workload, r->object, answer);
	else
		(void)answer_fail(answer, 400, "unable to decode %.100s, Kind=%.100s into *v1.Pod",
				  version == NULL ? "" : version, kind);
	return 0;
}

/* The body as a tree; false where there is none to answer, and the answer says why. */
static bool open_body(const char *content_type, const char *body, size_t n, struct cJSON **out, struct answer *answer,
		      struct hm_err *e)
{
	if (content_type == NULL || strcmp(content_type, "application/json") != 0)
		return answer_fail(answer, 400, "contentType=%.100s, expected application/json",
				   content_type == NULL ? "" : content_type);
	if (n == 0)
		return answer_fail(answer, 400, "request body is empty");
	if (json_parse_within(body, n, WEBHOOK_MAX_VALUES, out, e) < 0)
		return answer_fail(answer, 400, "the body %s%s", e->code == HM_ELIMIT ? "" : "is no JSON: ", e->msg);
	return true;
}

int webhook_answer(const struct webhook_rules *rules, const char *content_type, const char *body, size_t n,
		   struct str *out, struct webhook_outcome *outcome, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;
	struct answer answer;
	struct review r;
	struct hm_err why = { 0 };
	int err = 0;

	answer_init(&answer);
	if (open_body(content_type, body, n, &tree, &answer, &why)) {
		review_read(tree, &r);
		err = decide(rules, &r, &answer, e);
	} else {
		review_read(NULL, &r);
		if (why.code == HM_ENOMEM)
			err = hm_err_set(e, HM_ENOMEM, "%s", why.msg);
	}
	if (err == 0) {
		answer_write(&answer, &r, out);
		if (str_failed(out))
			err = hm_err_set(e, HM_ENOMEM, "an admission answer");
	}
	if (outcome != NULL)
		*outcome = (struct webhook_outcome) { answer.allowed, answer.allowed && answer.patch.n > 0, answer.code,
						      (unsigned)answer.warning_count };
	answer_fini(&answer);
	return err;
}
