#include "kube/lease.h"

#include <string.h>

#include "harness/sweep.h"
#include "harness/unit.h"

#define META "\"metadata\":{\"name\":\"hami\",\"namespace\":\"kube-system\",\"uid\":\"u\",\"resourceVersion\":\"41\"}"

static int read_text(const char *text, struct kube_lease *out, struct hm_err *e)
{
	hm_auto(cJSON) *tree = NULL;

	assert_int_equal(json_parse(text, strlen(text), &tree, NULL), 0);
	return kube_lease_read(tree, out, e);
}

/* As kube-scheduler 1.34 writes it. */
static void reads_what_client_go_writes(void **state)
{
	struct kube_lease lease;

	(void)state;
	assert_int_equal(read_text("{" META ",\"spec\":{\"holderIdentity\":\"host-1_7f0c\",\"leaseDurationSeconds\":15,"
				   "\"acquireTime\":\"2026-11-30T08:00:00.000000Z\","
				   "\"renewTime\":\"2026-11-30T08:00:02.5Z\",\"leaseTransitions\":3}}",
				   &lease, NULL),
			 0);
	assert_string_equal(lease.resource_version, "41");
	assert_string_equal(lease.holder, "host-1_7f0c");
	assert_int_equal(lease.duration_s, 15);
	assert_int_equal(lease.transitions, 3);
	assert_string_equal(lease.acquired, "2026-11-30T08:00:00.000000Z");
	assert_string_equal(lease.renewed, "2026-11-30T08:00:02.5Z");
}

static void an_empty_one_is_nobodys(void **state)
{
	static const char *const texts[] = { "{" META "}", "{" META ",\"spec\":{}}", "{" META ",\"spec\":null}",
					     "{" META ",\"spec\":{\"holderIdentity\":null}}" };
	struct kube_lease lease;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(texts); i++) {
		assert_int_equal(read_text(texts[i], &lease, NULL), 0);
		assert_string_equal(lease.holder, "");
		assert_int_equal(lease.duration_s, 0);
	}
}

static void refuses_what_makes_no_sense(void **state)
{
	static const struct {
		const char *text, *msg;
	} cases[] = {
		{ "[]", "lease: is no object" },
		{ "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"}}", "lease: metadata.resourceVersion: is missing" },
		{ "{" META ",\"spec\":[]}", "lease: spec: a list is not an object" },
		{ "{" META ",\"spec\":{\"leaseDurationSeconds\":-1}}",
		  "lease: spec.leaseDurationSeconds: -1 is not a number between 0 and 2147483647" },
		{ "{" META ",\"spec\":{\"holderIdentity\":7}}", "lease: spec.holderIdentity: 7 is not a text" },
	};
	struct kube_lease lease;

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct hm_err e = { 0 };

		assert_int_equal(read_text(cases[i].text, &lease, &e), -HM_EPROTO);
		assert_string_equal(e.msg, cases[i].msg);
	}
}

static void a_duration_has_an_end(void **state)
{
	struct kube_lease lease;

	(void)state;
	assert_int_equal(read_text("{" META ",\"spec\":{\"leaseDurationSeconds\":2147483647}}", &lease, NULL), 0);
	assert_int_equal(lease.duration_s, KUBE_LEASE_MAX_S);
}

static void texts(void **state)
{
	/* 1764489600000 ms: 2025-11-30T08:00:00Z */
	struct kube_lease_write w = { "me_\"1\"", 15, 4, 1764489600000, 1764489602007 };
	hm_auto_str out = { 0 };

	(void)state;
	assert_int_equal(kube_lease_text(&w, "hami", &out, NULL), 0);
	assert_string_equal(str_text(&out),
			    "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":"
			    "\"hami\"},\"spec\":{\"holderIdentity\":\"me_\\\"1\\\"\",\"leaseDurationSeconds\":15,"
			    "\"leaseTransitions\":4,\"acquireTime\":\"2025-11-30T08:00:00.000000Z\","
			    "\"renewTime\":\"2025-11-30T08:00:02.007000Z\"}}");
	w.acquired_ms = 0;
	assert_int_equal(kube_lease_patch(&w, "41", &out, NULL), 0);
	assert_string_equal(str_text(&out),
			    "{\"metadata\":{\"resourceVersion\":\"41\"},\"spec\":{\"holderIdentity\":\"me_\\\"1\\\"\","
			    "\"leaseDurationSeconds\":15,\"leaseTransitions\":4,"
			    "\"renewTime\":\"2025-11-30T08:00:02.007000Z\"}}");
}

static int make(void *arg)
{
	struct kube_lease_write w = { "me", 15, 0, 1, 1 };
	hm_auto_str patch = { 0 }, text = { 0 };

	(void)arg;
	if (kube_lease_patch(&w, "41", &patch, NULL) < 0)
		return -1;
	return kube_lease_text(&w, "hami", &text, NULL);
}

static void memory_runs_out(void **state)
{
	(void)state;
	sweep_check("lease", make, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_client_go_writes),
		cmocka_unit_test(an_empty_one_is_nobodys),
		cmocka_unit_test(refuses_what_makes_no_sense),
		cmocka_unit_test(a_duration_has_an_end),
		cmocka_unit_test(texts),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
