#include "agent/options/runtime.h"

#include <stdio.h>

#include "harness/temp.h"
#include "harness/unit.h"

static void what_does_cdi_by_itself(void **state)
{
	static const struct {
		const char *container;
		bool cdi;
	} cases[] = {
		{ "containerd://2.2.9", true },
		{ "containerd://2.0.0-rc.3", true },
		{ "containerd://v2.1.4", true },
		{ "containerd://1.7.27", false },
		{ "containerd://1.6.20", false },
		{ "containerd://10.0.0", true },
		{ "cri-o://1.23.0", true },
		{ "cri-o://1.22.5", false },
		{ "cri-o://2.0.0", true },
		{ "docker://29.1.0", false },
		{ "containerd://", false },
		{ "containerd://two", false },
		{ "containerd://2", false },
		{ "containerd", false },
		{ "", true }, /* not known yet */
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct runtime r = { 0 };

		snprintf(r.container, sizeof r.container, "%s", cases[i].container);
		if (runtime_does_cdi(&r) != cases[i].cdi)
			fail_msg("%s", cases[i].container);
	}
}

static void who_needs_the_annotation(void **state)
{
	static const struct {
		const char *kubelet;
		bool wants;
	} cases[] = {
		{ "v1.28.15", true },     { "v1.29.0", false }, { "v1.20.2-eks-1", true }, { "v1.34.4+k3s1", false },
		{ "v1.29+alpha", false }, { "", false },        { "v2.0.0", false },       { "odd", false },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(cases); i++) {
		struct runtime r = { 0 };

		snprintf(r.kubelet, sizeof r.kubelet, "%s", cases[i].kubelet);
		if (runtime_wants_annotations(&r) != cases[i].wants)
			fail_msg("%s", cases[i].kubelet);
	}
}

static void kept_in_a_file(void **state)
{
	static const char *const odd[] = { "", "v1.34.4\n", "v1.34.4\ncontainerd://2.2.9", "a\nb\nc\n" };
	const struct runtime r = { "v1.34.4", "containerd://2.2.9" }, none = { 0 };
	struct runtime read = { "x", "y" };
	struct hm_err e;

	(void)state;
	runtime_read(temp_path("runtime"), &read);
	assert_true(runtime_equal(&read, &none));
	assert_int_equal(runtime_write(temp_path("runtime"), &r, &e), 0);
	runtime_read(temp_path("runtime"), &read);
	assert_true(runtime_equal(&read, &r));
	assert_false(runtime_equal(&read, &none));
	for (size_t i = 0; i < HM_COUNT(odd); i++) {
		temp_write("runtime", odd[i]);
		runtime_read(temp_path("runtime"), &read);
		assert_true(runtime_equal(&read, &none));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_cdi_by_itself),
		cmocka_unit_test(who_needs_the_annotation),
		cmocka_unit_test_setup_teardown(kept_in_a_file, temp_setup, temp_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
