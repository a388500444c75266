#include "agent/hami/lock_release.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "contract/hami.h"
#include "contract/host.h"
#include "core/fmt.h"
#include "core/num.h"
#include "hami/node_lock.h"
#include "io/dir_watch.h"
#include "kube/url.h"

struct lock_release {
	struct lock_release_config config;
	struct loop *loop;
	char folder[1024];
	struct dir_watch *watch; /* NULL: the folder is not there */
	struct loop_timer *look;
	struct node_listener on_node;
	struct pods_listener on_pods;
	struct node_patch_call *patch; /* the lock is being removed */
	struct kube_call *ask;         /* for the lock's pod */
	char value[600];               /* the lock that `since_ms` is about */
	uint64_t since_ms;             /* first seen */
	uint64_t asked_ms;
	char refreshed_for[POD_UID_BYTES]; /* the last pod for which the Node was asked for, or its lock removed */
	struct lock_release_stats stats;
};

static const char *lock_value(const struct lock_release *r)
{
	const struct node_view *view = node_object_view(r->config.node);

	return view != NULL ? view->annotations[NODE_LOCK] : NULL;
}

/* ---- removing it */

static void on_removed(void *arg, const struct kube_answer *a)
{
	struct lock_release *r = arg;

	r->patch = NULL;
	if (a->status.outcome == KUBE_DONE) {
		r->stats.released++;
		return;
	}
	r->stats.failures++;
	if (a->status.outcome == KUBE_CONFLICT) /* something else of the Node changed, or its view is old */
		node_object_refresh(r->config.node);
	else
		log_warn("the node's lock cannot be released; trying again", KV_ERR(&a->err));
	loop_timer_arm(r->look, LOCK_RELEASE_LOOK_MS);
}

static void release(struct lock_release *r, const char *why)
{
	static const struct kube_patch_value nothing[] = { { HAMI_NODE_LOCK, NULL } };
	const struct node_patch patch = { nothing, 1, true, on_removed, r };
	struct hm_err e;

	if (r->patch != NULL)
		return;
	log_v(1, "releasing the node's lock", KV("lock", lock_value(r)), KV("why", why));
	if (node_object_patch(r->config.node, &patch, &r->patch, &e) < 0) {
		r->stats.failures++;
		log_warn("the node's lock cannot be released; trying again", KV_ERR(&e));
	}
}

/* ---- whether its pod is through */

static bool is_allocated(const struct pod_view *v, const struct checkpoint *c)
{
	size_t asking = 0;

	for (size_t i = 0; i < v->container_count; i++) {
		if (v->containers[i].gpus == 0)
			continue;
		asking++;
		if (checkpoint_find(c, v->uid, v->containers[i].name) == NULL)
			return false;
	}
	return asking > 0;
}

/* Before its first container starts the kubelet has had every plugin's answers. */
static bool has_started(const struct pod_view *v)
{
	for (size_t i = 0; i < v->container_count; i++)
		if (v->containers[i].state != POD_WAITING)
			return true;
	return false;
}

static bool is_through(struct lock_release *r, const struct pod_view *v)
{
	const struct checkpoint *c;
	struct hm_err e;

	if (v->terminal)
		return true;
	/* The other vendor's plugin finds its pod by the same lock; not for ever, since the text may be its author's.
	 */
	if (v->others_wait && !has_started(v) && loop_now_ms(r->loop) - r->since_ms < LOCK_RELEASE_OTHERS_MS)
		return false;
	return checkpoint_cache_get(r->config.checkpoint, &c, &e) == 0 && is_allocated(v, c);
}

/* ---- a pod that our watch does not have: not bound yet, gone, or another node's */

/* The pod stands at the API server: is it one that this lock waits for? */
static bool is_being_bound(const char *body, size_t n, const char *node)
{
	hm_auto(cJSON) *tree = NULL;
	const struct cJSON *spec;
	const char *at;
	struct hm_err e;

	if (json_parse(body, n, &tree, &e) < 0)
		return true;
	spec = cJSON_GetObjectItemCaseSensitive(tree, "spec");
	at = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(spec, "nodeName"));
	return at == NULL || at[0] == '\0' || strcmp(at, node) == 0;
}

static void on_asked(void *arg, const struct kube_answer *a)
{
	struct lock_release *r = arg;
	const char *value = lock_value(r);

	r->ask = NULL;
	if (value == NULL || strncmp(value, r->value, sizeof r->value - 1) != 0)
		return;
	if (a->status.outcome == KUBE_NOT_FOUND)
		release(r, "its pod does not exist");
	else if (a->status.outcome == KUBE_DONE && !is_being_bound(a->body, a->n, cluster_node(r->config.cluster)))
		release(r, "its pod is on another node");
}

static void ask(struct lock_release *r, const struct node_lock *lock)
{
	const struct kube_events_of_call events = { .done = on_asked, .arg = r };
	uint64_t now = loop_now_ms(r->loop);
	hm_auto_str path = { 0 };
	struct hm_err e;

	if (r->ask != NULL || now - r->since_ms < LOCK_RELEASE_ASK_MS || now - r->asked_ms < LOCK_RELEASE_ASK_MS)
		return;
	kube_url_add_path(&path, "/api/v1", lock->pod_namespace, "pods", lock->pod_name);
	if (str_failed(&path))
		return;
	const struct kube_request request = { .verb = KUBE_GET, .path = str_text(&path), .tries = 1 };

	r->asked_ms = now;
	r->stats.asked++;
	if (kube_client_call(cluster_client(r->config.cluster), &request, &events, &r->ask, &e) < 0)
		log_warn("the lock's pod cannot be asked for", KV_ERR(&e));
}

/* ---- looking */

/* A lock without a pod in it (older schedulers), or one that cannot be read: whoever is through removes it, as HAMi's
 * plugin does, but not while a pod here may still be waiting behind it. */
static bool nobody_waits(struct lock_release *r)
{
	const struct pod_view *v;
	bool through = false;
	size_t at = 0;

	while ((v = pods_next(r->config.pods, &at)) != NULL) {
		if (strcmp(pod_view_text(v, POD_BIND_PHASE), HAMI_PHASE_ALLOCATING) != 0)
			continue;
		if (!is_through(r, v))
			return false;
		through = true;
	}
	return through;
}

/* The scheduler takes the lock, then writes bind-time, by one clock. A pod that was bound before is an earlier one of
 * this name, of whose end our watch has not told yet. */
static bool is_earlier(const struct pod_view *v, const struct node_lock *lock)
{
	uint64_t bound;

	return num_u64_str(pod_view_text(v, POD_BIND_TIME), INT64_MAX - 1, &bound) &&
	       (int64_t)bound + 1 < lock->taken_s;
}

static void look_at_lock(struct lock_release *r, const char *value)
{
	const struct pod_view *v;
	struct node_lock lock;
	struct hm_err e;

	if (node_lock_parse(value, &lock, &e) < 0 || lock.pod_name[0] == '\0') {
		if (nobody_waits(r))
			release(r, "it names no pod, and none waits");
		return;
	}
	v = pods_find_name(r->config.pods, lock.pod_namespace, lock.pod_name);
	if (v == NULL || is_earlier(v, &lock)) {
		ask(r, &lock);
	} else if (is_through(r, v)) {
		hm_fmt(r->refreshed_for, sizeof r->refreshed_for, "%s", v->uid);
		release(r, v->terminal ? "its pod has ended" : "its pod has its devices");
	}
}

static void look(struct lock_release *r)
{
	const char *value = lock_value(r);

	if (value == NULL || r->patch != NULL) {
		if (value == NULL)
			r->value[0] = '\0';
		return;
	}
	if (strncmp(value, r->value, sizeof r->value - 1) != 0) {
		hm_fmt(r->value, sizeof r->value, "%s", value);
		r->since_ms = loop_now_ms(r->loop);
	}
	look_at_lock(r, value);
	loop_timer_arm(r->look, LOCK_RELEASE_LOOK_MS);
}

/* Where we may not watch Nodes (HAMi's chart) a lock is not told to us: a pod that is through is the moment to ask. */
static void refresh_for_a_pod(struct lock_release *r)
{
	struct node_object_stats stats;
	const struct pod_view *v;
	size_t at = 0;

	node_object_stats(r->config.node, &stats);
	if (stats.followed || lock_value(r) != NULL)
		return;
	while ((v = pods_next(r->config.pods, &at)) != NULL) {
		if (strcmp(pod_view_text(v, POD_BIND_PHASE), HAMI_PHASE_ALLOCATING) != 0 ||
		    strcmp(v->uid, r->refreshed_for) == 0 || !is_through(r, v))
			continue;
		hm_fmt(r->refreshed_for, sizeof r->refreshed_for, "%s", v->uid);
		node_object_refresh(r->config.node);
		return;
	}
}

static void on_node(void *arg, const struct node_view *view)
{
	(void)view;
	look(arg);
}

static void on_pod(void *arg, const struct pod_view *v)
{
	(void)v;
	look(arg);
	refresh_for_a_pod(arg);
}

static void watch_folder(struct lock_release *r);

static void on_file(void *arg, enum dir_event event, const char *name)
{
	struct lock_release *r = arg;

	if (event == DIR_GONE) {
		dir_watch_free(HM_STEAL(r->watch));
		watch_folder(r);
	} else if (event == DIR_CREATED && strcmp(name, HM_CHECKPOINT_FILE) == 0) {
		look(r);
		refresh_for_a_pod(r);
	}
}

static void watch_folder(struct lock_release *r)
{
	struct hm_err e;

	if (r->watch == NULL && dir_watch_new(r->loop, r->folder, on_file, r, &r->watch, &e) < 0) {
		log_v(2, "the kubelet's checkpoint is not watched now", KV_ERR(&e));
		loop_timer_arm(r->look, LOCK_RELEASE_LOOK_MS);
	}
}

static void on_look(void *arg)
{
	struct lock_release *r = arg;

	watch_folder(r);
	look(r);
	refresh_for_a_pod(r);
}

/* ---- life */

int lock_release_new(const struct lock_release_config *config, struct lock_release **out, struct hm_err *e)
{
	hm_auto(lock_release) *r = calloc(1, sizeof *r);
	const char *slash = strrchr(config->checkpoint_path, '/');

	if (r == NULL)
		return hm_err_set(e, HM_ENOMEM, "the node's lock");
	r->config = *config;
	r->loop = kube_client_loop(cluster_client(config->cluster));
	hm_fmt(r->folder, sizeof r->folder, "%.*s", slash != NULL ? (int)(slash - config->checkpoint_path) : 1,
	       slash != NULL ? config->checkpoint_path : ".");
	if (loop_timer_new(r->loop, on_look, r, &r->look, e) < 0)
		return hm_err_wrap(e, "the node's lock");
	r->on_node = (struct node_listener) { .changed = on_node, .arg = r };
	r->on_pods = (struct pods_listener) { .changed = on_pod, .gone = on_pod, .arg = r };
	node_object_listen(config->node, &r->on_node);
	pods_listen(config->pods, &r->on_pods);
	watch_folder(r);
	*out = HM_STEAL(r);
	return 0;
}

void lock_release_free(struct lock_release *r)
{
	if (r == NULL)
		return;
	link_remove(&r->on_node.link);
	link_remove(&r->on_pods.link);
	node_patch_cancel(r->patch);
	kube_call_cancel(r->ask);
	dir_watch_free(r->watch);
	loop_timer_free(r->look);
	free(r);
}

void lock_release_stats(const struct lock_release *r, struct lock_release_stats *out)
{
	*out = r->stats;
}
