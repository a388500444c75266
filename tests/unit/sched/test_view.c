#include "sched/view/view.h"

#include <errno.h>
#include <unistd.h>

#include "contract/hami.h"
#include "harness/fake_kube.h"
#include "harness/fast_loop.h"
#include "harness/sweep.h"
#include "harness/temp.h"
#include "unit/hami/signed_placement.h"

#define PODS "/api/v1/pods"
#define NODES "/api/v1/nodes"
#define QUOTAS "/api/v1/resourcequotas"

static struct world {
	struct cluster *cluster;
	struct view *view;
	int32_t bound_mib;
	unsigned synced, passed, bound, relists;
	unsigned events;
	char event[512];
	uint64_t version;
} w;

void __wrap_kube_reflector_relist(struct kube_reflector *r);
void __wrap_kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
			     const char *reason, const char *message);

void __wrap_kube_reflector_relist(struct kube_reflector *r)
{
	(void)r;
	w.relists++;
}

void __wrap_kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
			     const char *reason, const char *message)
{
	(void)events;
	assert_string_equal(type, "Warning");
	w.events++;
	snprintf(w.event, sizeof w.event, "%s %s/%s %s: %s", about->kind, about->name_space, about->name, reason,
		 message);
}

static void on_synced(void *arg)
{
	(void)arg;
	w.synced++;
}

static void on_bound(void *arg, const struct pod_ask *ask)
{
	(void)arg;
	w.bound++;
	w.bound_mib = ask->containers[0].memory_mib;
}

static void on_passed(void *arg)
{
	(void)arg;
	w.passed++;
}

static void begin_with(const struct signature_keys *keys)
{
	struct view_config config = {
		.trust = { keys, false },
		.client = (struct kube_client *)&fake_loop,
		.events = (struct kube_events *)&fake_loop,
		.pods = { "nvidia.com/gpu", "nvidia.com/gpumem", "", "nvidia.com/gpucores", { 1, 0, 0 } },
		.nodes = { "nvidia.com/gpu", NULL },
		.synced = on_synced,
		.bound = on_bound,
	};
	struct hm_err e;

	fake_forget();
	w = (struct world) { .version = 1 };
	w.cluster = cluster_new(1);
	config.cluster = w.cluster;
	assert_int_equal(view_new(&config, &w.view, &e), 0);
}

static void begin(void)
{
	begin_with(NULL);
}

static void end(void)
{
	view_free(w.view);
	cluster_free(w.cluster);
}

static void sync_lists(void)
{
	static const char *const paths[] = { NODES, QUOTAS, PODS };

	for (size_t i = 0; i < HM_COUNT(paths); i++) {
		assert_int_equal(w.synced, 0);
		fake_watch_of(paths[i]);
		fake_reflector.synced(fake_reflector.arg);
	}
}

static void sync_all(void)
{
	sync_lists();
	assert_int_equal(w.synced, 1);
	assert_true(view_is_synced(w.view));
}

#define CARD                                                                                                           \
	"{\\'id\\':\\'GPU-a\\',\\'count\\':10,\\'devmem\\':81920,\\'devcore\\':100,\\'type\\':\\'NVIDIA A100\\',"      \
	"\\'mode\\':\\'hami-core\\',\\'health\\':true}"
#define REGISTER "'hami.io/node-nvidia-register':'[" CARD "]'"

static void tell_node(const char *annotations, const char *count, bool gone)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{'metadata':{'name':'n1','uid':'un','resourceVersion':'%llu','annotations':{%s}},"
		 "'status':{'allocatable':{'nvidia.com/gpu':'%s'}}}",
		 (unsigned long long)++w.version, annotations, count);
	fake_watch_of(NODES);
	fake_watch(str_text(&text), gone);
}

static void tell_pod(const char *node, const char *text, const char *meta, const char *phase, bool gone)
{
	hm_auto_str json = { 0 };

	str_addf(
		&json,
		"{'metadata':{'name':'p','namespace':'ns','uid':'up','resourceVersion':'%llu'%s,'annotations':{"
		"'hami.io/vgpu-node':'n1','hami.io/vgpu-devices-allocated':'%s'}},'spec':{'nodeName':'%s',"
		"'containers':[{'name':'c','resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/gpumem':'3000'}}}]},"
		"'status':{'phase':'%s'}}",
		(unsigned long long)++w.version, meta, text, node, phase);
	fake_watch_of(PODS);
	fake_watch(str_text(&json), gone);
}

static void list_pods_begins(void)
{
	fake_watch_of(PODS);
	fake_reflector.lists(fake_reflector.arg);
}

static void list_pods_ends(void)
{
	fake_watch_of(PODS);
	fake_reflector.listed(fake_reflector.arg);
}

static const struct card_use *used(void)
{
	return &cluster_node(w.cluster, "n1")->used[0];
}

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

static void ready_when_all_is_known(void **state)
{
	(void)state;
	begin();
	sync_all();
	end();
}

static void own_pod(const char *mark)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{'metadata':{'name':'me','namespace':'sys','uid':'um','resourceVersion':'%llu','annotations':{"
		 "'term':'%s'}},'spec':{'nodeName':'n1'}}",
		 (unsigned long long)++w.version, mark);
	fake_watch_of(PODS);
	fake_watch(str_text(&text), false);
}

static void the_fence_waits_for_its_mark(void **state)
{
	const struct view_fence fence = { "sys", "me", "term", "t2", on_passed, NULL };

	(void)state;
	begin();
	sync_all();
	own_pod("t1");
	assert_int_equal(view_wait(w.view, &fence, NULL), 0);
	own_pod("t1");
	tell_pod("n1", "", "", "Running", false);
	assert_int_equal(w.passed, 0);
	own_pod("t2");
	assert_int_equal(w.passed, 1);
	own_pod("t2");
	assert_int_equal(w.passed, 1);
	assert_int_equal(w.relists, 0);
	end();
}

static bool relisted(const void *arg)
{
	(void)arg;
	return w.relists > 0;
}

static void without_a_mark_all_is_listed_anew(void **state)
{
	const struct view_fence fence = { "sys", "me", "term", "t2", on_passed, NULL };
	const struct view_fence bare = { .passed = on_passed };

	(void)state;
	begin();
	assert_int_equal(view_wait(w.view, &bare, NULL), 0);
	assert_int_equal(w.relists, 1);
	assert_int_equal(w.passed, 0);
	list_pods_ends();
	assert_int_equal(w.passed, 1);
	list_pods_ends();
	assert_int_equal(w.passed, 1);
	/* Nor does the mark come: after a minute. */
	w.relists = 0;
	assert_int_equal(view_wait(w.view, &fence, NULL), 0);
	assert_true(fast_until(fake_loop, relisted, NULL));
	list_pods_ends();
	assert_int_equal(w.passed, 2);
	end();
}

/* Our pod is on the first page, a Binding of before its mark on the last. */
static void in_a_list_the_mark_alone_is_not_enough(void **state)
{
	const struct view_fence fence = { "sys", "me", "term", "t2", on_passed, NULL };

	(void)state;
	begin();
	sync_all();
	tell_node(REGISTER, "10", false);
	assert_int_equal(view_wait(w.view, &fence, NULL), 0);
	fake_lists = true;
	list_pods_begins();
	own_pod("t2");
	assert_int_equal(w.passed, 0);
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	assert_int_equal(w.passed, 0);
	list_pods_ends();
	assert_int_equal(w.passed, 1);
	assert_int_equal(used()->memory_mib, 3000);
	assert_int_equal(w.relists, 0);
	end();
}

/* What /filter promises: one share of pod "up" on node n1. */
static void promise(void)
{
	const struct card_ask ask = { .kind = ASK_APP, .count = 1, .memory_mib = 3000 };
	const struct hold_share share = { .uuid = "GPU-a", .memory_mib = 3000 };
	const struct hold hold = { .uid = "up",
				   .name_space = "ns",
				   .name = "p",
				   .node = "n1",
				   .state = HOLD_RESERVED,
				   .expires_ms = UINT64_MAX,
				   .asks = &ask,
				   .ask_count = 1,
				   .shares = &share,
				   .share_count = 1 };

	assert_int_equal(cluster_hold(w.cluster, &hold, NULL), 0);
}

static void what_ended_while_nobody_watched_is_free(void **state)
{
	(void)state;
	begin();
	sync_all();
	tell_node(REGISTER, "10", false);
	promise();
	assert_int_equal(cluster_confirm(w.cluster, "up", "n1", NULL), 0);
	/* Bound while a list is under way: it need not have it. */
	list_pods_begins();
	cluster_bound(w.cluster, "up");
	list_pods_ends();
	assert_int_equal(used()->memory_mib, 3000);
	/* The watch stays away, the pod ends: the next list does not have it. */
	list_pods_begins();
	list_pods_begins(); /* its first page was asked for twice */
	list_pods_ends();
	assert_int_equal(used()->memory_mib, 0);
	/* One that was told is the reflector's to miss. */
	tell_pod("n1", "GPU-a,NVIDIA,3000,0:;", "", "Running", false);
	list_pods_begins();
	list_pods_ends();
	assert_int_equal(used()->memory_mib, 3000);
	end();
}

/* Bound by us, and somebody took the annotations off before the list: it holds. Bound by somebody else without our
 * annotations: our promise is nobody's. */
static void bound_without_our_words(void **state)
{
	static const char bare[] = "{'metadata':{'name':'p','namespace':'ns','uid':'up','resourceVersion':'99'},"
				   "'spec':{'nodeName':'n1','containers':[]},'status':{'phase':'Running'}}";
	(void)state;
	begin();
	sync_all();
	tell_node(REGISTER, "10", false);
	promise();
	assert_int_equal(cluster_confirm(w.cluster, "up", "n1", NULL), 0);
	cluster_bound(w.cluster, "up");
	list_pods_begins();
	fake_watch(bare, false);
	list_pods_ends();
	assert_int_equal(used()->memory_mib, 3000);
	cluster_release(w.cluster, "up");
	promise();
	assert_int_equal(used()->memory_mib, 3000);
	fake_watch(bare, false);
	assert_int_equal(used()->memory_mib, 0);
	end();
}

#define BARE(n, state, resources)                                                                                      \
	"{'metadata':{'name':'p" n "','namespace':'ns','uid':'up" n "','resourceVersion':'9'},'spec':{'nodeName':'n" n \
	"','containers':[{'name':'c'," resources "}]},'status':{'containerStatuses':[{'name':'c','state':{'" state     \
	"':{}}}]}}"
#define ASKS "'resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/gpumem':'3000'}}"

/* Somebody took the annotations off, and then we were started. */
static void a_pod_that_runs_holds_whatever_it_says(void **state)
{
	(void)state;
	begin();
	tell_node(REGISTER, "10", false);
	fake_watch_of(PODS);
	fake_watch(BARE("1", "waiting", ASKS), false);
	fake_watch(BARE("1", "running", "'name':'d'"), false);
	assert_int_equal(cluster_holding_count(w.cluster), 0);
	fake_watch(BARE("1", "running", ASKS), false);
	assert_int_equal(used()->memory_mib, 3000);
	assert_int_equal(w.events, 1);
	assert_memory_equal(w.event, "Pod ns/p1 PlacementDoubted: it runs with cards, and ", 52);
	/* On a node that has no cards of ours another plugin may have given it some. */
	fake_watch(BARE("2", "running", ASKS), false);
	assert_int_equal(w.events, 1);
	end();
}

#define SIGNED_POD(version, memory)                                                                                    \
	"{'metadata':{'name':'p','namespace':'ns','uid':'" POD_UID "','resourceVersion':'" version                     \
	"','annotations':{'hami.io/vgpu-node':'node-1','hami.io/vgpu-devices-allocated':'GPU-a,NVIDIA," memory         \
	",30:;','hami.io/vgpu-time':'1787293239','hami.io/vgpu-signature':'v1.2026-11." PLAIN_BY_1                     \
	"'}},'spec':{'nodeName':'node-1','containers':[{'name':'c'," ASKS "}]},'status':{'phase':'Running'}}"

static void keys_that_come_later_are_asked(void **state)
{
	static const char signed_pod[] = SIGNED_POD("9", "3000");
	hm_auto(signature_keys) *keys = NULL;
	const struct holding *h;
	struct view_stats stats;

	(void)state;
	temp_write("2026-10", "no key");
	assert_int_equal(signature_keys_open(temp_path(""), &keys, NULL), 0);
	begin_with(keys);
	sync_all();
	fake_watch_of(PODS);
	fake_watch(signed_pod, false);
	h = cluster_find(w.cluster, POD_UID);
	assert_true(h != NULL && h->unreadable);
	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_refresh(keys, NULL), 1);
	view_keys_changed(w.view);
	assert_int_equal(w.relists, 1);
	fake_watch(signed_pod, false); /* the very same version */
	h = cluster_find(w.cluster, POD_UID);
	assert_true(h != NULL && !h->unreadable);
	view_stats(w.view, &stats);
	assert_int_equal(stats.doubted, 0);
	/* Nobody is doubted: nothing is asked. */
	view_keys_changed(w.view);
	assert_int_equal(w.relists, 1);
	end();
}

static bool is_synced(const void *arg)
{
	(void)arg;
	return view_is_synced(w.view);
}

static bool fork_fails;
pid_t __real_fork(void);
pid_t __wrap_fork(void);

pid_t __wrap_fork(void)
{
	if (!fork_fails)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

/* The first sync goes on meanwhile, and is over when each is known. */
static void check_first_sync(bool no_children)
{
	static const struct {
		const char *uid, *memory, *signature;
		bool believed;
	} rows[] = {
		{ POD_UID, "3000", PLAIN_BY_1, true },
		{ "other", "3000", PLAIN_BY_1, false },
		{ POD_UID, "3001", PLAIN_BY_1, false },
	};
	hm_auto(signature_keys) *keys = NULL;
	struct view_stats stats;

	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_open(temp_path(""), &keys, NULL), 0);
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto_str text = { 0 };
		const struct holding *h;

		begin_with(keys);
		str_addf(&text,
			 "{'metadata':{'name':'p','namespace':'ns','uid':'%s','resourceVersion':'9','annotations':{"
			 "'hami.io/vgpu-node':'node-1','hami.io/vgpu-devices-allocated':'GPU-a,NVIDIA,%s,30:;',"
			 "'hami.io/vgpu-time':'1787293239','hami.io/vgpu-signature':'v1.2026-11.%s'}},"
			 "'spec':{'nodeName':'node-1','containers':[{'name':'c'," ASKS "}]},"
			 "'status':{'phase':'Running'}}",
			 rows[i].uid, rows[i].memory, rows[i].signature);
		fake_watch_of(PODS);
		fake_watch(str_text(&text), false);
		sync_lists();
		assert_false(view_is_synced(w.view));
		assert_int_equal(w.events, 0);
		fork_fails = no_children;
		assert_true(fast_until(fake_loop, is_synced, NULL));
		fork_fails = false;
		assert_int_equal(w.synced, 1);
		h = cluster_find(w.cluster, rows[i].uid);
		assert_true(h != NULL && h->unreadable == !rows[i].believed);
		view_stats(w.view, &stats);
		assert_int_equal(stats.doubted, !rows[i].believed);
		assert_int_equal(w.events, !rows[i].believed);
		if (!rows[i].believed)
			assert_string_equal(w.event,
					    "Pod ns/p PlacementDoubted: its placement is not signed by us: key "
					    "2026-11 did not sign this placement; counted as the most that it "
					    "could hold on any card of its node");
		end();
	}
}

static void signatures_of_the_first_sync(void **state)
{
	(void)state;
	check_first_sync(false);
	check_first_sync(true);
}

/* What was told meanwhile is what counts; and an end in the middle leaves nothing. */
static void changes_while_signatures_are_checked(void **state)
{
	hm_auto(signature_keys) *keys = NULL;
	struct view_stats stats;

	(void)state;
	temp_write("2026-11", PRIVATE_1);
	assert_int_equal(signature_keys_open(temp_path(""), &keys, NULL), 0);
	for (int gone = 0; gone < 3; gone++) {
		begin_with(keys);
		fake_watch_of(PODS);
		fake_watch(SIGNED_POD("9", "3001"), false);
		if (gone == 1)
			fake_watch(SIGNED_POD("10", "3001"), true);
		else if (gone == 0)
			fake_watch(SIGNED_POD("10", "3000"), false);
		sync_lists();
		/* The watch goes on before all is known. */
		if (gone == 0) {
			fake_watch_of(PODS);
			fake_watch(SIGNED_POD("11", "3001"), false);
			fake_watch(SIGNED_POD("12", "3000"), false);
		}
		if (gone < 2) {
			assert_true(fast_until(fake_loop, is_synced, NULL));
			assert_int_equal(w.events, gone == 0); /* of version 11 */
			assert_int_equal(cluster_holding_count(w.cluster), gone == 0);
			view_stats(w.view, &stats);
			assert_int_equal(stats.doubted, 0);
		}
		end();
	}
}

static int tell_tree(void *arg)
{
	struct kube_object o;

	assert_int_equal(kube_object_read(arg, &o, NULL), 0);
	fake_reflector.changed(fake_reflector.arg, &o);
	return 0;
}

/* Nothing is placed until it was told once more, and could be taken. */
static void what_memory_was_short_for_is_told_again(void **state)
{
	static const struct {
		const char *path, *text;
	} rows[] = {
		{ PODS, "{'metadata':{'name':'p','namespace':'ns','uid':'up','resourceVersion':'9','annotations':{"
			"'hami.io/vgpu-node':'n1','hami.io/vgpu-devices-allocated':'GPU-a,NVIDIA,3000,0:;'}},"
			"'spec':{'nodeName':'n1','containers':[{'name':'c','resources':{'limits':{'nvidia.com/gpu':'1'"
			"}}}]},'status':{'phase':'Running'}}" },
		{ NODES, "{'metadata':{'name':'n1','uid':'un','resourceVersion':'9','annotations':{" REGISTER "}},"
			 "'status':{'allocatable':{'nvidia.com/gpu':'20'}}}" },
		{ QUOTAS, "{'metadata':{'name':'q','namespace':'ns','uid':'uq','resourceVersion':'9'},"
			  "'spec':{'hard':{'limits.nvidia.com/gpumem':'5000'}}}" },
	};
	(void)state;
	for (size_t i = 0; i < HM_COUNT(rows); i++) {
		hm_auto(cJSON) *tree = json_of(rows[i].text);
		bool hit = true;

		for (size_t nth = 1; hit; nth++) {
			begin();
			sync_all();
			tell_node(REGISTER, "10", false);
			fake_watch_of(rows[i].path);
			hit = sweep_once(tell_tree, tree, nth);
			assert_int_equal(view_barred(w.view) != NULL, hit);
			if (hit) {
				assert_true(fast_until(fake_loop, relisted, NULL));
				assert_int_equal(w.relists, 1);
				assert_non_null(view_barred(w.view));
				(void)tell_tree(tree);
				fake_reflector.listed(fake_reflector.arg);
				assert_null(view_barred(w.view));
			}
			assert_int_equal(used()->memory_mib, i == 0 ? 3000 : 0);
			if (i == 2)
				assert_int_equal(quotas_room(cluster_quotas(w.cluster), "ns").memory_mib, 5000);
			end();
			assert_true(nth < 100);
		}
	}
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
		cmocka_unit_test(ready_when_all_is_known),
		cmocka_unit_test(the_fence_waits_for_its_mark),
		cmocka_unit_test(without_a_mark_all_is_listed_anew),
		cmocka_unit_test(in_a_list_the_mark_alone_is_not_enough),
		cmocka_unit_test(what_ended_while_nobody_watched_is_free),
		cmocka_unit_test(bound_without_our_words),
		cmocka_unit_test(what_memory_was_short_for_is_told_again),
		cmocka_unit_test(a_pod_that_runs_holds_whatever_it_says),
		cmocka_unit_test_setup_teardown(keys_that_come_later_are_asked, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(signatures_of_the_first_sync, temp_setup, temp_teardown),
		cmocka_unit_test_setup_teardown(changes_while_signatures_are_checked, temp_setup, temp_teardown),
	};
	log_set_sink(fast_keep_line, NULL);
	fast = 100;
	return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
