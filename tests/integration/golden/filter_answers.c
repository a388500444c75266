/* Answers /filter as hami-scheduler does, from nodes and pods that it is told of. One JSON a line:
 *
 *     {"nvidia": {...}, "node_policy": "...", "card_policy": "...", "selector": "..."}   a cluster, empty
 *     {"quota": "<namespace>", "memory": 1, "cores": 1}       in place of what was there; absent: no limit
 *     {"node": {a Node}}, {"gone": "<node>"}
 *     {"pod": {a Pod}}           as the watch tells it: it holds what its annotations say, if it is bound
 *     {"release": "<uid>"}
 *     {"ask": {ExtenderArgs}, "uid": "<its pod's>"}
 *
 * Only the last is answered: the answer, a tab, what is reserved: "<container> <uuid> <MiB> <percent>[ <profile>
 * <start> <size>]" each, comma between. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hami/device_config.h"
#include "io/json.h"
#include "sched/verbs/filter.h"
#include "sched/view/pod_hold.h"

struct replay {
	struct cJSON *config; /* owned, as are the others */
	struct device_config *device;
	struct cluster *cluster;
	struct placer *placer;
	struct filter *filter;
	struct node_rules nodes;
	struct pod_rules pods;
};

static const char *text_of(const struct cJSON *line, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(line, key));

	return text != NULL ? text : "";
}

static void close_cluster(struct replay *r)
{
	filter_free(r->filter);
	placer_free(r->placer);
	cluster_free(r->cluster);
	device_config_free(r->device);
	json_free(r->config);
	*r = (struct replay) { 0 };
}

static int open_cluster(struct replay *r, struct cJSON *take_config, struct hm_err *e)
{
	struct filter_config c;
	char *text = cJSON_PrintUnformatted(take_config);
	int err = text == NULL ? hm_err_set(e, HM_ENOMEM, "configuration") : 0;

	r->config = take_config;
	if (err == 0)
		err = device_config_parse(text, strlen(text), "the line", NULL, &r->device, e);
	free(text);
	if (err < 0)
		return err;
	r->pods = pod_rules_of(r->device);
	r->nodes = (struct node_rules) { r->device->resource_count, text_of(r->config, "selector") };
	r->cluster = cluster_new(r->device->memory_factor);
	r->placer = placer_new(text_of(r->config, "node_policy"), text_of(r->config, "card_policy"));
	if (r->cluster == NULL || r->placer == NULL)
		return hm_err_set(e, HM_ENOMEM, "cluster");
	c = (struct filter_config) { .cluster = r->cluster, .placer = r->placer, .pods = r->pods, .nodes = r->nodes };
	return filter_new(&c, &r->filter, e);
}

static int take_node(struct replay *r, const struct cJSON *node, struct hm_err *e)
{
	struct node_state *n;
	int err = node_read(node, &r->nodes, cluster_texts(r->cluster), &n, e);

	if (err == 0)
		return cluster_put_node(r->cluster, n, e);
	cluster_remove_node(r->cluster, text_of(cJSON_GetObjectItem(node, "metadata"), "name"));
	return err == -HM_ENOMEM ? err : 0;
}

static int take_pod(struct replay *r, const struct cJSON *pod, struct hm_err *e)
{
	const struct pod_trust all = { 0 };
	hm_auto_pod_hold h = { 0 };
	int err = pod_hold_read(pod, &r->pods, &all, &h, e);

	if (err < 0)
		return err;
	if (h.holds)
		return cluster_hold(r->cluster, &h.hold, e);
	cluster_release(r->cluster, text_of(cJSON_GetObjectItem(pod, "metadata"), "uid"));
	return 0;
}

static int64_t limit_of(const struct cJSON *line, const char *key)
{
	const struct cJSON *v = cJSON_GetObjectItem(line, key);

	return cJSON_IsNumber(v) ? (int64_t)v->valuedouble : QUOTA_NO_LIMIT;
}

static int take_quota(struct replay *r, const struct cJSON *line, struct hm_err *e)
{
	return quotas_set(cluster_quotas(r->cluster), text_of(line, "quota"), "q",
			  (struct quota_limits) { limit_of(line, "memory"), limit_of(line, "cores") }, e);
}

static void print_reserved(const struct replay *r, const char *uid)
{
	const struct holding *h = cluster_find(r->cluster, uid);

	for (size_t i = 0; h != NULL && i < h->share_count; i++) {
		struct hold_share s = cluster_holding_share(h, i);

		printf("%s%u %s %d %d", i > 0 ? "," : "", s.container, s.uuid, s.memory_mib, s.cores);
		if (s.at.size > 0)
			printf(" %s %u %u", s.profile, s.at.start, s.at.size);
	}
	putchar('\n');
}

static int answer(const struct replay *r, const struct cJSON *line, struct hm_err *e)
{
	char *body hm_auto_heap = cJSON_PrintUnformatted(cJSON_GetObjectItem(line, "ask"));
	hm_auto_str out = { 0 };

	if (body == NULL)
		return hm_err_set(e, HM_ENOMEM, "request");
	filter_answer(r->filter, body, strlen(body), 0, &out);
	printf("%s\t", str_text(&out));
	print_reserved(r, text_of(line, "uid"));
	return 0;
}

static int take_line(struct replay *r, const char *text, size_t n, struct hm_err *e)
{
	hm_auto(cJSON) *line = NULL;

	if (json_parse(text, n, &line, e) < 0)
		return -e->code;
	if (cJSON_HasObjectItem(line, "nvidia")) {
		close_cluster(r);
		return open_cluster(r, HM_STEAL(line), e);
	}
	if (cJSON_HasObjectItem(line, "node"))
		return take_node(r, cJSON_GetObjectItem(line, "node"), e);
	if (cJSON_HasObjectItem(line, "pod"))
		return take_pod(r, cJSON_GetObjectItem(line, "pod"), e);
	if (cJSON_HasObjectItem(line, "quota"))
		return take_quota(r, line, e);
	if (cJSON_HasObjectItem(line, "gone"))
		cluster_remove_node(r->cluster, text_of(line, "gone"));
	else if (cJSON_HasObjectItem(line, "release"))
		cluster_release(r->cluster, text_of(line, "release"));
	else
		return answer(r, line, e);
	return 0;
}

int main(void)
{
	struct replay r = { 0 };
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	int rc = 0;

	setvbuf(stdout, NULL, _IOLBF, 0); /* each answer decides what is told next */
	while (rc == 0 && (n = getline(&line, &cap, stdin)) > 0) {
		struct hm_err e;

		if (take_line(&r, line, (size_t)n, &e) < 0) {
			(void)fprintf(stderr, "%s\n", e.msg);
			rc = 1;
		}
	}
	close_cluster(&r);
	free(line);
	return rc;
}
