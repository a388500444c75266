#include "sched/view/pod_hold.h"

#include <stdio.h>

#include "harness/json_of.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "model/placement/cluster.h"
#include "unit/hami/signed_placement.h"

#define SIGNED "'hami.io/vgpu-time':'1787293239','hami.io/vgpu-signature':'v1.2026-11." PLAIN_BY_1 "'"

#define NODE "'hami.io/vgpu-node':'node-1'"
#define TEXT(t) "'hami.io/vgpu-devices-allocated':'" t "'"
#define ONE NODE "," TEXT("GPU-a,NVIDIA,3000,30:;")
#define GPU(n) "'resources':{'limits':{'nvidia.com/gpu':'" #n "','nvidia.com/gpumem':'3000'}}"
#define APP "'containers':[{'name':'a'," GPU(1) "}]"
#define POD_OF(meta, annotations, spec, status)                                                                        \
	"{'metadata':{'name':'p','namespace':'ns','uid':'" POD_UID "'" meta ",'annotations':{" annotations             \
	"}},'spec':{" spec "},'status':{" status "}}"
#define RUN(annotations, spec, status) POD_OF("", annotations, "'nodeName':'node-1'," spec, status)
#define BOUND(annotations, spec) RUN(annotations, spec, "'phase':'Running'")

static const struct pod_rules rules = {
	"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", { 1, 0, 0 },
};
static const struct pod_trust anyone = { NULL, false };

static void who_holds(void **state)
{
	static const struct {
		const char *pod;
		bool holds;
	} rows[] = {
		{ BOUND(ONE, APP), true },
		{ POD_OF("", ONE, "'nodeName':'node-1'," APP, "'phase':'Pending'"), true },
		{ POD_OF("", ONE, "'nodeName':'node-1'," APP, ""), true },
		{ POD_OF("", ONE, "'nodeName':'node-1'," APP, "'phase':'Succeeded'"), false },
		{ POD_OF("", ONE, "'nodeName':'node-1'," APP, "'phase':'Failed'"), false },
		{ POD_OF("", ONE, APP, "'phase':'Pending'"), false },
		{ POD_OF("", ONE, "'nodeName':''," APP, "'phase':'Pending'"), false },
		{ POD_OF("", ONE, "'nodeName':'node-2'," APP, "'phase':'Running'"), false },
		{ BOUND(TEXT("GPU-a,NVIDIA,3000,30:;"), APP), false },
		{ BOUND("", APP), false },
		/* Nothing is said, or something else, and it runs: they were given to it. */
		{ RUN("", APP, "'containerStatuses':[{'name':'a','state':{'waiting':{}}}]"), false },
		{ RUN("", APP, "'containerStatuses':[{'name':'a','state':{'running':{}}}]"), true },
		{ RUN("", APP, "'initContainerStatuses':[{'name':'i','state':{'terminated':{}}}]"), true },
		{ RUN("", APP, "'containerStatuses':[{},{'lastState':{'terminated':{}},'state':{'waiting':{}}}]"),
		  true },
		{ RUN("'hami.io/vgpu-node':'node-2'", APP, "'containerStatuses':[{'state':{'running':{}}}]"), true },
		{ RUN("", "'containers':[{'name':'a'}]", "'containerStatuses':[{'state':{'running':{}}}]"), false },
		/* Its author wrote annotations and asks for nothing: no agent gives it anything. */
		{ BOUND(ONE, "'containers':[{'name':'a'}]"), false },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cJSON) *pod = json_of(rows[i].pod);
		hm_auto_pod_hold h = { 0 };
		struct hm_err e = { 0 };

		assert_int_equal(pod_hold_read(pod, &rules, &anyone, &h, &e), 0);
		if (h.holds != rows[i].holds)
			fail_msg("row %zu", i);
		if (strstr(rows[i].pod, "Statuses") == NULL) {
			assert_int_equal(h.doubt.code, 0);
		} else if (h.holds) {
			assert_string_equal(h.doubt.msg, "it runs with cards, and hami.io/vgpu-node does not say that "
							 "they are of its node");
			assert_true(h.hold.unreadable);
			assert_int_equal(h.hold.asks[0].memory_mib, 3000);
		}
	}
}

static void check_share(const struct hold_share *s, uint32_t container, const char *uuid, int32_t memory_mib,
			int32_t cores)
{
	assert_int_equal(s->container, container);
	assert_string_equal(s->uuid, uuid);
	assert_int_equal(s->memory_mib, memory_mib);
	assert_int_equal(s->cores, cores);
}

static void what_is_held(void **state)
{
	hm_auto(cJSON) *pod =
		json_of(POD_OF(",'deletionTimestamp':'2026-01-01T00:00:00Z'",
			       NODE "," TEXT("GPU-a,NVIDIA,8000,0:;;GPU-b,NVIDIA,2000,10:GPU-a,NVIDIA,1000,5:;"),
			       "'nodeName':'node-1','initContainers':[{'name':'i'," GPU(
				       1) "}],"
					  "'containers':[{'name':'a'},{'name':'b'," GPU(2) "}]",
			       "'phase':'Running'"));
	hm_auto_pod_hold h = { 0 };

	(void)state;
	assert_int_equal(pod_hold_read(pod, &rules, &anyone, &h, NULL), 0);
	assert_string_equal(h.hold.uid, POD_UID);
	assert_string_equal(h.hold.name_space, "ns");
	assert_string_equal(h.hold.name, "p");
	assert_string_equal(h.hold.node, "node-1");
	assert_int_equal(h.hold.state, HOLD_TERMINATING);
	assert_false(h.hold.unreadable);
	assert_int_equal(h.hold.ask_count, 3);
	assert_int_equal(h.hold.share_count, 3);
	check_share(&h.hold.shares[0], 0, "GPU-a", 8000, 0);
	check_share(&h.hold.shares[1], 2, "GPU-b", 2000, 10);
	check_share(&h.hold.shares[2], 2, "GPU-a", 1000, 5);
	assert_null(h.hold.shares[0].profile);
}

/* Entries are no container's: all counted, as if they ran together. */
static void too_many_entries(void **state)
{
	hm_auto(cJSON) *pod =
		json_of(BOUND(NODE "," TEXT("GPU-a,NVIDIA,1,0:;GPU-a,NVIDIA,2,0:;GPU-a,NVIDIA,3,0:;"), APP));
	hm_auto_pod_hold h = { 0 };

	(void)state;
	assert_int_equal(pod_hold_read(pod, &rules, &anyone, &h, NULL), 0);
	assert_int_equal(h.hold.share_count, 3);
	check_share(&h.hold.shares[0], 1, "GPU-a", 1, 0);
	check_share(&h.hold.shares[2], 3, "GPU-a", 3, 0);
}

#define RECORD(container, device, uuid, start)                                                                         \
	"{\\'containerIndex\\':" #container ",\\'deviceIndex\\':" #device ",\\'gpuUUID\\':\\'" uuid                    \
	"\\',\\'profile\\':\\'2g.10gb\\',\\'placement\\':{\\'start\\':" #start ",\\'size\\':2}}"

static void mig_instances(void **state)
{
	/* v2.10.0 leaves out the first container's empty entry, and numbers the records by what is left. */
	hm_auto(cJSON) *pod = json_of(BOUND(
		NODE
		"," TEXT("GPU-a,NVIDIA,9984,29:GPU-a,NVIDIA,9984,29:;") ",'hami.io/vgpu-mig-allocations':'[" RECORD(
			0, 1, "GPU-a", 2) "," RECORD(0, 0, "GPU-a", 0) "," RECORD(3, 0, "GPU-z", 4) "]'",
		"'containers':[{'name':'a'},{'name':'b'," GPU(2) "}]"));
	hm_auto_pod_hold h = { 0 };
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(pod_hold_read(pod, &rules, &anyone, &h, &e), 0);
	assert_int_equal(h.doubt.code, 0);
	assert_int_equal(h.hold.share_count, 3);
	check_share(&h.hold.shares[0], 1, "GPU-a", 9984, 29);
	assert_string_equal(h.hold.shares[0].profile, "2g.10gb");
	assert_int_equal(h.hold.shares[0].at.start, 0);
	assert_int_equal(h.hold.shares[1].at.start, 2);
	assert_int_equal(h.hold.shares[1].at.size, 2);
	/* A record that nothing else tells of: its place is taken all the same. */
	assert_string_equal(h.hold.shares[2].uuid, "GPU-z");
	assert_int_equal(h.hold.shares[2].at.start, 4);
	assert_int_equal(h.hold.shares[2].memory_mib, 0);
}

#define MADE(device, start, ids)                                                                                       \
	"{\\'containerIndex\\':0,\\'deviceIndex\\':" #device ",\\'gpuUUID\\':\\'GPU-a\\',\\'profile\\':\\'2g.10gb"     \
	"\\',\\'placement\\':{\\'start\\':" #start ",\\'size\\':2}" ids "}"

/* What the agent wrote of the first goes into the model and out of it; of the second it has made nothing yet. */
static void instances_that_were_made(void **state)
{
	hm_auto(cJSON) *pod = json_of(
		BOUND(NODE "," TEXT("GPU-a,NVIDIA,9984,29:GPU-a,NVIDIA,9984,29:;") ",'hami.io/"
										   "vgpu-mig-allocations':'[" MADE(
											   0, 0,
											   ",\\'migUUID\\':\\'MIG-1-"
											   "23\\',\\'gpuInstanceID\\':"
											   "3,\\'computeInstanceID\\':"
											   "7") "," MADE(1, 2, "") "]'",
		      "'containers':[{'name':'b'," GPU(2) "}]"));
	hm_auto(cluster) *c = cluster_new(1);
	const struct holding *held;
	hm_auto_pod_hold h = { 0 };
	struct hold_share s;

	(void)state;
	assert_int_equal(pod_hold_read(pod, &rules, &anyone, &h, NULL), 0);
	assert_int_equal(h.doubt.code, 0);
	assert_int_equal(cluster_hold(c, &h.hold, NULL), 0);
	held = cluster_find(c, POD_UID);
	assert_int_equal(held->share_count, 2);
	s = cluster_holding_share(held, 0);
	assert_string_equal(s.profile, "2g.10gb");
	assert_string_equal(s.made.uuid, "MIG-1-23");
	assert_int_equal(s.made.gpu_instance, 3);
	assert_int_equal(s.made.compute_instance, 7);
	s = cluster_holding_share(held, 1);
	assert_string_equal(s.profile, "2g.10gb");
	assert_string_equal(s.made.uuid, "");
	assert_int_equal(s.at.start, 2);
}

static void what_cannot_be_read_is_doubted(void **state)
{
	static const struct {
		const char *annotations, *doubt;
	} rows[] = {
		{ NODE, "hami.io/vgpu-devices-allocated: " },
		{ NODE "," TEXT("GPU-a,NVIDIA,x,0:;"), "hami.io/vgpu-devices-allocated: " },
		{ NODE "," TEXT("GPU-a,NVIDIA,-5,0:;"), "hami.io/vgpu-devices-allocated: a negative amount" },
		{ NODE "," TEXT("GPU-a,3:;"), "hami.io/vgpu-devices-allocated: " },
		{ NODE "," TEXT(""), "hami.io/vgpu-devices-allocated: names no card for a pod that asks for some" },
		{ NODE "," TEXT(";;"), "hami.io/vgpu-devices-allocated: names no card for a pod that asks for some" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str text = { 0 };
		hm_auto_pod_hold h = { 0 };

		str_addf(&text, BOUND("%s", APP), rows[i].annotations);
		hm_auto(cJSON) *pod = json_of(str_text(&text));

		assert_int_equal(pod_hold_read(pod, &rules, &anyone, &h, NULL), 0);
		assert_true(h.holds);
		assert_true(h.hold.unreadable);
		assert_int_equal(h.hold.share_count, 0);
		assert_int_equal(h.hold.ask_count, 1);
		assert_int_equal(h.hold.asks[0].memory_mib, 3000);
		assert_memory_equal(h.doubt.msg, rows[i].doubt, strlen(rows[i].doubt));
	}
}

/* Of what cannot be read among the requests a whole card is counted, whatever else the pod asks for. */
static void requests_that_cannot_be_read(void **state)
{
	static const struct {
		const char *annotations;
		bool unreadable;
	} rows[] = {
		{ ONE, false },
		{ NODE "," TEXT(""), true },
		{ NODE "," TEXT(";"), true },
		{ NODE, true },
	};
	static const struct card_ask want[] = {
		{ ASK_INIT, 1, 0, 100, 100 },
		{ ASK_APP, 1, 3000, 0, 0 },
		{ ASK_APP, 1, 0, 100, 100 },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str text = { 0 };
		hm_auto_pod_hold h = { 0 };

		str_addf(&text,
			 BOUND("%s", "'initContainers':[{'name':'i','resources':{'limits':{'nvidia.com/gpu':'x'}}}],"
				     "'containers':[{'name':'a'," GPU(
					     1) "},{'name':'b','resources':{'limits':{"
						"'nvidia.com/gpu':'1','nvidia.com/gpumem':'3e9'}}}]"),
			 rows[i].annotations);
		hm_auto(cJSON) *pod = json_of(str_text(&text));

		assert_int_equal(pod_hold_read(pod, &rules, &anyone, &h, NULL), 0);
		assert_true(h.holds);
		assert_int_equal(h.hold.unreadable, rows[i].unreadable);
		assert_int_not_equal(h.doubt.code, 0);
		assert_int_equal(h.hold.ask_count, HM_COUNT(want));
		for (size_t k = 0; k < HM_COUNT(want); k++)
			assert_memory_equal(&h.hold.asks[k], &want[k], sizeof want[k]);
	}
}

/* The cards are known: on those that are cut, nothing else can be. */
static void mig_records_that_cannot_be_read(void **state)
{
	hm_auto(cJSON) *pod = json_of(BOUND(ONE ",'hami.io/vgpu-mig-allocations':'{'", APP));
	hm_auto_pod_hold h = { 0 };

	(void)state;
	assert_int_equal(pod_hold_read(pod, &rules, &anyone, &h, NULL), 0);
	assert_memory_equal(h.doubt.msg, "hami.io/vgpu-mig-allocations: ", 30);
	assert_false(h.hold.unreadable);
	assert_int_equal(h.hold.share_count, 1);
	check_share(&h.hold.shares[0], 0, "GPU-a", 3000, 30);
	assert_int_equal(h.hold.shares[0].at.size, 0);
}

static void only_what_is_signed_is_believed(void **state)
{
	static const struct {
		const char *annotations;
		bool believed, by_warn;
	} rows[] = {
		{ ONE "," SIGNED, true, true },
		{ ONE, false, true }, /* of before the first key */
		{ ONE ",'hami.io/vgpu-signature':''", false, true },
		{ ONE ",'hami.io/vgpu-signature':'v1.x'", false, false },
		{ ONE ",'hami.io/vgpu-signature':'v1.2025-01." PLAIN_BY_1 "'", false, false },
		{ NODE "," TEXT("GPU-a,NVIDIA,3001,30:;") "," SIGNED, false, false },
		{ ONE ",'hami.io/vgpu-mig-allocations':'[" RECORD(0, 0, "GPU-a", 2) "]'," SIGNED, false, false },
	};
	hm_auto(signature_keys) *keys = NULL;
	struct hm_err e;

	(void)state;
	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_open(temp_path(""), &keys, &e), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		const struct pod_trust strict = { keys, false }, moving = { keys, true };
		hm_auto_str text = { 0 };
		hm_auto_pod_hold h = { 0 }, other = { 0 };

		str_addf(&text, BOUND("%s", APP), rows[i].annotations);
		hm_auto(cJSON) *pod = json_of(str_text(&text));

		assert_int_equal(pod_hold_read(pod, &rules, &strict, &h, &e), 0);
		assert_true(h.holds);
		if (h.hold.unreadable == rows[i].believed)
			fail_msg("row %zu: %s", i, h.doubt.msg);
		assert_int_equal(h.doubt.code != 0, !rows[i].believed);
		if (!rows[i].believed)
			assert_non_null(strstr(h.doubt.msg, "its placement is not signed by us: "));
		assert_int_equal(pod_hold_read(pod, &rules, &moving, &other, &e), 0);
		if (other.hold.unreadable == rows[i].by_warn)
			fail_msg("row %zu: %s", i, other.doubt.msg);
		assert_int_equal(other.doubt.code != 0, !rows[i].believed);
	}
}

static int read_one(void *arg)
{
	hm_auto_pod_hold h = { 0 };

	return pod_hold_read(arg, &rules, &anyone, &h, NULL);
}

static void memory_runs_out(void **state)
{
	hm_auto(cJSON) *pod = json_of(BOUND(ONE, APP));

	(void)state;
	sweep_check("hold", read_one, pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_holds),
		cmocka_unit_test(what_is_held),
		cmocka_unit_test(too_many_entries),
		cmocka_unit_test(mig_instances),
		cmocka_unit_test(instances_that_were_made),
		cmocka_unit_test(what_cannot_be_read_is_doubted),
		cmocka_unit_test(requests_that_cannot_be_read),
		cmocka_unit_test(mig_records_that_cannot_be_read),
		cmocka_unit_test_setup_teardown(only_what_is_signed_is_believed, temp_setup, temp_teardown),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
