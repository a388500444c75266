#include "sched/view/pod_read.h"

#include "harness/json_of.h"
#include "harness/sweep.h"
#include "sched/view/host_read.h"

static const struct pod_rules rules = {
	"nvidia.com/gpu", "nvidia.com/gpumem", "nvidia.com/gpumem-percentage", "nvidia.com/gpucores", { 2, 0, 0 },
};

#define POD(annotations, spec)                                                                                         \
	"{'metadata':{'name':'p','namespace':'ns','uid':'u-1','annotations':{" annotations "}},'spec':{" spec "}}"
#define LIMITS(what) "'resources':{'limits':{" what "}}"

static void asks_in_order(void **state)
{
	hm_auto(cJSON) *pod = json_of(POD(
		"'nvidia.com/use-gputype':'A100','hami.io/gpu-scheduler-policy':'binpack','nvidia.com/numa-bind':7",
		"'containers':[{'name':'a'},{'name':'b','resources':{'requests':{'nvidia.com/gpu':'2'},"
		"'limits':{'nvidia.com/gpumem-percentage':'50','nvidia.com/gpucores':30}}}],"
		"'initContainers':[{'name':'i'," LIMITS(
			"'nvidia.com/gpu':'1','nvidia.com/gpumem':'3k'") "},"
									 "{'name':'s','restartPolicy':'Always'," LIMITS(
										 "'nvidia.com/gpu':1") "}]"));
	/* The percentage counts where no MiB are said; MiB are times the factor 2. */
	static const struct card_ask want[] = {
		{ ASK_INIT, 1, 6000, 0, 0 },
		{ ASK_SIDECAR, 1, 0, 100, 0 },
		{ ASK_APP, 0, 0, 0, 0 },
		{ ASK_APP, 2, 0, 50, 30 },
	};
	hm_auto_pod_ask ask = { 0 };
	struct hm_err e = { 0 };

	(void)state;
	assert_int_equal(pod_read_ask(pod, &rules, &ask, &e), 0);
	assert_string_equal(ask.uid, "u-1");
	assert_string_equal(ask.name_space, "ns");
	assert_string_equal(ask.name, "p");
	assert_int_equal(ask.count, HM_COUNT(want));
	for (size_t i = 0; i < HM_COUNT(want); i++)
		assert_memory_equal(&ask.containers[i], &want[i], sizeof want[i]);
	assert_string_equal(ask.wishes.use_types, "A100");
	assert_string_equal(ask.wishes.card_policy, "binpack");
	assert_null(ask.wishes.numa_bind); /* no text: the API server has none such */
	assert_null(ask.wishes.weights);
}

static void each_wish_has_its_key(void **state)
{
	hm_auto(cJSON) *pod = json_of(
		POD("'hami.io/node-scheduler-policy':'1','hami.io/gpu-scheduler-policy':'2',"
		    "'hami.io/device-scoring-weights':'3','nvidia.com/use-gputype':'4',"
		    "'nvidia.com/nouse-gputype':'5','nvidia.com/use-gpuuuid':'6','nvidia.com/nouse-gpuuuid':'7',"
		    "'nvidia.com/numa-bind':'8','nvidia.com/vgpu-mode':'9'",
		    "'containers':[]"));
	hm_auto_pod_ask ask = { 0 };

	(void)state;
	assert_int_equal(pod_read_ask(pod, &rules, &ask, NULL), 0);
	assert_string_equal(ask.wishes.node_policy, "1");
	assert_string_equal(ask.wishes.card_policy, "2");
	assert_string_equal(ask.wishes.weights, "3");
	assert_string_equal(ask.wishes.use_types, "4");
	assert_string_equal(ask.wishes.no_types, "5");
	assert_string_equal(ask.wishes.use_uuids, "6");
	assert_string_equal(ask.wishes.no_uuids, "7");
	assert_string_equal(ask.wishes.numa_bind, "8");
	assert_string_equal(ask.wishes.mode, "9");
}

static void what_is_refused(void **state)
{
	static const struct {
		const char *pod;
		int code;
		const char *msg;
	} rows[] = {
		{ "[]", HM_EPROTO, "no pod: metadata or spec is missing" },
		{ "{'metadata':{}}", HM_EPROTO, "no pod: metadata or spec is missing" },
		{ POD("", "'containers':{}"), HM_EPROTO, "no pod: its containers are no list" },
		{ POD("", "'containers':[{'name':'a'," LIMITS("'nvidia.com/gpu':'1500m'") "}]"), HM_EINVAL,
		  "container a: nvidia.com/gpu: is no whole number, or one beyond all cards" },
		{ POD("", "'containers':[{'name':'a'," LIMITS("'nvidia.com/gpu':'1','nvidia.com/gpumem':'20Gi'") "}]"),
		  HM_EINVAL, "container a: nvidia.com/gpumem: 21474836480 is not between 0 and 1073741823" },
		{ POD("", "'containers':[{'name':'a'," LIMITS("'nvidia.com/gpu':-1") "}]"), HM_EINVAL,
		  "container a: nvidia.com/gpu: -1 is not between 0 and 2147483647" },
		{ POD("", "'containers':[{" LIMITS("'nvidia.com/gpucores':true") "}]"), HM_EINVAL, NULL },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cJSON) *pod = json_of(rows[i].pod);
		hm_auto_pod_ask ask = { 0 };
		struct hm_err e = { 0 };

		assert_int_equal(pod_read_ask(pod, &rules, &ask, &e), -rows[i].code);
		if (rows[i].msg != NULL)
			assert_string_equal(e.msg, rows[i].msg);
	}
}

static void a_resource_without_a_name_is_not_asked_for(void **state)
{
	const struct pod_rules bare = { "nvidia.com/gpu", "", "", "", { 1, 500, 20 } };
	hm_auto(cJSON) *pod = json_of(POD("", "'containers':[{" LIMITS("'nvidia.com/gpu':'1','':'7'") "}]"));
	const struct card_ask want = { ASK_APP, 1, 500, 0, 20 };
	hm_auto_pod_ask ask = { 0 };

	(void)state;
	assert_int_equal(pod_read_ask(pod, &bare, &ask, NULL), 0);
	assert_memory_equal(&ask.containers[0], &want, sizeof want);
}

#define ASKS(requests) "{'resources':{'requests':{" requests "}}}"
#define SIDECAR(requests) "{'restartPolicy':'Always','resources':{'requests':{" requests "}}}"

static void cpu_and_memory_as_kubernetes_counts_them(void **state)
{
	static const struct {
		const char *pod;
		int64_t cpu_milli, host_mib;
	} rows[] = {
		{ POD("", ""), 0, 0 },
		{ POD("",
		      "'containers':[" ASKS("'cpu':'1500m','memory':'1Gi'") "," ASKS("'cpu':2,'memory':'512Mi'") "]"),
		  3500, 1536 },
		/* A MiB begun is a MiB, of the pod, not of each container; a milli of CPU is one of each. */
		{ POD("", "'containers':[" ASKS("'cpu':'100u','memory':'600Ki'") "," ASKS(
				  "'cpu':'100u','memory':'600Ki'") "]"),
		  2, 2 },
		/* An init container beside the sidecars before it; the largest counts. */
		{ POD("",
		      "'initContainers':[" ASKS("'cpu':'5'") "," SIDECAR("'cpu':'1','memory':'1Gi'") "," ASKS(
			      "'cpu':'4','memory':'2Gi'") "," SIDECAR("'cpu':'1'") "],'containers':[" ASKS("'cpu':'"
													   "2'") "]"),
		  5000, 3072 },
		{ POD("", "'initContainers':[" ASKS("'cpu':'1'") "," SIDECAR("'cpu':'1'") "],'containers':[" ASKS(
				  "'cpu':'2'") "],'overhead':{'cpu':'250m','memory':'128Mi'}"),
		  3250, 128 },
		/* The pod's own word instead of its containers', where it says one. */
		{ POD("", "'resources':{'requests':{'cpu':'8'}},'containers':[" ASKS(
				  "'cpu':'2','memory':'1Gi'") "],"
							      "'overhead':{'cpu':'1'}"),
		  9000, 1024 },
		{ POD("", "'containers':[" ASKS("'cpu':'x','memory':[]") "," ASKS("'cpu':'-1'") "]"), 0, 0 },
		{ POD("", "'containers':[" ASKS("'cpu':'9E','memory':'9E'") "," ASKS("'cpu':'9E','memory':'9E'") "]"),
		  HOST_MOST, HOST_MOST },
	};

	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cJSON) *pod = json_of(rows[i].pod);
		hm_auto_pod_ask ask = { 0 };

		assert_int_equal(pod_read_ask(pod, &rules, &ask, NULL), 0);
		if (ask.cpu_milli != rows[i].cpu_milli || ask.host_mib != rows[i].host_mib)
			fail_msg("row %zu: %lld milli, %lld MiB", i, (long long)ask.cpu_milli, (long long)ask.host_mib);
	}
}

static int read_one(void *arg)
{
	hm_auto_pod_ask ask = { 0 };

	return pod_read_ask(arg, &rules, &ask, NULL);
}

static void memory_runs_out(void **state)
{
	hm_auto(cJSON) *pod = json_of(POD("", "'containers':[{'name':'a'},{'name':'b'}]"));

	(void)state;
	sweep_check("pod", read_one, pod);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(asks_in_order),
		cmocka_unit_test(each_wish_has_its_key),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(a_resource_without_a_name_is_not_asked_for),
		cmocka_unit_test(cpu_and_memory_as_kubernetes_counts_them),
		cmocka_unit_test(memory_runs_out),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
