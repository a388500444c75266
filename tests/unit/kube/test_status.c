#include "kube/status.h"

#include <string.h>

#include "harness/unit.h"
#include "io/json.h"

#define STATUS(reason, message) "{\"kind\":\"Status\",\"reason\":\"" reason "\",\"message\":\"" message "\"}"

static void outcomes(void **state)
{
	static const struct {
		int http;
		const char *body;
		enum kube_outcome outcome;
		int code;
		const char *msg;
	} cases[] = {
		{ 400, STATUS("BadRequest", "m"), KUBE_BAD_REQUEST, HM_EINVAL, "400 BadRequest: m" },
		{ 401, "Unauthorized", KUBE_UNAUTHORIZED, HM_EPERM, "401: Unauthorized" },
		{ 403, STATUS("Forbidden", "no \\\"x\\\""), KUBE_FORBIDDEN, HM_EPERM, "403 Forbidden: no \"x\"" },
		{ 404, "404 page not found\n", KUBE_NOT_FOUND, HM_ENOTFOUND, "404: 404 page not found\\x0a" },
		{ 409, STATUS("AlreadyExists", "m"), KUBE_EXISTS, HM_EEXIST, "409 AlreadyExists: m" },
		{ 409, STATUS("Conflict", "m"), KUBE_CONFLICT, HM_EAGAIN, "409 Conflict: m" },
		{ 410, STATUS("Expired", "m"), KUBE_GONE, HM_ENOTFOUND, "410 Expired: m" },
		{ 415, "", KUBE_BAD_REQUEST, HM_EINVAL, "415" },
		{ 422, STATUS("Invalid", "m"), KUBE_INVALID, HM_EINVAL, "422 Invalid: m" },
		{ 422,
		  "{\"reason\":\"Invalid\",\"details\":{\"causes\":[7,{\"field\":\"spec\"},{\"field\":\"metadata.uid\"}"
		  "]}}",
		  KUBE_CONFLICT, HM_EAGAIN, "422 Invalid" },
		{ 422, "{\"reason\":\"Invalid\",\"details\":{\"causes\":[{\"field\":\"metadata.uidx\"}]}}",
		  KUBE_INVALID, HM_EINVAL, "422 Invalid" },
		{ 429, STATUS("TooManyRequests", "m"), KUBE_TOO_MANY, HM_EAGAIN, "429 TooManyRequests: m" },
		{ 500, "[]", KUBE_SERVER_ERROR, HM_EAGAIN, "500: []" },
		{ 504, "{\"reason\":7,\"message\":[],\"details\":null}", KUBE_SERVER_ERROR, HM_EAGAIN, "504" },
		{ 302, "", KUBE_NO_ANSWER, HM_EIO, "302" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct kube_status s;
		struct hm_err e = { 0 };

		kube_status_of_body(cases[i].http, cases[i].body, strlen(cases[i].body), &s);
		assert_int_equal(s.http, cases[i].http);
		assert_int_equal(s.outcome, cases[i].outcome);
		assert_int_equal(kube_status_err(&s, &e), -cases[i].code);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

static void of_an_event(void **state)
{
	static const struct {
		const char *text;
		int http;
		enum kube_outcome outcome;
		uint32_t wait;
	} cases[] = {
		{ "{\"code\":410,\"reason\":\"Gone\"}", 410, KUBE_GONE, 0 },
		{ "{\"code\":429,\"details\":{\"retryAfterSeconds\":3}}", 429, KUBE_TOO_MANY, 3 },
		{ "{\"code\":429,\"details\":{\"retryAfterSeconds\":-3}}", 429, KUBE_TOO_MANY, 0 },
		{ "{\"code\":429,\"details\":{\"retryAfterSeconds\":1e300}}", 429, KUBE_TOO_MANY, 0 },
		{ "{\"code\":\"410\"}", 0, KUBE_NO_ANSWER, 0 },
		{ "{\"code\":-1e300}", 0, KUBE_NO_ANSWER, 0 },
		{ "{}", 0, KUBE_NO_ANSWER, 0 },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		hm_auto(cJSON) *tree = NULL;
		struct kube_status s;

		assert_int_equal(json_parse(cases[i].text, strlen(cases[i].text), &tree, NULL), 0);
		kube_status_of_tree(tree, &s);
		assert_int_equal(s.http, cases[i].http);
		assert_int_equal(s.outcome, cases[i].outcome);
		assert_int_equal(s.retry_after_s, cases[i].wait);
	}
}

static void long_texts_are_cut(void **state)
{
	char body[2000];
	struct kube_status s;

	(void)state;
	memset(body, '\x01', sizeof body);
	kube_status_of_body(500, body, sizeof body, &s);
	assert_int_equal(strlen(s.message), sizeof s.message - 1);
	assert_memory_equal(s.message, "\\x01\\x01", 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(outcomes),
		cmocka_unit_test(of_an_event),
		cmocka_unit_test(long_texts_are_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
