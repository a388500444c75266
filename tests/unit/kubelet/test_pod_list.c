#include "kubelet/pod_list.h"

#include <string.h>

#include "core/macros.h"
#include "harness/sweep.h"
#include "harness/unit.h"

/* Of pods "p" and "q" in "n": container "c" with devices i, j of r (in two entries, as kubelets list them) and k of s;
 * container "d" with none; q's container "e" with l of r. */
static const char whole[] = "\x0a\x2a\x0a\x01p\x12\x01n\x1a\x1b\x0a\x01"
			    "c\x12\x06\x0a\x01r\x12\x01i\x12\x06\x0a\x01r\x12\x01j\x12\x06\x0a\x01s\x12\x01k"
			    "\x1a\x05\x0a\x03"
			    "ddd\x0a\x13\x0a\x01q\x12\x01n\x1a\x0b\x0a\x01"
			    "e\x12\x06\x0a\x01r\x12\x01l";

static void every_container_is_listed_with_its_ids_of_the_resource(void **state)
{
	static const struct {
		const char *resource;
		const char *ids[2];
		size_t id_counts[3];
	} rows[] = {
		{ "r", { "i", "j" }, { 2, 0, 1 } },
		{ "s", { "k" }, { 1, 0, 0 } },
		{ "t", { NULL }, { 0, 0, 0 } },
		{ "", { NULL }, { 0, 0, 0 } },
	};
	static const char *const pods[] = { "p", "p", "q" }, *const names[] = { "c", "ddd", "e" };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		pod_list_auto struct pod_list l = { 0 };
		struct hm_err e;

		if (pod_list_read(whole, sizeof whole - 1, rows[i].resource, &l, &e) < 0)
			fail_msg("%s", e.msg);
		assert_int_equal(l.count, 3);
		for (size_t k = 0; k < 3; k++) {
			assert_string_equal(l.containers[k].pod, pods[k]);
			assert_string_equal(l.containers[k].pod_namespace, "n");
			assert_string_equal(l.containers[k].container, names[k]);
			assert_int_equal(l.containers[k].id_count, rows[i].id_counts[k]);
		}
		for (size_t k = 0; k < rows[i].id_counts[0]; k++)
			assert_string_equal(l.containers[0].ids[k], rows[i].ids[k]);
	}
}

static void any_resource_is_an_entry_for_each(void **state)
{
	/* The same with an id that is none beside it: left out, since it may be another plugin's. */
	static const char odd[] = "\x0a\x1b\x0a\x01p\x12\x01n\x1a\x13\x0a\x01"
				  "c\x12\x06\x0a\x01r\x12\x01\n\x12\x06\x0a\x01s\x12\x01k";
	pod_list_auto struct pod_list l = { 0 }, few = { 0 };
	struct hm_err e;

	(void)state;
	assert_int_equal(pod_list_read(whole, sizeof whole - 1, NULL, &l, &e), 0);
	assert_int_equal(l.count, 4);
	assert_int_equal(l.containers[0].id_count, 2);
	assert_string_equal(l.containers[1].container, "c");
	assert_string_equal(l.containers[1].ids[0], "k");
	assert_string_equal(l.containers[2].container, "ddd");
	assert_int_equal(l.containers[2].id_count, 0);
	assert_string_equal(l.containers[3].container, "e");
	assert_int_equal(pod_list_read(odd, sizeof odd - 1, NULL, &few, &e), 0);
	assert_int_equal(few.count, 1);
	assert_string_equal(few.containers[0].ids[0], "k");
}

static void bad_answers_say_what_is_bad(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		int code;
		const char *text;
	} rows[] = {
		{ whole, sizeof whole - 2, HM_EPROTO, "are no ListPodResourcesResponse" },
		/* an empty pod name; a container name with a space; an id with a line end */
		{ "\x0a\x10\x12\x01n\x1a\x0b\x0a\x01"
		  "c\x12\x06\x0a\x01r\x12\x01i",
		  18, HM_EPROTO, "pod 0: a name is not" },
		{ "\x0a\x13\x0a\x01p\x12\x01n\x1a\x0b\x0a\x01 \x12\x06\x0a\x01r\x12\x01i", 21, HM_EPROTO,
		  "pod 0: a name is not" },
		{ "\x0a\x13\x0a\x01p\x12\x01n\x1a\x0b\x0a\x01"
		  "c\x12\x06\x0a\x01r\x12\x01\n",
		  21, HM_EINVAL, "device_ids: id 0 is not" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		pod_list_auto struct pod_list l = { 0 };
		struct hm_err e;

		assert_int_equal(pod_list_read(rows[i].bytes, rows[i].n, "r", &l, &e), -rows[i].code);
		if (strstr(e.msg, rows[i].text) == NULL)
			fail_msg("row %zu: %s", i, e.msg);
	}
}

static int scenario(void *arg)
{
	pod_list_auto struct pod_list l = { 0 };
	struct hm_err e;
	int r = pod_list_read(whole, sizeof whole - 1, "r", &l, &e);

	(void)arg;
	assert_int_equal(r, r < 0 ? -HM_ENOMEM : 0);
	return r;
}

static void sweep(void **state)
{
	(void)state;
	sweep_check("pod_list_read", scenario, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_container_is_listed_with_its_ids_of_the_resource),
		cmocka_unit_test(any_resource_is_an_entry_for_each),
		cmocka_unit_test(bad_answers_say_what_is_bad),
		cmocka_unit_test(sweep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
