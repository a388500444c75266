/* What stands around hami_late: steering, the second source, claims that were lost. */
#include "agent/hami/hami_lookup.h"
#include "agent/hami/hami_rebuild.h"
#include "agent/hami/hami_steer.h"

#include "core/fmt.h"
#include "hami_world.h"
#include "unit/agent/checkpoint_text.h"

/* ---- GetPreferredAllocation */

static void checkpoint_has(const char *pod, const char *container)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{\"Data\":{\"PodDeviceEntries\":[{\"PodUID\":\"%s\",\"ContainerName\":\"%s\",\"ResourceName\":"
		 "\"nvidia.com/"
		 "gpu\",\"DeviceIDs\":{\"-1\":[\"GPU-0-0-0-0-a-9\"]},\"AllocResp\":\"\"}],\"RegisteredDevices\":{}},"
		 "\"Checksum\":1}",
		 pod, container);
	temp_write("new", str_text(&text));
	assert_int_equal(rename(temp_path("new"), w.path), 0);
}

/* The ids that are preferred, blanks between. */
static const char *prefer(const char *const *available, size_t count, const char *const *must, size_t must_count,
			  int64_t size)
{
	static char out[512];
	const struct dp_preferred_request req = { available, must, count, must_count, size };
	const char *ids[16];
	size_t n, at = 0;
	struct hm_err e;

	assert_int_equal(hami_late_prefer(w.late, &req, ids, &n, &e), 0);
	out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		at += hm_fmt(out + at, sizeof out - at, "%s%s", i > 0 ? " " : "", ids[i]);
	return out;
}

static void steered_to_the_schedulers_cards(void **state)
{
	static const char *const all[] = { "GPU-0-0-0-0-a-0", "GPU-0-0-0-0-a-1", "GPU-0-0-0-0-a-2",
					   "GPU-0-0-0-0-b-0", "GPU-0-0-0-0-b-1", "GPU-0-0-0-0-b-2" };
	static const char *const must_b[] = { "GPU-0-0-0-0-b-2" }, *const only_a[] = { "GPU-0-0-0-0-a-1",
										       "GPU-0-0-0-0-a-2" };
	const struct hami_late_config config = { 0 };

	(void)state;
	begin(&config);
	assert_string_equal(prefer(all, 6, NULL, 0, 2), "GPU-0-0-0-0-a-0 GPU-0-0-0-0-a-1"); /* nobody is known */
	assert_int_equal(stats().not_steered, 1);
	tell_pod("done", "1", "Pending", "GPU-0-0-0-0-a,NVIDIA,1,1:;", PHASE("success"));
	tell_pod("b", "12", "Pending", "GPU-0-0-0-0-b,NVIDIA,1,1:;GPU-0-0-0-0-a,NVIDIA,1,1:GPU-0-0-0-0-b,NVIDIA,1,1:;",
		 ALLOCATING);
	tell_pod("later", "1", "Pending", "GPU-0-0-0-0-a,NVIDIA,1,1:;", ALLOCATING);
	assert_string_equal(prefer(all, 6, NULL, 0, 1), "GPU-0-0-0-0-b-0");
	assert_string_equal(prefer(all, 6, NULL, 0, 2), "GPU-0-0-0-0-a-0 GPU-0-0-0-0-b-0");
	assert_string_equal(prefer(all, 6, must_b, 1, 2), "GPU-0-0-0-0-b-2 GPU-0-0-0-0-a-0");
	assert_string_equal(prefer(only_a, 2, NULL, 0, 1), "GPU-0-0-0-0-a-1"); /* none of B's is left: never an error */
	assert_string_equal(prefer(only_a, 2, NULL, 0, 3), "GPU-0-0-0-0-a-1 GPU-0-0-0-0-a-2");
	assert_string_equal(prefer(all, 6, NULL, 0, 0), "");
	assert_string_equal(prefer(all, 6, NULL, 0, -1), "");
	checkpoint_has("uid-b", "c0");
	assert_string_equal(prefer(all, 6, NULL, 0, 1), "GPU-0-0-0-0-a-0"); /* the next pod's turn */
	put_claim(w.claims, make_claim(5, "uid-x", "hami.io/vgpu=v.5", "GPU-0-0-0-0-a-0", "GPU-0-0-0-0-a-1"));
	assert_string_equal(prefer(all, 6, NULL, 0, 1), "GPU-0-0-0-0-a-2"); /* what a live claim has comes last */
	put_claim(w.claims, make_claim(6, "uid-y", "hami.io/vgpu=v.6", "GPU-0-0-0-0-a-2", NULL));
	assert_string_equal(prefer(all, 6, NULL, 0, 1), "GPU-0-0-0-0-a-0");
	end();
}

/* ---- without the checkpoint: the kubelet's list is the test's */

static struct pod_lookup_found listed;
static int listed_code;

int __wrap_pod_lookup_find(struct pod_lookup *p, const char *const *ids, size_t count, struct pod_lookup_found *out,
			   struct hm_err *e);
int __wrap_pod_lookup_find(struct pod_lookup *p, const char *const *ids, size_t count, struct pod_lookup_found *out,
			   struct hm_err *e)
{
	(void)p, (void)ids, (void)count;
	*out = listed;
	return listed_code < 0 ? hm_err_set(e, -listed_code, "says the test") : 0;
}

/* A pod of an init container i and a main one c, one device each, equal or not; the status of i. */
static void tell_init_pod(const char *allocated, const char *state)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{'metadata':{'name':'a','namespace':'ns','uid':'uid-a','resourceVersion':'1','annotations':{"
		 "'hami.io/vgpu-node':'node-1','hami.io/vgpu-devices-allocated':'%s'}},'spec':{'nodeName':'node-1',"
		 "'initContainers':[{'name':'i','resources':{'limits':{'nvidia.com/gpu':'1'}}}],"
		 "'containers':[{'name':'c','resources':{'limits':{'nvidia.com/gpu':'1'}}}]},"
		 "'status':{'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'%s':{}}}]}}",
		 allocated, state);
	fake_watch(str_text(&text), false);
}

#define EQUAL "GPU-0-0-0-0-a,NVIDIA,5,5:;GPU-0-0-0-0-a,NVIDIA,5,5:;"
#define OTHER "GPU-0-0-0-0-a,NVIDIA,4,5:;GPU-0-0-0-0-a,NVIDIA,5,5:;"

static void the_list_counts_where_nothing_else_may_be_meant(void **state)
{
	static const struct {
		const char *allocated, *init_state, *listed_pod;
		int code;
		const char *says; /* or the container */
	} rows[] = {
		{ EQUAL, "waiting", "a", 0, "c" },
		{ OTHER, "terminated", "a", 0, "c" },
		{ OTHER, "waiting", "a", -HM_EAGAIN,
		  "does not say whether container c or init container i of pod ns/a" },
		{ OTHER, "running", "a", -HM_EAGAIN, "does not say" },
		{ EQUAL, "waiting", "b", -HM_EAGAIN, "has not told of pod ns/b" },
		{ EQUAL, "waiting", NULL, -HM_EAGAIN, "says the test" },
	};
	static const char *const ids[] = { "GPU-0-0-0-0-a-0" };
	const struct hami_late_config config = { .lookup = (struct pod_lookup *)&w };

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const struct prestart_target target = { .number = 7 };
		struct claim c = { 0 };
		struct hm_err e = { 0 };

		begin(&config);
		tell_init_pod(rows[i].allocated, rows[i].init_state);
		listed_code = rows[i].listed_pod == NULL ? -HM_EAGAIN : 0;
		listed = (struct pod_lookup_found) { "ns", "", "c" };
		snprintf(listed.pod, sizeof listed.pod, "%s", rows[i].listed_pod != NULL ? rows[i].listed_pod : "");
		assert_int_equal(hami_late_start(w.late, &target, ids, 1, NULL, &w.inventory, &c, &e), rows[i].code);
		if (rows[i].code == 0) {
			assert_string_equal(c.container, rows[i].says);
			assert_string_equal(c.pod_uid, "uid-a");
			assert_int_equal(c.cards[0].memory_bytes, 5 << 20);
		} else if (strstr(e.msg, rows[i].says) == NULL) {
			fail_msg("\"%s\" does not say \"%s\"", e.msg, rows[i].says);
		}
		claim_fini(&c);
		end();
	}
}

/* ---- claims that were lost */

static void lost_claims(void **state)
{
	const struct hami_late_config config = { 0 };
	struct hm_err e;

	(void)state;
	begin(&config);
	const struct hami_rebuild_config rebuild = { "/s/alloc", w.late, w.claims, w.pods, w.checkpoint };

	assert_int_equal(hami_rebuild(&rebuild, &w.inventory, &e), 0); /* no checkpoint: nothing held */
	temp_write(
		"kubelet_internal_checkpoint",
		"{\"Data\":{\"PodDeviceEntries\":["
		"{\"PodUID\":\"uid-runs\",\"ContainerName\":\"c0\",\"ResourceName\":\"nvidia.com/gpu\",\"DeviceIDs\":"
		"{\"-1\":[\"GPU-0-0-0-0-a-9\"]},\"AllocResp\":\"" CDI_5 "\"},"
		"{\"PodUID\":\"uid-waits\",\"ContainerName\":\"c0\",\"ResourceName\":\"nvidia.com/gpu\",\"DeviceIDs\":"
		"{\"-1\":[\"GPU-0-0-0-0-a-8\"]},\"AllocResp\":\"" CDI_6
		"\"}],\"RegisteredDevices\":{}},\"Checksum\":1}");
	tell_pod("runs", "1", "Running", "GPU-0-0-0-0-b,NVIDIA,77,7:;", PHASE("success"));
	tell_pod("waits", "1", "Pending", "GPU-0-0-0-0-b,NVIDIA,88,8:;", ALLOCATING);
	assert_int_equal(hami_rebuild(&rebuild, &w.inventory, &e), 1);
	assert_int_equal(claims_count(w.claims), 1);
	assert_int_equal(claims_find(w.claims, 5)->state, CLAIM_ACTIVE);
	assert_int_equal(claims_find(w.claims, 5)->cards[0].memory_bytes, 77 << 20);
	assert_string_equal(claims_find(w.claims, 5)->devices[0], "GPU-0-0-0-0-a-9");
	assert_int_equal(hami_rebuild(&rebuild, &w.inventory, &e), 0);
	temp_write("kubelet_internal_checkpoint", "torn");
	assert_int_equal(hami_rebuild(&rebuild, &w.inventory, &e), -HM_EAGAIN);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(steered_to_the_schedulers_cards),
		TEST(the_list_counts_where_nothing_else_may_be_meant),
		TEST(lost_claims),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
