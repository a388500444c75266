#include "sched/webhook/review.h"

#include <stdarg.h>

#include "base/base64.h"
#include "core/fmt.h"
#include "io/json.h"
#include "io/json_write.h"

const struct cJSON *review_member(const struct cJSON *o, const char *key)
{
	const struct cJSON *v = cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;

	return cJSON_IsNull(v) ? NULL : v;
}

const char *review_text(const struct cJSON *o, const char *key)
{
	return cJSON_GetStringValue(review_member(o, key));
}

const struct cJSON *review_list(const struct cJSON *o, const char *key)
{
	const struct cJSON *v = review_member(o, key);

	return cJSON_IsArray(v) ? v : NULL;
}

static const char *text_of(const struct cJSON *o, const char *key)
{
	const char *text = review_text(o, key);

	return text == NULL ? "" : text;
}

void review_read(const struct cJSON *tree, struct review *r)
{
	const struct cJSON *request = review_member(tree, "request");

	*r = (struct review) {
		.api_version = text_of(tree, "apiVersion"),
		.kind = text_of(tree, "kind"),
		.uid = text_of(request, "uid"),
		.operation = text_of(request, "operation"),
		.subresource = text_of(request, "subResource"),
		.name_space = text_of(request, "namespace"),
		.user = text_of(review_member(request, "userInfo"), "username"),
		.object = review_member(request, "object"),
		.old_object = review_member(request, "oldObject"),
	};
}

void answer_init(struct answer *a)
{
	*a = (struct answer) { .allowed = true, .code = 200 };
}

void answer_fini(struct answer *a)
{
	str_fini(&a->patch);
	str_fini(&a->warnings);
}

bool answer_forbid(struct answer *a, const char *fmt, ...)
{
	va_list ap;

	a->allowed = false;
	a->code = 403;
	a->reason = "Forbidden";
	va_start(ap, fmt);
	(void)hm_vfmt(a->message, sizeof a->message, fmt, ap);
	va_end(ap);
	return false;
}

bool answer_fail(struct answer *a, unsigned code, const char *fmt, ...)
{
	va_list ap;

	a->allowed = false;
	a->code = code;
	a->reason = NULL;
	va_start(ap, fmt);
	(void)hm_vfmt(a->message, sizeof a->message, fmt, ap);
	va_end(ap);
	return false;
}

void answer_warn(struct answer *a, const char *fmt, ...)
{
	char text[ANSWER_MESSAGE_BYTES];
	va_list ap;

	if (a->warning_count == ANSWER_MAX_WARNINGS)
		return;
	va_start(ap, fmt);
	(void)hm_vfmt(text, sizeof text, fmt, ap);
	va_end(ap);
	if (a->warning_count++ > 0)
		str_addc(&a->warnings, ',');
	json_add_text(&a->warnings, text);
}

static void write_patch(const struct str *operations, struct str *out)
{
	hm_auto_str patch = { 0 };

	str_addf(&patch, "[%s]", str_text(operations));
	str_add(out, ",\"patchType\":\"JSONPatch\",\"patch\":\"");
	base64_add(out, (const uint8_t *)str_text(&patch), patch.n);
	str_addc(out, '"');
	if (str_failed(&patch))
		out->failed = true;
}

void answer_write(const struct answer *a, const struct review *r, struct str *out)
{
	str_addc(out, '{');
	if (*r->kind != '\0')
		json_add_member(out, "kind", r->kind);
	if (*r->api_version != '\0')
		json_add_member(out, "apiVersion", r->api_version);
	json_add_name(out, "response");
	str_addc(out, '{');
	json_add_member(out, "uid", r->uid);
	str_addf(out, ",\"allowed\":%s,\"status\":{\"metadata\":{}", a->allowed ? "true" : "false");
	if (a->message[0] != '\0')
		json_add_member(out, "message", a->message);
	json_add_member(out, "reason", a->reason);
	str_addf(out, ",\"code\":%u}", a->code);
	if (a->allowed && a->patch.n > 0)
		write_patch(&a->patch, out);
	if (a->warning_count > 0)
		str_addf(out, ",\"warnings\":[%s]", str_text(&a->warnings));
	str_add(out, "}}");
	if (str_failed(&a->patch) || str_failed(&a->warnings))
		out->failed = true;
}
