#include "sched/parts.h"

#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "kube/config.h"
#include "sched/extender/answer.h"
#include "sched/extender/args.h"
#include "sched/simulate/typical_pods.h"
#include "sched/verbs/filter_events.h"
#include "sched/verbs/sampled.h"

enum { EXPIRE_MS = 1000, CUT_TOLD_MS = 3600 * 1000 };

/* A Secret that is gone or misnamed must not end in placements that nobody signs and everybody believes. */
static const char NO_KEY[] = "--signature-keys names a folder without a key to sign with";

static bool warns(const struct parts *p)
{
	return strcmp(p->options->signature, "warn") == 0;
}

/* ---- the API server */

/* per_second 0: none of our own rate. */
static int connect_api(struct parts *p, uint32_t per_second, struct kube_client **out, struct hm_err *e)
{
	const struct sched_options *o = p->options;
	struct kube_config_places places = kube_config_places_of(o->kubeconfig);
	struct kube_client_options options = { .user_agent = "hami-scheduler/" HM_VERSION,
					       .request_ms = (uint32_t)o->kube_timeout_s * 1000,
					       .per_second = per_second,
					       .burst = (uint32_t)o->kube_burst };
	struct kube_config *config;

	if (kube_config_find(&places, &config, e) < 0)
		return -e->code;
	log_info("the API server", KV("server", config->server), KV("by", config->origin));
	return kube_client_new(p->loop, config, &options, out, e);
}

static void read_host(char *out, size_t cap)
{
	memset(out, 0, cap);
	if (gethostname(out, cap - 1) < 0)
		out[0] = '\0';
}

static int make_client(struct parts *p, struct hm_err *e)
{
	const struct sched_options *o = p->options;
	char host[256];

	read_host(host, sizeof host);
	if (connect_api(p, o->kube_qps > 0 ? HM_MAX((uint32_t)o->kube_qps, 1U) : 0, &p->client, e) < 0)
		return -e->code;
	return kube_events_new(p->client, o->scheduler_name[0] != '\0' ? o->scheduler_name : "hami-scheduler", host,
			       &p->events, e);
}

static enum lead_mode lead_mode_of(const struct sched_options *o)
{
	if (!o->leader_elect)
		return LEAD_ALWAYS;
	return strcmp(o->leader_elect_by, "lease") == 0 ? LEAD_OWN_LEASE : LEAD_FOLLOW;
}

/* A replica that always leads knows all when it has listed all. */
static void on_synced(void *arg)
{
	struct parts *p = arg;

	if (lead_is_ours(p->lead))
		takeover_begin(p->takeover, lead_mode_of(p->options) == LEAD_ALWAYS);
}

/* Bound by us, by whoever leads, or by the last one before we began. */
static void on_bound_pod(void *arg, const struct pod_ask *ask)
{
	struct parts *p = arg;

	if (view_is_synced(p->view))
		fgd_see(p->fgd, ask);
	else
		fgd_sample(p->fgd, ask);
}

static int make_view(struct parts *p, struct hm_err *e)
{
	const struct view_config config = {
		.client = p->client,
		.cluster = p->cluster,
		.events = p->events,
		.pods = pod_rules_of(p->options->device),
		.nodes = { p->options->device->resource_count, p->options->node_label_selector },
		.trust = { .keys = p->keys, .warn = warns(p) },
		.synced = on_synced,
		.bound = on_bound_pod,
		.arg = p,
	};

	return view_new(&config, &p->view, e);
}

/* ---- binding */

static const char *barred(void *arg)
{
	return parts_barred(arg);
}

static const char *eviction_barred(void *arg)
{
	const struct parts *p = arg;
	const char *why = parts_barred(p);

	return why != NULL ? why : view_budgets_barred(p->view);
}

static uint64_t alone_ms(void *arg)
{
	const struct parts *p = arg;

	return lead_alone_ms(p->lead);
}

static int open_keys(struct parts *p, struct hm_err *e)
{
	const char *dir = p->options->signature_keys;

	if (dir == NULL || dir[0] == '\0')
		return 0;
	if (signature_keys_open(dir, &p->keys, e) < 0)
		return hm_err_wrap(e, "--signature-keys");
	p->keys_version = signature_keys_version(p->keys);
	if (!signature_keys_can_sign(p->keys))
		log_warn(warns(p) ? "no key is there yet: nothing is signed" : NO_KEY, KV("folder", dir));
	return 0;
}

static int make_binder(struct parts *p, struct hm_err *e)
{
	const struct bind_config config = {
		.client = p->client,
		.cluster = p->cluster,
		.view = p->view,
		.events = p->events,
		.tell_success = p->options->tell_success,
		.keys = p->keys,
		.pods = pod_rules_of(p->options->device),
		.lock_timeout_ms = p->options->node_lock_timeout_ms,
		.lock_retry_ms = p->options->node_lock_retry_ms,
		.label_pods = p->options->label_pods,
		.barred = barred,
		.alone_ms = alone_ms,
		.arg = p,
	};

	return binder_new(p->loop, &config, &p->binder, e);
}

static void on_bound(void *arg, const char *error)
{
	struct str out = { 0 };

	extender_add_bound(&out, error);
	server_answer(arg, 200, SERVER_JSON, &out);
}

void parts_answer_bind(void *arg, struct server_request *r)
{
	struct parts *p = arg;
	struct extender_binding b;
	struct hm_err e;
	size_t n;
	char *body = server_body(r, &n);

	if (extender_binding_read(body, n, &b, &e) < 0 ||
	    binder_bind(p->binder,
			&(struct bind_request) { b.pod_namespace, b.pod_name, b.pod_uid, b.node, on_bound, r }, &e) < 0)
		on_bound(r, e.msg);
}

/* ---- leading */

static void on_lead(void *arg, bool leads)
{
	struct parts *p = arg;

	if (leads && p->released == NULL && view_is_synced(p->view)) {
		takeover_begin(p->takeover, lead_mode_of(p->options) == LEAD_ALWAYS);
	} else if (!leads) {
		takeover_end(p->takeover);
		binder_stop(p->binder, "this replica does not lead any more");
		cluster_expire(p->cluster, UINT64_MAX); /* promises of a leader that is none */
	}
}

static void on_ready(void *arg)
{
	(void)arg;
	log_info("we place pods");
}

static int make_lead(struct parts *p, struct hm_err *e)
{
	const struct sched_options *o = p->options;
	char host[256];
	const struct takeover_config takeover = { p->client, p->view, o->pod_namespace, o->pod_name, BIND_OVER_MS,
						  on_ready,  p };
	struct lead_config config = {
		.mode = lead_mode_of(o),
		.name_space = o->leader_elect_namespace,
		.lease = o->leader_elect_name,
		.host = host,
		.rules = { (uint32_t)o->lease_duration_ms, (uint32_t)o->lease_renew_ms, (uint32_t)o->lease_retry_ms },
		.changed = on_lead,
		.arg = p,
	};

	read_host(host, sizeof host);
	if (config.name_space == NULL || config.name_space[0] == '\0')
		config.name_space = o->pod_namespace;
	if (config.mode != LEAD_ALWAYS && connect_api(p, 0, &p->lead_client, e) < 0)
		return -e->code;
	config.client = p->lead_client;
	if (takeover_new(p->loop, &takeover, &p->takeover, e) < 0 || lead_new(p->loop, &config, &p->lead, e) < 0)
		return -e->code;
	return 0;
}

static void on_idle(void *arg)
{
	struct parts *p = arg;

	lead_release(p->lead, p->released, p->released_arg);
}

void parts_release(struct parts *p, void (*done)(void *arg), void *arg)
{
	takeover_end(p->takeover);
	p->released = done;
	p->released_arg = arg;
	binder_stop(p->binder, "the scheduler is ending");
	binder_when_idle(p->binder, on_idle, p);
}

/* ---- deciding */

/* A pod that finds no room among some of the nodes waits, while there may be room on the others. */
static void warn_of_cut(struct parts *p, const struct filter_outcome *o)
{
	uint64_t now_ms = loop_now_ms(p->loop);
	struct view_stats known;

	if (p->cut_told_ms != 0 && now_ms - p->cut_told_ms < CUT_TOLD_MS)
		return;
	view_stats(p->view, &known);
	if (!sampled_is_cut(o->candidates, known.nodes) &&
	    !sampled_turns(&p->sampled, o->ask->uid, o->refused, o->refused_count, known.nodes, now_ms))
		return;
	p->cut_told_ms = now_ms;
	log_warn("kube-scheduler asks about some of the nodes only: percentageOfNodesToScore: 100 is missing in its "
		 "configuration",
		 KV("pod", o->ask->name), KV_U64("asked", o->candidates), KV_U64("nodes", known.nodes),
		 KV_U64("nodes_with_cards", known.nodes_with_cards));
}

static void on_filtered(void *arg, const struct filter_outcome *o)
{
	struct parts *p = arg;

	if (o->node == NULL && o->error == NULL)
		warn_of_cut(p, o);
	filter_tell(p->events, o);
}

static int make_placer(struct parts *p, struct hm_err *e)
{
	const struct fgd_weights weights = fgd_default_weights();
	const char *typical = p->options->typical_pods;
	bool given = typical != NULL && typical[0] != '\0';

	p->cluster = cluster_new(p->options->device->memory_factor);
	p->placer = placer_new(p->options->node_policy, p->options->gpu_policy);
	p->fgd = fgd_new(&p->mix, &weights);
	if (p->cluster == NULL || p->placer == NULL || p->fgd == NULL)
		return hm_err_set(e, HM_ENOMEM, "start");
	if (given && typical_pods_read(typical, p->options->device, &p->mix, e) < 0)
		return hm_err_wrap(e, "--typical-pods");
	if (!given)
		fgd_learn(p->fgd, &p->mix);
	placer_set_policy(p->placer, fgd_order(p->fgd));
	return 0;
}

static bool is_known(void *arg)
{
	const struct parts *p = arg;

	return view_is_synced(p->view);
}

static int make_verbs(struct parts *p, struct hm_err *e)
{
	const struct admission_config admission = { p->options, p->cluster, is_known, p };
	const struct filter_config config = {
		.cluster = p->cluster,
		.placer = p->placer,
		.pods = pod_rules_of(p->options->device),
		.nodes = { p->options->device->resource_count, p->options->node_label_selector },
		.barred = barred,
		.told = on_filtered,
		.arg = p,
	};
	const struct preempt_config preempt = {
		.cluster = p->cluster,
		.card_policy = p->options->gpu_policy,
		.pods = config.pods,
		.barred = eviction_barred,
		.arg = p,
	};

	if (filter_new(&config, &p->filter, e) < 0 || preempt_verb_new(&preempt, &p->preempt, e) < 0)
		return -e->code;
	return admission_new(&admission, &p->admission, e);
}

/* Each binding may have read them anew, too. */
static void look_at_keys(struct parts *p)
{
	struct hm_err e;

	if (p->keys == NULL)
		return;
	if (signature_keys_refresh(p->keys, &e) < 0)
		log_v(2, "signature keys", KV_ERR(&e));
	if (signature_keys_version(p->keys) != p->keys_version)
		view_keys_changed(p->view);
	p->keys_version = signature_keys_version(p->keys);
}

static void on_expire(void *arg)
{
	struct parts *p = arg;
	size_t n = cluster_expire(p->cluster, loop_now_ms(p->loop));

	if (n > 0)
		log_v(2, "promises that nobody kept are taken back", KV_U64("pods", n));
	look_at_keys(p);
	loop_timer_arm(p->expire, EXPIRE_MS);
}

/* ---- life */

int parts_init(struct parts *p, struct loop *l, const struct sched_options *o, struct hm_err *e)
{
	*p = (struct parts) { .loop = l, .options = o };
	if (node_selector_check(o->node_label_selector, e) < 0)
		return hm_err_wrap(e, "--node-label-selector");
	if (make_placer(p, e) < 0 || make_verbs(p, e) < 0 || make_client(p, e) < 0 || open_keys(p, e) < 0 ||
	    make_view(p, e) < 0 || make_binder(p, e) < 0 || make_lead(p, e) < 0 ||
	    loop_timer_new(l, on_expire, p, &p->expire, e) < 0)
		return -e->code;
	loop_timer_arm(p->expire, EXPIRE_MS);
	return 0;
}

void parts_fini(struct parts *p)
{
	loop_timer_free(p->expire);
	admission_free(p->admission);
	filter_free(p->filter);
	preempt_verb_free(p->preempt);
	lead_free(p->lead);
	takeover_free(p->takeover);
	binder_free(p->binder);
	view_free(p->view);
	signature_keys_free(p->keys);
	kube_events_free(p->events);
	kube_client_free(p->lead_client);
	kube_client_free(p->client);
	placer_free(p->placer);
	fgd_free(p->fgd);
	pod_mix_fini(&p->mix);
	cluster_free(p->cluster);
	*p = (struct parts) { 0 };
}

const char *parts_barred(const struct parts *p)
{
	const char *unknown = view_barred(p->view);

	if (unknown != NULL)
		return unknown;
	if (p->keys != NULL && !warns(p) && !signature_keys_can_sign(p->keys))
		return NO_KEY;
	if (!lead_is_ours(p->lead))
		return "this replica does not lead";
	return takeover_is_done(p->takeover) ? NULL : "the new leader does not know yet what the last one has bound";
}

void parts_answer_preempt(void *arg, struct server_request *r)
{
	struct parts *p = arg;
	struct str out = { 0 };
	size_t n;
	char *body = server_body(r, &n);
	int status = preempt_answer(p->preempt, body, n, &out);

	server_answer(r, status, status == 200 ? SERVER_JSON : SERVER_TEXT, &out);
}

void parts_answer_filter(void *arg, struct server_request *r)
{
	struct parts *p = arg;
	struct str out = { 0 };
	size_t n;
	char *body = server_body(r, &n);

	filter_answer(p->filter, body, n, loop_now_ms(p->loop), &out);
	server_answer(r, 200, SERVER_JSON, &out);
}
