/* A binder, its cluster of two nodes (n1 needs the lock, the other binds late), and the API server that the test is:
 * for tests of sched/bind. CMakeLists.txt wraps these functions for the tests that include this. */
#ifndef HM_TESTS_SCHED_BIND_WORLD_H
#define HM_TESTS_SCHED_BIND_WORLD_H

#include "contract/hami.h"
#include "core/num.h"
#include "harness/fake_wait.h"
#include "sched/bind/bind.h"

const struct view_node *__wrap_view_node(const struct view *v, const char *name);
void __wrap_kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
			     const char *reason, const char *message);

static struct world {
	struct cluster *cluster;
	struct binder *binder;
	struct view_node seen;
	unsigned answers;
	char answer[1024], event[1024];
	unsigned events;
	const char *bar;
	uint64_t alone_ms;
} w;

const struct view_node *__wrap_view_node(const struct view *v, const char *name)
{
	(void)v;
	return strcmp(name, "n1") == 0 && w.seen.uid != NULL ? &w.seen : NULL;
}

void __wrap_kube_events_tell(struct kube_events *events, const struct kube_event_object *about, const char *type,
			     const char *reason, const char *message)
{
	(void)events;
	w.events++;
	snprintf(w.event, sizeof w.event, "%s/%s %s %s: %s", about->name_space, about->name, type, reason, message);
}

static inline const char *bar(void *arg)
{
	(void)arg;
	return w.bar;
}

static inline uint64_t alone(void *arg)
{
	(void)arg;
	return w.alone_ms;
}

static inline void put_node(const char *name, bool late)
{
	struct node_state *n = node_state_new(name, cluster_texts(w.cluster));
	struct node_card card = { .count = 100,
				  .memory_mib = 80000,
				  .cores = 100,
				  .healthy = true,
				  .type = "NVIDIA A100",
				  .mode = "hami-core",
				  .uuid = "GPU-a" };

	assert_int_equal(node_state_add_card(n, &card, NULL), 0);
	n->late_binding = late;
	assert_int_equal(cluster_put_node(w.cluster, n, NULL), 0);
}

/* What a test has otherwise. */
struct bind_more {
	uint64_t lock_retry_ms;
	bool label_pods;
};

static inline void begin_with(struct bind_more more)
{
	const struct bind_config config = {
		.client = (struct kube_client *)&fake_loop,
		.events = (struct kube_events *)&fake_loop,
		.pods = { "nvidia.com/gpu", "nvidia.com/gpumem", "", "nvidia.com/gpucores", { 1, 0, 0 } },
		.lock_timeout_ms = 300000,
		.lock_retry_ms = more.lock_retry_ms,
		.label_pods = more.label_pods,
		.barred = bar,
		.alone_ms = alone,
	};
	struct bind_config c = config;

	fake_forget();
	w = (struct world) { .seen = { "n1", "un", "7", NULL, "" }, .alone_ms = 3600 * 1000 };
	w.cluster = cluster_new(1);
	c.cluster = w.cluster;
	put_node("n1", false);
	put_node("late", true);
	assert_int_equal(binder_new(fake_loop, &c, &w.binder, NULL), 0);
}

static inline void begin(void)
{
	begin_with((struct bind_more) { 0 });
}

static inline void end(void)
{
	binder_free(w.binder);
	cluster_free(w.cluster);
	fake_forget();
}

static inline void reserve(const char *uid, const char *node)
{
	struct card_ask containers[2] = { { ASK_APP, 1, 3000, 0, 30 }, { .kind = ASK_APP } };
	struct card_share share = { .memory_mib = 3000, .cores = 30, .profile = NO_PROFILE };
	const struct pod_ask ask = {
		.uid = uid, .name_space = "ns", .name = uid, .containers = containers, .count = 2, .cap = 2
	};
	const struct grant grant = { &share, 1, 1 };

	assert_int_equal(cluster_reserve(w.cluster, &ask, node, &grant, 1000000, NULL), 0);
}

static int64_t held(const char *node)
{
	return cluster_node(w.cluster, node)->used[0].memory_mib;
}

static inline void on_done(void *arg, const char *error)
{
	(void)arg;
	w.answers++;
	snprintf(w.answer, sizeof w.answer, "%s", error);
}

static inline void bind_pod(const char *uid, const char *node)
{
	const struct bind_request r = { "ns", uid, uid, node, on_done, NULL };

	assert_int_equal(binder_bind(w.binder, &r, NULL), 0);
	assert_int_equal(loop_run_once(fake_loop, 0, NULL), 0);
}

/* p1 is promised room on that node, somebody asks to bind it there, and the first request of it is open. */
static inline void bind_p1(const char *node)
{
	reserve("p1", node);
	bind_pod("p1", node);
	wait_requests(1);
}

static inline bool answered(const void *arg)
{
	return w.answers >= *(const unsigned *)arg;
}

static inline void wait_answers(unsigned count)
{
	assert_true(fast_until(fake_loop, answered, &count));
}

static inline void expect_binding(const char *pod, const char *node)
{
	hm_auto_str path = { 0 };
	hm_auto(cJSON) *tree = NULL;
	const struct cJSON *meta, *marks;
	const char *time;
	uint64_t seconds;

	str_addf(&path, "/api/v1/namespaces/ns/pods/%s/binding?timeout=10000ms", pod);
	assert_int_equal(fake_open()->verb, KUBE_POST);
	assert_string_equal(fake_open()->path, str_text(&path));
	assert_int_equal(json_parse(fake_open()->body, strlen(fake_open()->body), &tree, NULL), 0);
	meta = cJSON_GetObjectItem(tree, "metadata");
	marks = cJSON_GetObjectItem(meta, "annotations");
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(meta, "uid")), pod);
	assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(cJSON_GetObjectItem(tree, "target"), "name")),
			    node);
#define MARK(key) cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(marks, key))
	assert_string_equal(MARK("hami.io/vgpu-node"), node);
	assert_string_equal(MARK("hami.io/vgpu-devices-allocated"), "GPU-a,NVIDIA,3000,30:;;");
	assert_string_equal(MARK("hami.io/vgpu-devices-to-allocate"), "GPU-a,NVIDIA,3000,30:;;");
	assert_string_equal(MARK("hami.io/bind-phase"), "allocating");
	time = MARK("hami.io/vgpu-time");
	assert_true(num_u64_str(time, UINT64_MAX, &seconds));
	assert_in_range(seconds, clock_wall_ms() / 1000 - 60, clock_wall_ms() / 1000);
	assert_string_equal(MARK("hami.io/bind-time"), time);
	assert_int_equal(cJSON_GetArraySize(marks), 6);
}

/* What we would have the pod say: the time that was sent. */
static inline void answer_ours(void)
{
	hm_auto_str text = { 0 };
	const char *time = strstr(fake_requests[0].body, "vgpu-time\":\"");

	assert_non_null(time);
	str_addf(&text,
		 "{\"metadata\":{\"name\":\"p1\",\"uid\":\"p1\",\"annotations\":{\"hami.io/vgpu-time\":\"%.10s\","
		 "\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,3000,30:;;\"}},\"spec\":{\"nodeName\":\"late\"}}",
		 time + strlen("vgpu-time\":\""));
	fake_answer(KUBE_DONE, 200, str_text(&text));
}

#endif
