#include "agent/cluster/pod_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "harness/unit.h"
#include "io/json.h"

#define META "\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u-1\",\"resourceVersion\":\"7\""
#define GPU "\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}"

static struct pod_view *read_pod(const char *text)
{
	hm_auto(cJSON) *tree = NULL;
	struct kube_object o;
	struct pod_view *v = NULL;
	struct hm_err e = { 0 };

	assert_int_equal(json_parse(text, strlen(text), &tree, &e), 0);
	assert_int_equal(kube_object_read(tree, &o, &e), 0);
	assert_int_equal(pod_view_new(&o, "nvidia.com/gpu", &v, &e), 0);
	return v; /* nothing in it may point into the tree, which is gone now */
}

static void who_and_where(void **state)
{
	hm_auto(pod_view) *v = read_pod("{" META ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},"
					"\"spec\":{\"nodeName\":\"n1\",\"containers\":[]},"
					"\"status\":{\"phase\":\"Failed\"}}");

	(void)state;
	assert_string_equal(v->uid, "u-1");
	assert_string_equal(v->name_space, "ns");
	assert_string_equal(v->name, "p");
	assert_string_equal(v->phase, "Failed");
	assert_true(v->terminal);
	assert_true(v->deleting);
	assert_null(v->trouble);
	assert_true(pod_view_is_bound_to(v, "n1"));
	assert_false(pod_view_is_bound_to(v, "n"));
	assert_false(pod_view_is_bound_to(v, ""));
}

static void containers_in_order_init_first(void **state)
{
	static const struct {
		const char *name;
		enum pod_container_kind kind;
		uint32_t gpus;
		enum pod_container_state state;
	} want[] = {
		{ "i1", POD_INIT, 2, POD_TERMINATED }, { "side", POD_SIDECAR, 1, POD_RUNNING },
		{ "a", POD_APP, 0, POD_WAITING },      { "b", POD_APP, 3, POD_WAITING },
		{ "c", POD_APP, 2000, POD_WAITING },
	};
	hm_auto(pod_view) *v =
		read_pod("{" META "},\"spec\":{\"containers\":["
			 "{\"name\":\"a\",\"resources\":{\"limits\":{\"cpu\":\"1\",\"nvidia.com/gpumem\":\"5\"}}},"
			 "{\"name\":\"b\",\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"3\"}}},"
			 "{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/"
			 "gpu\":\"2k\"},\"requests\":{\"nvidia.com/gpu\":\"9\"}}}],"
			 "\"initContainers\":[{\"name\":\"i1\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"2\"}}},"
			 "{\"name\":\"side\",\"restartPolicy\":\"Always\"," GPU "}]},"
			 "\"status\":{\"initContainerStatuses\":[{\"name\":\"side\",\"state\":{\"running\":{}}},"
			 "{\"name\":\"i1\",\"state\":{\"terminated\":{\"exitCode\":0}}}],"
			 "\"containerStatuses\":[{\"name\":\"a\",\"state\":{\"waiting\":{}}},{\"name\":\"zz\"}]}}");

	(void)state;
	assert_int_equal(v->container_count, HM_COUNT(want));
	for (size_t i = 0; i < HM_COUNT(want); i++) {
		assert_string_equal(v->containers[i].name, want[i].name);
		assert_int_equal(v->containers[i].kind, want[i].kind);
		assert_int_equal(v->containers[i].gpus, want[i].gpus);
		assert_int_equal(v->containers[i].state, want[i].state);
	}
	assert_ptr_equal(pod_view_container(v, "b"), &v->containers[3]);
	assert_null(pod_view_container(v, "none"));
}

/* Go's ParseBool, on literal values; one that is true counts whatever follows. */
static void environment(void **state)
{
	static const struct {
		const char *env;
		bool disable;
		const char *priority, *policy;
	} rows[] = {
		{ "", false, "", "" },
		{ "{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"true\"}", true, "", "" },
		{ "{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"T\"}", true, "", "" },
		{ "{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"yes\"}", false, "", "" },
		{ "{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"\"}", false, "", "" },
		{ "{\"name\":\"CUDA_DISABLE_CONTROL\",\"valueFrom\":{}}", false, "", "" },
		{ "{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"1\"},"
		  "{\"name\":\"CUDA_DISABLE_CONTROL\",\"value\":\"0\"}",
		  true, "", "" },
		{ "{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"0\"},{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"1\"}",
		  false, "1", "" },
		{ "{\"name\":\"GPU_CORE_UTILIZATION_POLICY\",\"value\":\"force\"},{\"value\":\"nameless\"}", false, "",
		  "force" },
		{ "{\"name\":\"GPU_CORE_UTILIZATION_POLICY\",\"value\":\"0123456789abcdef\"}", false, "", "" },
		{ "{\"name\":\"GPU_CORE_UTILIZATION_POLICY\",\"value\":\"force\"},"
		  "{\"name\":\"GPU_CORE_UTILIZATION_POLICY\",\"valueFrom\":{}}",
		  false, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str text = { 0 };

		str_addf(&text, "{" META "},\"spec\":{\"containers\":[{\"name\":\"c\",\"env\":[%s]}]}}", rows[i].env);
		hm_auto(pod_view) *v = read_pod(str_text(&text));
		assert_int_equal(v->containers[0].disable_control, rows[i].disable);
		assert_string_equal(v->containers[0].priority, rows[i].priority);
		assert_string_equal(v->containers[0].policy, rows[i].policy);
	}
}

static void annotations(void **state)
{
	hm_auto(pod_view) *v =
		read_pod("{" META ",\"annotations\":{\"hami.io/vgpu-devices-allocated\":\"A,NVIDIA,1,2:;\","
			 "\"hami.io/vgpu-devices-to-allocate\":\"\",\"hami.io/bind-phase\":5,\"x\":\"y\"}},"
			 "\"spec\":{\"containers\":[{\"name\":\"c\"," GPU "}]}}");
	hm_auto(pod_view) *other =
		read_pod("{" META ",\"annotations\":{\"hami.io/vgpu-devices-allocated\":\"A,NVIDIA,1,2:;\"}},"
			 "\"spec\":{\"containers\":[{\"name\":\"c\"}]}}");

	(void)state;
	assert_string_equal(pod_view_text(v, POD_ALLOCATED), "A,NVIDIA,1,2:;");
	assert_non_null(v->annotations[POD_TO_ALLOCATE]);
	assert_string_equal(pod_view_text(v, POD_TO_ALLOCATE), "");
	assert_null(v->annotations[POD_BIND_PHASE]); /* no text */
	assert_string_equal(pod_view_text(v, POD_SIGNATURE), "");
	assert_null(other->annotations[POD_ALLOCATED]); /* none of ours */
}

static void what_is_wrong_is_kept(void **state)
{
	static const struct {
		const char *spec, *want;
	} rows[] = {
		{ "{}", "a pod without containers" },
		{ "{\"containers\":[{}]}", "a container without a name, or with one of more than 63 bytes" },
		{ "{\"containers\":[{\"name\":"
		  "\"0123456789012345678901234567890123456789012345678901234567890123\"}]}",
		  "a container without a name, or with one of more than 63 bytes" },
		{ "{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1500m\"}}}]}",
		  "container c asks for \"1500m\" of nvidia.com/gpu, which is no count" },
		{ "{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"-1\"}}}]}",
		  "container c asks for \"-1\" of nvidia.com/gpu, which is no count" },
		{ "{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"5G\"}}}]}",
		  "container c asks for \"5G\" of nvidia.com/gpu, which is no count" },
		{ "{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"k\"}}}]}",
		  "container c asks for \"k\" of nvidia.com/gpu, which is no count" },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str text = { 0 };

		str_addf(&text, "{" META "},\"spec\":%s,\"status\":{\"phase\":\"Running\"}}", rows[i].spec);
		hm_auto(pod_view) *v = read_pod(str_text(&text));
		assert_string_equal(v->trouble, rows[i].want);
		assert_int_equal(v->container_count, 0);
		assert_string_equal(v->phase, "Running");
	}
}

static void bounds(void **state)
{
	hm_auto_str many = { 0 }, text = { 0 };

	(void)state;
	for (int i = 0; i <= POD_MAX_CONTAINERS; i++)
		str_addf(&many, "%s{\"name\":\"c%d\"}", i > 0 ? "," : "", i);
	str_addf(&text, "{" META "},\"spec\":{\"containers\":[%s]}}", str_text(&many));
	hm_auto(pod_view) *v = read_pod(str_text(&text));
	assert_string_equal(v->trouble, "1025 containers; at most 1024");

	str_clear(&text);
	str_add(&text, "{" META ",\"annotations\":{\"hami.io/vgpu-signature\":\"");
	for (int i = 0; i <= POD_MAX_ANNOTATION_BYTES; i++)
		str_addc(&text, 'x');
	str_add(&text, "\"}},\"spec\":{\"containers\":[{\"name\":\"c\"," GPU "}]}}");
	hm_auto(pod_view) *w = read_pod(str_text(&text));
	assert_string_equal(w->trouble, "annotation hami.io/vgpu-signature is longer than 262144 bytes");
	assert_int_equal(w->container_count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_and_where), cmocka_unit_test(containers_in_order_init_first),
		cmocka_unit_test(environment),   cmocka_unit_test(annotations),
		cmocka_unit_test(bounds),        cmocka_unit_test(what_is_wrong_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
