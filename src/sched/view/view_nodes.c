#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "contract/hami.h"
#include "sched/view/host_read.h"
#include "sched/view/view_internal.h"

static void row_free(struct node_row *row)
{
	if (row == NULL)
		return;
	free(row->text);
	free(row);
}

/* A part of row->text. */
static const char *put(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *to = *at;

	memcpy(to, text, n);
	*at += n;
	return to;
}

/* All texts in one block. */
static bool set_texts(struct node_row *row, const struct kube_object *o, const char *lock, const char *why)
{
	size_t n = strlen(o->name) + strlen(o->uid) + strlen(o->resource_version) + strlen(why) + 4;
	char *text = malloc(n + (lock != NULL ? strlen(lock) + 1 : 0)), *at = text;

	if (text == NULL)
		return false;
	row->view.name = put(&at, o->name);
	row->view.uid = put(&at, o->uid);
	row->view.resource_version = put(&at, o->resource_version);
	row->view.why = put(&at, why);
	row->view.lock = lock != NULL ? put(&at, lock) : NULL;
	free(row->text);
	row->text = text;
	return true;
}

/* The row, new where there was none; NULL where memory is short. */
static struct node_row *row_of(struct view *v, const char *name)
{
	struct node_row *row = map_get(v->nodes, name);

	if (row != NULL)
		return row;
	row = calloc(1, sizeof *row);
	if (row == NULL || map_put(v->nodes, name, row, NULL) < 0) {
		row_free(row);
		return NULL;
	}
	row->view.why = "";
	return row;
}

static void count_cards(struct view *v, const char *name, bool had)
{
	v->with_cards += (size_t)(cluster_node(v->config.cluster, name) != NULL) - (size_t)had;
}

/* The node's cards as they are now; `why` says why there are none. */
static int set_cards(struct view *v, const struct kube_object *o, struct hm_err *why)
{
	struct cluster *c = v->config.cluster;
	bool had = cluster_node(c, o->name) != NULL;
	struct node_state *n;
	int err = node_read(o->tree, &v->config.nodes, cluster_texts(c), &n, why);

	if (err == -HM_ENOMEM)
		return err;
	if (err == 0) {
		err = cluster_put_node(c, n, why);
		count_cards(v, o->name, had);
		return err;
	}
	cluster_remove_node(c, o->name);
	count_cards(v, o->name, had);
	if (err != -HM_ENOTFOUND)
		log_warn("a node's cards cannot be read: it has none", KV("node", o->name), KV_ERR(why));
	else if (had)
		log_info("a node has no cards any more", KV("node", o->name), KV_ERR(why));
	return 0;
}

static void on_changed(void *arg, const struct kube_object *o)
{
	struct view *v = arg;
	const char *cordon = pod_annotation(o->tree, HAMI_NODE_CORDON);
	uint64_t print = node_read_print(o->tree, &v->config.nodes), cordon_print = fnv_text(FNV_BEGIN, cordon);
	struct node_row *row = row_of(v, o->name);
	struct hm_err why = { 0 };
	bool known = row != NULL && row->text != NULL;

	if (row == NULL) {
		view_missed(v, VIEW_NODES, o->key);
		return;
	}
	if (!known || print != row->print) {
		if (set_cards(v, o, &why) < 0) {
			view_missed(v, VIEW_NODES, o->key);
			return;
		}
	} else {
		hm_err_set(&why, HM_ENOTFOUND, "%s", row->view.why);
		cluster_set_host(v->config.cluster, o->name, host_of_node(o->tree));
		if (cordon_print != row->cordon)
			cluster_cordon_node(v->config.cluster, o->name, cordon);
	}
	row->print = print;
	row->cordon = cordon_print;
	if (!set_texts(row, o, pod_annotation(o->tree, HAMI_NODE_LOCK), why.msg))
		view_missed(v, VIEW_NODES, o->key);
}

static void on_deleted(void *arg, const struct kube_object *o)
{
	struct view *v = arg;
	bool had = cluster_node(v->config.cluster, o->name) != NULL;

	cluster_remove_node(v->config.cluster, o->name);
	count_cards(v, o->name, had);
	row_free(map_remove(v->nodes, o->name));
}

static void on_synced(void *arg)
{
	view_synced(arg, VIEW_NODES);
}

static void on_listed(void *arg)
{
	view_listed(arg, VIEW_NODES);
}

const struct view_node *view_node(const struct view *v, const char *name)
{
	const struct node_row *row = map_get(v->nodes, name);

	return row != NULL && row->text != NULL ? &row->view : NULL;
}

int view_nodes_begin(struct view *v, struct hm_err *e)
{
	const struct kube_reflector_events events = {
		.changed = on_changed, .deleted = on_deleted, .synced = on_synced, .listed = on_listed, .arg = v
	};
	const struct kube_reflector_options options = { .path = "/api/v1/nodes", .page = v->config.page };

	return kube_reflector_new(v->config.client, &options, &events, &v->parts[VIEW_NODES].list, e);
}

void view_nodes_end(struct view *v)
{
	const char *name;
	size_t at = 0;
	void *row;

	while (v->nodes != NULL && map_next(v->nodes, &at, &name, &row))
		row_free(row);
	map_free(v->nodes);
}
