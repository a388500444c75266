/* A view whose API server is the test's, for test_view*.c. */
#ifndef HM_TESTS_SCHED_VIEW_WORLD_H
#define HM_TESTS_SCHED_VIEW_WORLD_H

#include "contract/hami.h"
#include "harness/fake_kube.h"
#include "harness/fast_loop.h"
#include "sched/view/view.h"

#define PODS "/api/v1/pods"
#define NODES "/api/v1/nodes"
#define QUOTAS "/api/v1/resourcequotas"
#define BUDGETS "/apis/policy/v1/poddisruptionbudgets"

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

static inline void on_synced(void *arg)
{
	(void)arg;
	w.synced++;
}

static inline void on_bound(void *arg, const struct pod_ask *ask)
{
	(void)arg;
	w.bound++;
	w.bound_mib = ask->containers[0].memory_mib;
}

static inline void on_passed(void *arg)
{
	(void)arg;
	w.passed++;
}

static inline void begin_with(const struct signature_keys *keys)
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

static inline void begin(void)
{
	begin_with(NULL);
}

static inline void end(void)
{
	view_free(w.view);
	cluster_free(w.cluster);
}

static inline void sync_lists(void)
{
	static const char *const paths[] = { NODES, QUOTAS, PODS };

	for (size_t i = 0; i < HM_COUNT(paths); i++) {
		assert_int_equal(w.synced, 0);
		fake_watch_of(paths[i]);
		fake_reflector.synced(fake_reflector.arg);
	}
}

static inline void sync_all(void)
{
	sync_lists();
	assert_int_equal(w.synced, 1);
	assert_true(view_is_synced(w.view));
}

#define CARD                                                                                                           \
	"{\\'id\\':\\'GPU-a\\',\\'count\\':10,\\'devmem\\':81920,\\'devcore\\':100,\\'type\\':\\'NVIDIA A100\\',"      \
	"\\'mode\\':\\'hami-core\\',\\'health\\':true}"
#define REGISTER "'hami.io/node-nvidia-register':'[" CARD "]'"
#define ASKS "'resources':{'limits':{'nvidia.com/gpu':'1','nvidia.com/gpumem':'3000'}}"

static inline void tell_node(const char *annotations, const char *count, bool gone)
{
	hm_auto_str text = { 0 };

	str_addf(&text,
		 "{'metadata':{'name':'n1','uid':'un','resourceVersion':'%llu','annotations':{%s}},"
		 "'status':{'allocatable':{'nvidia.com/gpu':'%s'}}}",
		 (unsigned long long)++w.version, annotations, count);
	fake_watch_of(NODES);
	fake_watch(str_text(&text), gone);
}

static inline void tell_pod(const char *node, const char *text, const char *meta, const char *phase, bool gone)
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

static inline void list_pods_begins(void)
{
	fake_watch_of(PODS);
	fake_reflector.lists(fake_reflector.arg);
}

static inline void list_pods_ends(void)
{
	fake_watch_of(PODS);
	fake_reflector.listed(fake_reflector.arg);
}

static inline const struct card_use *used(void)
{
	return &cluster_node(w.cluster, "n1")->used[0];
}

#endif
