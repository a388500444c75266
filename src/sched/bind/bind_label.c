#include "sched/bind/bind_label.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "contract/hami.h"
#include "kube/patch.h"
#include "kube/url.h"

enum { LABEL_MAX_BYTES = 63, CALL_MS = 10000 };

bool bind_label_can_say(const char *node)
{
	size_t n = strlen(node);

	if (n == 0 || n > LABEL_MAX_BYTES || !isalnum((unsigned char)node[0]) || !isalnum((unsigned char)node[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)node[i]) && strchr("-_.", node[i]) == NULL)
			return false;
	return true;
}

static void on_done(void *arg, const struct kube_answer *a)
{
	(void)arg;
	if (a->status.outcome != KUBE_DONE)
		log_info("a pod's label is not set", KV_ERR(&a->err));
}

void bind_label_set(struct kube_client *c, const char *name_space, const char *pod, const char *uid, const char *node)
{
	const struct kube_patch_value label = { HAMI_POD_NODE, node };
	const struct kube_patch p = { .uid = uid, .labels = &label, .label_count = 1 };
	const struct kube_events_of_call events = { .done = on_done };
	struct kube_request r = { .verb = KUBE_PATCH, .content_type = KUBE_MERGE_PATCH, .timeout_ms = CALL_MS };
	char *body hm_auto_heap = NULL;
	hm_auto_str path = { 0 };
	struct hm_err e;

	if (!bind_label_can_say(node))
		return;
	kube_url_add_path(&path, "/api/v1", name_space, "pods", pod);
	if (str_failed(&path) || kube_patch_text(&p, &body, &e) < 0)
		return;
	r.path = str_text(&path);
	r.body = body;
	r.n = strlen(body);
	if (kube_client_call(c, &r, &events, NULL, &e) < 0)
		log_info("a pod's label is not set", KV_ERR(&e));
}
