#include "agent/cluster/node_object.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "contract/hami.h"
#include "core/num.h"
#include "kube/object.h"
#include "kube/reflector.h"
#include "kube/url.h"

/* The watch and the answers to our own requests overtake each other: for so long an older version than the one held is
 * passed over. Not for ever: a cluster that was set back counts from lower numbers. */
enum { STALE_MS = 10000 };

enum { UID, VERSION, KUBELET, RUNTIME, ANNOTATIONS, TEXT_COUNT = ANNOTATIONS + NODE_ANNOTATION_COUNT };

static const char *const annotation_keys[NODE_ANNOTATION_COUNT] = {
	[NODE_REGISTER] = HAMI_NODE_REGISTER,   [NODE_SCORE] = HAMI_NODE_SCORE, [NODE_HEALTH] = HAMI_NODE_HEALTH,
	[NODE_HANDSHAKE] = HAMI_NODE_HANDSHAKE, [NODE_LOCK] = HAMI_NODE_LOCK,
};

struct node_object {
	struct cluster *cluster;
	char *path;
	struct kube_reflector *reflector;
	struct kube_call *refreshing;
	struct link listeners, patches;
	bool known;
	char *texts[TEXT_COUNT]; /* owned; NULL: absent */
	struct node_view view;   /* points into texts */
	uint64_t taken_ms;       /* when the view was set */
	uint64_t heard_ms, refreshes, failures;
};

struct node_patch_call {
	struct node_object *node;
	struct kube_call *call;
	struct link link;
	void (*done)(void *arg, const struct kube_answer *answer);
	void *arg;
};

static uint64_t now_ms(const struct node_object *n)
{
	return loop_now_ms(kube_client_loop(cluster_client(n->cluster)));
}

/* ---- the view */

static void free_texts(char *texts[TEXT_COUNT])
{
	for (size_t i = 0; i < TEXT_COUNT; i++) {
		free(texts[i]);
		texts[i] = NULL;
	}
}

static void tell(struct node_object *n)
{
	LIST_FOR_EACH (&n->listeners, it) {
		struct node_listener *l = HM_CONTAINER(it, struct node_listener, link);

		l->changed(l->arg, n->known ? &n->view : NULL);
	}
}

static const char *text_at(const struct cJSON *tree, const char *key)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(tree, key));
}

static bool copy_texts(const struct kube_object *o, char *out[TEXT_COUNT])
{
	const struct cJSON *meta = cJSON_GetObjectItemCaseSensitive(o->tree, "metadata");
	const struct cJSON *annotations = cJSON_GetObjectItemCaseSensitive(meta, "annotations");
	const struct cJSON *status = cJSON_GetObjectItemCaseSensitive(o->tree, "status");
	const struct cJSON *info = cJSON_GetObjectItemCaseSensitive(status, "nodeInfo");
	const char *from[TEXT_COUNT] = { [UID] = o->uid,
					 [VERSION] = o->resource_version,
					 [KUBELET] = text_at(info, "kubeletVersion"),
					 [RUNTIME] = text_at(info, "containerRuntimeVersion") };

	for (size_t i = 0; i < NODE_ANNOTATION_COUNT; i++)
		from[ANNOTATIONS + i] = text_at(annotations, annotation_keys[i]);
	for (size_t i = 0; i < TEXT_COUNT; i++) {
		out[i] = from[i] != NULL ? strdup(from[i]) : NULL;
		if (from[i] != NULL && out[i] == NULL)
			return false;
	}
	return true;
}

/* From before what was told a moment ago. */
static bool is_stale(const struct node_object *n, const struct kube_object *o)
{
	uint64_t held, theirs;

	return n->known && now_ms(n) - n->taken_ms < STALE_MS && strcmp(o->uid, n->view.uid) == 0 &&
	       num_u64_str(n->view.resource_version, UINT64_MAX, &held) &&
	       num_u64_str(o->resource_version, UINT64_MAX, &theirs) && theirs < held;
}

static void take(struct node_object *n, const struct kube_object *o)
{
	char *texts[TEXT_COUNT] = { 0 };

	n->heard_ms = now_ms(n);
	if (is_stale(n, o))
		return;
	if (!copy_texts(o, texts)) {
		log_error("out of memory: a change of our Node is not seen");
		free_texts(texts);
		return;
	}
	free_texts(n->texts);
	memcpy(n->texts, texts, sizeof texts);
	n->known = true;
	n->taken_ms = n->heard_ms;
	n->view = (struct node_view) { texts[UID], texts[VERSION], texts[KUBELET] != NULL ? texts[KUBELET] : "",
				       texts[RUNTIME] != NULL ? texts[RUNTIME] : "" };
	for (size_t i = 0; i < NODE_ANNOTATION_COUNT; i++)
		n->view.annotations[i] = texts[ANNOTATIONS + i];
	tell(n);
}

static void forget(struct node_object *n)
{
	n->heard_ms = now_ms(n);
	if (!n->known)
		return;
	n->known = false;
	free_texts(n->texts);
	tell(n);
}

/* The object in the answer to our own request. */
static void take_answer(struct node_object *n, const struct kube_answer *a)
{
	hm_auto(cJSON) *tree = NULL;
	struct kube_object o;
	struct hm_err e;

	if (json_parse(a->body, a->n, &tree, &e) < 0 || kube_object_read(tree, &o, &e) < 0) {
		n->failures++;
		log_warn("the API server's answer about our Node cannot be read", KV_ERR(&e));
		return;
	}
	take(n, &o);
}

static void on_changed(void *arg, const struct kube_object *o)
{
	take(arg, o);
}

static void on_deleted(void *arg, const struct kube_object *o)
{
	struct node_object *n = arg;

	if (!n->known || strcmp(o->uid, n->view.uid) == 0)
		forget(n);
}

/* ---- questions and patches */

static void on_refreshed(void *arg, const struct kube_answer *a)
{
	struct node_object *n = arg;

	n->refreshing = NULL;
	if (a->status.outcome == KUBE_DONE) {
		take_answer(n, a);
	} else if (a->status.outcome == KUBE_NOT_FOUND) {
		forget(n);
	} else {
		n->failures++;
		log_v(2, "our Node could not be asked for", KV_ERR(&a->err));
	}
}

void node_object_refresh(struct node_object *n)
{
	const struct kube_request request = { .verb = KUBE_GET, .path = n->path, .tries = 1 };
	const struct kube_events_of_call events = { .done = on_refreshed, .arg = n };
	struct hm_err e;

	if (n->refreshing != NULL)
		return;
	n->refreshes++;
	if (kube_client_call(cluster_client(n->cluster), &request, &events, &n->refreshing, &e) < 0) {
		n->failures++;
		log_warn("our Node cannot be asked for", KV_ERR(&e));
	}
}

static void patch_call_free(struct node_patch_call *p)
{
	if (p == NULL)
		return;
	link_remove(&p->link);
	free(p);
}
HM_DEFINE_AUTO(node_patch_call, patch_call_free);

void node_patch_cancel(struct node_patch_call *p)
{
	if (p != NULL)
		kube_call_cancel(p->call);
	patch_call_free(p);
}

static void on_patched(void *arg, const struct kube_answer *a)
{
	struct node_patch_call *p = arg;
	void (*done)(void *, const struct kube_answer *) = p->done;
	struct node_object *n = p->node;
	void *its = p->arg;

	patch_call_free(p);
	if (a->status.outcome == KUBE_DONE)
		take_answer(n, a);
	done(its, a);
}

int node_object_patch(struct node_object *n, const struct node_patch *patch, struct node_patch_call **out,
		      struct hm_err *e)
{
	const struct kube_patch body = { .uid = n->view.uid,
					 .resource_version = patch->this_version ? n->view.resource_version : NULL,
					 .annotations = patch->annotations,
					 .annotation_count = patch->count };
	hm_auto(node_patch_call) *p = calloc(1, sizeof *p);
	hm_auto_heap char *text = NULL;

	if (!n->known)
		return hm_err_set(e, HM_EAGAIN, "patch of Node %s: it is not known", cluster_node(n->cluster));
	if (p == NULL)
		return hm_err_set(e, HM_ENOMEM, "patch of our Node");
	if (kube_patch_text(&body, &text, e) < 0)
		return -e->code;
	*p = (struct node_patch_call) { .node = n, .done = patch->done, .arg = patch->arg };
	const struct kube_request request = {
		.verb = KUBE_PATCH, .path = n->path, .content_type = KUBE_MERGE_PATCH, .body = text, .n = strlen(text)
	};
	const struct kube_events_of_call events = { .done = on_patched, .arg = p };

	if (kube_client_call(cluster_client(n->cluster), &request, &events, &p->call, e) < 0)
		return -e->code;
	link_append(&n->patches, &p->link);
	*out = HM_STEAL(p);
	return 0;
}

/* ---- life */

static int follow(struct node_object *n, const char *node, struct hm_err *e)
{
	const struct kube_reflector_events events = { on_changed, on_deleted, NULL, n };
	struct kube_reflector_options options = { .path = "/api/v1/nodes", .cached = true };
	hm_auto_str path = { 0 }, selector = { 0 };

	str_addf(&selector, "metadata.name=%s", node);
	kube_url_add_path(&path, "/api/v1", NULL, "nodes", node);
	n->path = str_take(&path);
	if (str_failed(&selector) || n->path == NULL)
		return hm_err_set(e, HM_ENOMEM, "our Node");
	options.field_selector = str_text(&selector);
	return kube_reflector_new(cluster_client(n->cluster), &options, &events, &n->reflector, e);
}

int node_object_new(struct cluster *c, struct node_object **out, struct hm_err *e)
{
	hm_auto(node_object) *n = calloc(1, sizeof *n);

	if (n == NULL)
		return hm_err_set(e, HM_ENOMEM, "our Node");
	n->cluster = c;
	list_init(&n->listeners);
	list_init(&n->patches);
	if (follow(n, cluster_node(c), e) < 0)
		return -e->code;
	*out = HM_STEAL(n);
	return 0;
}

void node_object_free(struct node_object *n)
{
	if (n == NULL)
		return;
	LIST_FOR_EACH (&n->patches, it) {
		node_patch_cancel(HM_CONTAINER(it, struct node_patch_call, link));
	}
	LIST_FOR_EACH (&n->listeners, it) {
		link_remove(it);
	}
	kube_call_cancel(n->refreshing);
	kube_reflector_free(n->reflector);
	free_texts(n->texts);
	free(n->path);
	free(n);
}

const struct node_view *node_object_view(const struct node_object *n)
{
	return n->known ? &n->view : NULL;
}

void node_object_listen(struct node_object *n, struct node_listener *listener)
{
	link_append(&n->listeners, &listener->link);
}

void node_object_stats(const struct node_object *n, struct node_object_stats *out)
{
	struct kube_reflector_state state;

	kube_reflector_state(n->reflector, &state);
	*out = (struct node_object_stats) { n->known, state.good, n->refreshes, HM_MAX(n->heard_ms, state.good_at_ms),
					    n->failures + state.failures };
}
