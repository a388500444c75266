#include "view_world.h"

static void nodes_come_and_go(void **state)
{
	(void)state;
	begin();
	assert_null(view_node(w.view, "n1"));
	tell_node("", "10", false);
	assert_null(cluster_node(w.cluster, "n1"));
	assert_string_equal(view_node(w.view, "n1")->why, "has no hami.io/node-nvidia-register");
	tell_node(REGISTER ",'hami.io/mutex.lock':'x,y,z'", "10", false);
	assert_int_equal(cluster_node(w.cluster, "n1")->cards[0].memory_mib, 81920);
	assert_string_equal(view_node(w.view, "n1")->uid, "un");
	assert_string_equal(view_node(w.view, "n1")->lock, "x,y,z");
	assert_string_equal(view_node(w.view, "n1")->resource_version, "3");
	assert_string_equal(view_node(w.view, "n1")->why, "");
	/* Cordoned and uncordoned at once; the lock and the version are the last told. */
	tell_node(REGISTER ",'hami.io/device-cordon':'GPU-a'", "10", false);
	assert_true(cluster_node(w.cluster, "n1")->cards[0].cordoned);
	assert_null(view_node(w.view, "n1")->lock);
	assert_string_equal(view_node(w.view, "n1")->resource_version, "4");
	tell_node(REGISTER, "10", false);
	assert_false(cluster_node(w.cluster, "n1")->cards[0].cordoned);
	/* A dead plugin's node has no cards, as long as it is dead. */
	tell_node(REGISTER, "0", false);
	assert_null(cluster_node(w.cluster, "n1"));
	tell_node(REGISTER ",'x':'y'", "0", false);
	assert_null(cluster_node(w.cluster, "n1"));
	tell_node(REGISTER, "10", false);
	assert_non_null(cluster_node(w.cluster, "n1"));
	/* A broken text takes the cards away. */
	tell_node("'hami.io/node-nvidia-register':'['", "10", false);
	assert_null(cluster_node(w.cluster, "n1"));
	tell_node(REGISTER, "10", false);
	tell_node(REGISTER, "10", true);
	assert_null(cluster_node(w.cluster, "n1"));
	assert_null(view_node(w.view, "n1"));
	end();
}

static void pods_hold_until_they_are_gone(void **state)
{
	(void)state;
	begin();
	tell_node(REGISTER, "10", false);
	tell_pod("", "GPU-a,NVIDIA,3000,0:;", "", "Pending", false);
	assert_int_equal(used()->memory_mib, 0);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Pending", false);
	assert_int_equal(used()->memory_mib, 3000);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	assert_int_equal(used()->memory_mib, 3000);
	assert_int_equal(used()->slots, 1);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", ",'deletionTimestamp':'2026-01-01T00:00:00Z'", "Running", false);
	assert_int_equal(used()->memory_mib, 3000);
	assert_int_equal(cluster_find(w.cluster, "up")->state, HOLD_TERMINATING);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", ",'deletionTimestamp':'2026-01-01T00:00:00Z'", "Running", true);
	assert_int_equal(used()->memory_mib, 0);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Succeeded", false);
	assert_int_equal(used()->memory_mib, 0);
	end();
}

/* Whoever takes the annotations off a running pod frees nothing. */
static void annotations_taken_away_free_nothing(void **state)
{
	(void)state;
	begin();
	tell_node(REGISTER, "10", false);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	fake_watch("{'metadata':{'name':'p','namespace':'ns','uid':'up','resourceVersion':'99'},"
		   "'spec':{'nodeName':'n1','containers':[]},'status':{'phase':'Running'}}",
		   false);
	assert_int_equal(used()->memory_mib, 3000);
	end();
}

static void a_bound_pod_is_told_once(void **state)
{
	(void)state;
	begin();
	tell_node(REGISTER, "10", false);
	tell_pod("", "GPU-a,NVIDIA,3000,0:;", "", "Pending", false);
	assert_int_equal(w.bound, 0);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Pending", false);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	tell_pod("n1", "GPU-a,NVIDIA,2000,0:;", "", "Running", false);
	assert_int_equal(w.bound, 1);
	assert_int_equal(w.bound_mib, 3000); /* what it asks for, not what it has */
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", true);
	tell_pod("n1", "garbage,", "", "Running", false);
	assert_int_equal(w.bound, 1);
	end();
}

static void the_nodes_order_does_not_matter(void **state)
{
	(void)state;
	begin();
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	tell_node(REGISTER, "10", false);
	assert_int_equal(used()->memory_mib, 3000);
	tell_node(REGISTER, "0", false);
	tell_node(REGISTER, "10", false);
	assert_int_equal(used()->memory_mib, 3000);
	end();
}

/* A node that starts anew, or a sandbox that is lost, lets them run once more. */
static void init_containers_hold_for_the_pods_life(void **state)
{
	(void)state;
	begin();
	tell_node(REGISTER, "10", false);
	fake_watch_of(PODS);
	fake_watch(
		"{'metadata':{'name':'p','namespace':'ns','uid':'up','resourceVersion':'9','annotations':{"
		"'hami.io/vgpu-node':'n1','hami.io/vgpu-devices-allocated':'GPU-a,NVIDIA,8000,0:;GPU-a,NVIDIA,5000,0:;'"
		"}},'spec':{'nodeName':'n1','initContainers':[{'name':'i','resources':{'limits':{'nvidia.com/gpu':'1',"
		"'nvidia.com/gpumem':'8000'}}}],'containers':[{'name':'c','resources':{'limits':{'nvidia.com/gpu':'1',"
		"'nvidia.com/gpumem':'5000'}}}]},'status':{'phase':'Running','initContainerStatuses':[{'name':'i',"
		"'state':{'terminated':{'exitCode':0}}}]}}",
		false);
	assert_int_equal(used()->memory_mib, 8000);
	end();
}

static void doubt_is_told_once(void **state)
{
	struct view_stats stats;

	(void)state;
	begin();
	tell_node(REGISTER, "10", false);
	tell_pod("n1", "garbage,", "", "Running", false);
	assert_int_equal(w.events, 1);
	assert_memory_equal(w.event, "Pod ns/p PlacementDoubted: hami.io/vgpu-devices-allocated: ", 59);
	assert_non_null(strstr(w.event, "; counted as the most that it could hold on any card of its node"));
	assert_int_equal(used()->memory_mib, 3000); /* what it asks for */
	tell_pod("n1", "garbage,", "", "Pending", false);
	tell_pod("n1", "rubbish,", "", "Running", false);
	assert_int_equal(w.events, 1);
	view_stats(w.view, &stats);
	assert_int_equal(stats.doubted, 1);
	tell_pod("n1", "GPU-a,NVIDIA,1000,0:;", "", "Running", false);
	view_stats(w.view, &stats);
	assert_int_equal(stats.doubted, 0);
	assert_int_equal(used()->memory_mib, 1000);
	end();
}

static void quotas_of_a_namespace(void **state)
{
	struct quotas *q;

	(void)state;
	begin();
	q = cluster_quotas(w.cluster);
	fake_watch_of(QUOTAS);
#define QUOTA(name, hard)                                                                                              \
	"{'metadata':{'name':'" name "','namespace':'ns','uid':'" name                                                 \
	"','resourceVersion':'1'},'spec':{'hard':{" hard "}}}"
	fake_watch(QUOTA("a", "'limits.nvidia.com/gpumem':'20k','limits.nvidia.com/gpucores':'200','pods':'3'"), false);
	fake_watch(QUOTA("b", "'limits.nvidia.com/gpumem':'5000','requests.nvidia.com/gpumem':'1'"), false);
	fake_watch(QUOTA("c", "'limits.nvidia.com/gpumem':'1500m','cpu':'1'"), false);
	assert_int_equal(quotas_room(q, "ns").memory_mib, 5000);
	assert_int_equal(quotas_room(q, "ns").cores, 200);
	fake_watch(QUOTA("b", "'cpu':'1'"), false);
	assert_int_equal(quotas_room(q, "ns").memory_mib, 20000);
	fake_watch(QUOTA("a", ""), true);
	assert_true(quotas_room(q, "ns").memory_mib == QUOTA_NO_LIMIT);
	end();
}

/* Allocatable: so many cores and MiB. */
static void tell_host(const char *annotations, unsigned cores, unsigned mib)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{'metadata':{'name':'n1','uid':'un','resourceVersion':'%llu','annotations':{%s}},"
		 "'status':{'allocatable':{'nvidia.com/gpu':'10','cpu':'%u','memory':'%uMi'}}}",
		 (unsigned long long)++w.version, annotations, cores, mib);
	fake_watch_of(NODES);
	fake_watch(str_text(&text), false);
}

/* A pod without cards. */
static void tell_plain(const char *node, const char *cpu, const char *phase, bool gone)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{'metadata':{'name':'plain','namespace':'ns','uid':'plain','resourceVersion':'%llu'},'spec':{"
		 "'nodeName':'%s','containers':[{'resources':{'requests':{'cpu':'%s','memory':'1Gi'}}}]},"
		 "'status':{'phase':'%s'}}",
		 (unsigned long long)++w.version, node, cpu, phase);
	fake_watch_of(PODS);
	fake_watch(str_text(&text), gone);
}

static void expect_host(int64_t cpu_milli, int64_t host_mib)
{
	assert_int_equal(cluster_node(w.cluster, "n1")->cpu_milli, cpu_milli);
	assert_int_equal(cluster_node(w.cluster, "n1")->host_mib, host_mib);
}

static void pods_without_cards_have_their_cpu(void **state)
{
	(void)state;
	begin();
	tell_plain("n1", "1", "Running", false);
	tell_host(REGISTER, 8, 4096);
	expect_host(7000, 3072);
	tell_plain("n1", "1500m", "Running", false); /* resized in place */
	expect_host(6500, 3072);
	tell_host(REGISTER, 16, 4096); /* the cards are as they were */
	expect_host(14500, 3072);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	tell_host(REGISTER ",'hami.io/node-nvidia-score':'[]'", 16, 4096); /* the cards are made anew */
	assert_int_equal(used()->memory_mib, 3000);
	expect_host(14500, 3072);
	tell_plain("n1", "1500m", "Running", true);
	expect_host(16000, 4096);
	tell_plain("n1", "2", "Running", false);
	expect_host(14000, 3072);
	tell_plain("n1", "2", "Failed", false);
	expect_host(16000, 4096);
	tell_plain("", "2", "Pending", false);
	expect_host(16000, 4096);
	end();
}

/* A list that no longer has the pod gives its UID and no object. */
static void a_pod_that_a_list_no_longer_has_gives_its_cpu_back(void **state)
{
	(void)state;
	begin();
	tell_host(REGISTER, 8, 4096);
	tell_plain("n1", "2", "Running", false);
	expect_host(6000, 3072);
	fake_watch_of(PODS);
	fake_reflector.deleted(
		fake_reflector.arg,
		&(struct kube_object) { .key = "ns/plain", .name_space = "ns", .name = "plain", .uid = "plain" });
	expect_host(8000, 4096);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_come_and_go),
		cmocka_unit_test(pods_hold_until_they_are_gone),
		cmocka_unit_test(annotations_taken_away_free_nothing),
		cmocka_unit_test(a_bound_pod_is_told_once),
		cmocka_unit_test(the_nodes_order_does_not_matter),
		cmocka_unit_test(init_containers_hold_for_the_pods_life),
		cmocka_unit_test(doubt_is_told_once),
		cmocka_unit_test(quotas_of_a_namespace),
		cmocka_unit_test(pods_without_cards_have_their_cpu),
		cmocka_unit_test(a_pod_that_a_list_no_longer_has_gives_its_cpu_back),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 100;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
