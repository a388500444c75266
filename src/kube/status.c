#include "kube/status.h"

#include <string.h>

#include "core/fmt.h"
#include "io/json.h"

static const struct {
	enum kube_outcome outcome;
	int code;
} codes[] = {
	{ KUBE_NO_ANSWER, HM_EIO },   { KUBE_BAD_REQUEST, HM_EINVAL },  { KUBE_UNAUTHORIZED, HM_EPERM },
	{ KUBE_FORBIDDEN, HM_EPERM }, { KUBE_NOT_FOUND, HM_ENOTFOUND }, { KUBE_EXISTS, HM_EEXIST },
	{ KUBE_CONFLICT, HM_EAGAIN }, { KUBE_GONE, HM_ENOTFOUND },      { KUBE_INVALID, HM_EINVAL },
	{ KUBE_TOO_MANY, HM_EAGAIN }, { KUBE_SERVER_ERROR, HM_EAGAIN },
};

static enum kube_outcome outcome_of(int http, const char *reason)
{
	static const struct {
		int http;
		enum kube_outcome outcome;
	} table[] = {
		{ 401, KUBE_UNAUTHORIZED }, { 403, KUBE_FORBIDDEN }, { 404, KUBE_NOT_FOUND }, { 409, KUBE_CONFLICT },
		{ 410, KUBE_GONE },         { 422, KUBE_INVALID },   { 429, KUBE_TOO_MANY },
	};
	if (http == 409 && strcmp(reason, "AlreadyExists") == 0)
		return KUBE_EXISTS;
	for (size_t i = 0; i < HM_COUNT(table); i++) {
		if (table[i].http == http)
			return table[i].outcome;
	}
	if (http >= 500)
		return KUBE_SERVER_ERROR;
	return http >= 400 ? KUBE_BAD_REQUEST : KUBE_NO_ANSWER;
}

/* On one line and printable, whatever the server says; without the heap, since an error must not fail. */
static void show(const char *text, size_t n, char *out, size_t cap)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < n && at < cap; i++) {
		if (text[i] >= ' ' && text[i] < 0x7f)
			at += hm_fmt(out + at, cap - at, "%c", text[i]);
		else
			at += hm_fmt(out + at, cap - at, "\\x%02x", (unsigned char)text[i]);
	}
}

/* A patch with the UID of another object is refused as an attempt to change the UID: the API server (1.34, seen) says
 * 422 with the cause "metadata.uid: field is immutable". */
static bool is_about_uid(const struct cJSON *details)
{
	const struct cJSON *cause, *causes = cJSON_GetObjectItemCaseSensitive(details, "causes");

	cJSON_ArrayForEach(cause, causes)
	{
		const char *field = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(cause, "field"));

		if (field != NULL && strcmp(field, "metadata.uid") == 0)
			return true;
	}
	return false;
}

/* With the HTTP status in place; sets the outcome. */
static void read_tree(const struct cJSON *tree, struct kube_status *out)
{
	const struct cJSON *details = cJSON_GetObjectItemCaseSensitive(tree, "details");
	const char *reason = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "reason"));
	const char *message = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, "message"));
	const struct cJSON *wait = cJSON_GetObjectItemCaseSensitive(details, "retryAfterSeconds");

	if (reason != NULL)
		show(reason, strlen(reason), out->reason, sizeof out->reason);
	if (message != NULL)
		show(message, strlen(message), out->message, sizeof out->message);
	if (cJSON_IsNumber(wait) && wait->valuedouble > 0 && wait->valuedouble < 86400)
		out->retry_after_s = (uint32_t)wait->valuedouble;
	out->outcome = outcome_of(out->http, out->reason);
	if (out->outcome == KUBE_INVALID && is_about_uid(details))
		out->outcome = KUBE_CONFLICT;
}

void kube_status_of_tree(const struct cJSON *tree, struct kube_status *out)
{
	const struct cJSON *code = cJSON_GetObjectItemCaseSensitive(tree, "code");

	*out = (struct kube_status) { 0 };
	if (cJSON_IsNumber(code) && code->valuedouble >= 100 && code->valuedouble < 600)
		out->http = (int)code->valuedouble;
	read_tree(tree, out);
}

void kube_status_of_body(int http, const char *body, size_t n, struct kube_status *out)
{
	hm_auto(cJSON) *tree = NULL;

	*out = (struct kube_status) { .http = http, .outcome = outcome_of(http, "") };
	if (n > 0 && json_parse(body, n, &tree, NULL) == 0 && cJSON_IsObject(tree))
		read_tree(tree, out);
	else
		show(body, n, out->message, sizeof out->message);
}

int kube_status_err(const struct kube_status *s, struct hm_err *e)
{
	int code = HM_EIO;

	for (size_t i = 0; i < HM_COUNT(codes); i++) {
		if (codes[i].outcome == s->outcome)
			code = codes[i].code;
	}
	return hm_err_set(e, code, "%d%s%s%s%s", s->http, s->reason[0] != '\0' ? " " : "", s->reason,
			  s->message[0] != '\0' ? ": " : "", s->message);
}
