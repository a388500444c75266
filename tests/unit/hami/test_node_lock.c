#include "hami/node_lock.h"

#include <string.h>

#include "core/fmt.h"

#include "harness/unit.h"

static void test_parse(void **state)
{
	/* Seconds by date(1): date -ud 2026-08-21T06:20:39Z +%s */
	static const struct {
		const char *value;
		int64_t taken_s;
		const char *pod_namespace, *pod_name;
	} good[] = {
		{ "2026-08-21T06:20:39Z,default,pod-a", 1787293239, "default", "pod-a" },
		{ "2026-08-21T14:20:39+08:00,default,pod-a", 1787293239, "default", "pod-a" },
		{ "2026-08-20T22:50:39-07:30,n,p", 1787293239, "n", "p" },
		{ "2026-08-21T06:20:39.123456789Z,n,p", 1787293239, "n", "p" },
		{ "2026-08-21T06:20:39Z", 1787293239, "", "" },
		{ "2026-08-21T06:20:39Z,,", 1787293239, "", "" },
		{ "1970-01-01T00:00:00Z", 0, "", "" },
		{ "1969-12-31T23:59:59Z", -1, "", "" },
		{ "2000-02-29T00:00:00Z", 951782400, "", "" },
		{ "2024-03-01T00:00:00Z", 1709251200, "", "" },
		{ "9999-12-31T23:59:59Z", 253402300799, "", "" },
		{ "0001-01-01T00:00:00Z", -62135596800, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(good); i++) {
		struct node_lock lock;
		struct hm_err e;

		assert_int_equal(node_lock_parse(good[i].value, &lock, &e), 0);
		assert_true(lock.taken_s == good[i].taken_s);
		assert_string_equal(lock.pod_namespace, good[i].pod_namespace);
		assert_string_equal(lock.pod_name, good[i].pod_name);
	}
}

static void test_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"garbage",
		"2026-08-21T06:20:39Z,default",
		"2026-08-21T06:20:39Z,default,pod,more",
		",default,pod",
		"yesterday,default,pod",
		"2026-08-21",
		"2026-08-21T06:20:39",
		"2026-08-21 06:20:39Z",
		"2026-8-21T06:20:39Z",
		"2026-02-29T00:00:00Z",
		"2100-02-29T00:00:00Z",
		"2026-13-01T00:00:00Z",
		"2026-00-01T00:00:00Z",
		"2026-01-00T00:00:00Z",
		"2026-01-01T24:00:00Z",
		"2026-01-01T00:60:00Z",
		"2026-01-01T00:00:60Z",
		"2026-01-01T00:00:00.Z",
		"2026-01-01T00:00:00+0800",
		"2026-01-01T00:00:00+25:00",
		"2026-01-01T00:00:00Zx",
		"2026-01-01T00:00:0",
		"+026-01-01T00:00:00Z",
	};
	char name[NODE_LOCK_NAME_BYTES + 1], value[NODE_LOCK_NAME_BYTES + 64];

	(void)state;
	for (size_t i = 0; i < HM_COUNT(bad); i++) {
		struct node_lock lock;
		struct hm_err e = { 0 };

		assert_int_equal(node_lock_parse(bad[i], &lock, &e), -HM_EPROTO);
		assert_non_null(strstr(e.msg, bad[i]));
	}
	for (size_t n = NODE_LOCK_NAME_BYTES - 1; n <= NODE_LOCK_NAME_BYTES; n++) {
		struct node_lock lock;
		struct hm_err e;

		memset(name, 'a', n);
		name[n] = '\0';
		(void)hm_fmt(value, sizeof value, "2026-01-01T00:00:00Z,n,%s", name);
		assert_int_equal(node_lock_parse(value, &lock, &e), n < NODE_LOCK_NAME_BYTES ? 0 : -HM_EPROTO);
	}
}

static void test_write(void **state)
{
	const struct node_lock lock = { 1787293239, "default", "pod-a" };
	hm_auto_str out = { 0 };

	(void)state;
	node_lock_write(&lock, &out);
	assert_string_equal(str_text(&out), "2026-08-21T06:20:39Z,default,pod-a");
}

static void test_owner(void **state)
{
	static const struct {
		const char *value;
		bool released;
	} cases[] = {
		{ "2026-08-21T06:20:39Z,ns,pod", true },
		{ "anything,ns,pod", true },
		{ ",ns,pod", true },
		{ "2026-08-21T06:20:39Z,ns,pod-b", false },
		{ "2026-08-21T06:20:39Z,other-ns,pod", false },
		{ "2026-08-21T06:20:39Z,ns,a-pod", false },
		{ "2026-08-21T06:20:39Z,ns,pod,", false },
		{ "ns,pod", false },
		{ ",", false },
		{ "2026-08-21T06:20:39Z", true },
		{ "garbage", true },
		{ "", true },
		{ NULL, false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++)
		assert_int_equal(node_lock_releasable(cases[i].value, "ns", "pod"), cases[i].released);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_write),
		cmocka_unit_test(test_owner),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
