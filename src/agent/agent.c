#include "agent/agent.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cards/card_checks.h"
#include "agent/cards/card_usage.h"
#include "agent/cards/driver.h"
#include "agent/cards/fleet.h"
#include "agent/claims/claims.h"
#include "agent/claims/counter.h"
#include "agent/claims/pending.h"
#include "agent/claims/state_lock.h"
#include "agent/cluster/cluster.h"
#include "agent/cluster/pod_names.h"
#include "agent/container/edits.h"
#include "agent/container/hami_hook.h"
#include "agent/container/library.h"
#include "agent/container/library_clean.h"
#include "agent/container/reconcile.h"
#include "agent/hami/hami_mode.h"
#include "agent/metrics/health.h"
#include "agent/metrics/metrics.h"
#include "agent/options/paths.h"
#include "agent/processes/hami_monitor.h"
#include "agent/processes/sampler.h"
#include "agent/processes/sweep.h"
#include "agent/reload/reload.h"
#include "agent/reload/selftest.h"
#include "agent/serve/mig_static.h"
#include "agent/serve/offer_mig.h"
#include "agent/serve/offer_single.h"
#include "agent/serve/offer_slices.h"
#include "agent/serve/resource.h"
#include "base/log.h"
#include "contract/host.h"

enum {
	STOP_MS = 400, /* for NVML to be closed; then the process ends without */
	JOIN_MS = 100,
};

struct agent {
	struct agent_options *options;
	struct agent_paths paths;
	char library[1024];
	uint64_t started_ms;
	struct loop *loop;
	struct worker *worker;
	struct loop_signal *term, *interrupt, *quit;
	struct loop_timer *stop;
	struct claims *claims;
	struct counter *counter;
	struct pending *pending;
	struct edits *edits;
	struct fleet *fleet;
	struct card_checks *checks;
	struct cluster *cluster;
	struct hami_hook *hook; /* NULL: not in mode hami */
	struct hami_mode *hami; /* NULL: another mode */
	struct resource *resource;
	struct mig_static *mig; /* NULL: MIG devices have no resources of their own */
	struct reconcile *reconcile;
	struct sweep *sweep;
	struct hami_monitor *monitor; /* NULL: not wanted */
	struct sampler *sampler;
	struct pod_names *names;
	struct driver *driver;
	struct health_sources health_sources;
	struct http_server *health;
	struct card_usage *usage; /* NULL, as metrics: no page is wanted */
	struct metrics_sources metrics_sources;
	struct http_server *metrics;
	struct reload *reload;
	bool stopping, scanned_once, waiting_said;
	bool again;            /* the run ends to be followed by another */
	struct hm_err failure; /* code 0: none */
};

/* ---- ending */

static void on_closed(void *arg)
{
	struct agent *a = arg;

	loop_stop(a->loop);
}

/* The kubelet sees us go first; then NVML is closed, unless it hangs. */
static void begin_stop(struct agent *a)
{
	if (a->stopping)
		return;
	a->stopping = true;
	resource_stop(a->resource);
	if (a->mig != NULL)
		mig_static_stop(a->mig);
	http_server_free(HM_STEAL(a->health));
	http_server_free(HM_STEAL(a->metrics));
	driver_stop(a->driver, on_closed, a);
	loop_timer_arm(a->stop, STOP_MS);
}

static void on_signal(void *arg)
{
	struct agent *a = arg;

	log_info("asked to end");
	a->again = false;
	begin_stop(a);
}

static void fail(struct agent *a, const struct hm_err *e)
{
	a->failure = *e;
	begin_stop(a);
}

/* ---- the cards */

static void on_registered(void *arg)
{
	struct agent *a = arg;

	pod_names_new_kubelet(a->names);
}

static void log_left_out(const struct inventory *scanned)
{
	for (size_t i = 0; scanned != NULL && i < scanned->skipped_count; i++)
		log_warn("a card is left out", KV("why", scanned->skipped[i]));
}

/* MIG devices' resources come with the cards. */
static void show_resources(struct agent *a)
{
	struct metrics_sources *s = &a->metrics_sources;

	s->resources[0] = a->resource;
	s->resource_count = 1;
	for (size_t i = 0; a->mig != NULL && i < mig_static_count(a->mig); i++)
		s->resources[s->resource_count++] = mig_static_at(a->mig, i);
}

/* The cards, or what is offered of them, have changed. */
static int hand_out(struct agent *a, const struct fleet *f, struct hm_err *e)
{
	if (resource_take(a->resource, f, e) < 0 || (a->mig != NULL && mig_static_take(a->mig, f, e) < 0))
		return -e->code;
	if (a->hami != NULL)
		hami_mode_take(a->hami, f);
	show_resources(a);
	return 0;
}

/* Takes the new cards if they differ from the old: then 1. No part must ever see a fleet that is gone. */
static int take_fleet(struct agent *a, struct fleet *take_fresh, struct hm_err *e)
{
	hm_auto(fleet) *before = NULL;
	hm_auto(fleet) *fresh = take_fresh;

	if (a->fleet != NULL && fleet_equal(a->fleet, fresh))
		return 0;
	if (hand_out(a, fresh, e) < 0)
		return -e->code;
	before = a->fleet;
	a->fleet = HM_STEAL(fresh);
	if (a->usage != NULL)
		card_usage_set_cards(a->usage, fleet_inventory(a->fleet));
	return 1;
}

static void on_health_changed(void *arg)
{
	struct agent *a = arg;
	struct fleet *fresh = NULL;
	struct hm_err e;

	if (!a->stopping && a->fleet != NULL &&
	    (card_checks_judge(a->checks, a->fleet, &fresh, &e) < 0 || take_fleet(a, fresh, &e) < 0))
		log_error("cannot say that the health of a card changed", KV_ERR(&e));
}

static int update_fleet(struct agent *a, const struct inventory *scanned, struct hm_err *e)
{
	struct fleet *fresh = NULL;
	int r = card_checks_scanned(a->checks, a->fleet, scanned, &fresh, e);

	if (r == 0)
		r = take_fleet(a, fresh, e);
	if (r <= 0)
		return r;
	log_left_out(scanned);
	if (fleet_inventory(a->fleet)->count == 0)
		log_warn("no GPU was found on this node: nothing is offered");
	return 0;
}

static void on_no_driver(struct agent *a, const struct hm_err *why)
{
	struct hm_err e;

	if (!a->scanned_once && a->options->fail_on_init_error) {
		fail(a, why);
		return;
	}
	if (!a->waiting_said)
		log_warn(a->fleet == NULL ? "waiting for the driver" : "the driver is gone; waiting for it",
			 KV_ERR(why));
	a->waiting_said = true;
	a->scanned_once = true;
	if (a->fleet != NULL && update_fleet(a, NULL, &e) < 0)
		log_error("cannot mark the cards lost", KV_ERR(&e));
}

static void on_scanned(void *arg, const struct inventory *inv, const struct hm_err *why)
{
	struct agent *a = arg;
	bool first = a->fleet == NULL;
	struct hm_err e;

	if (a->stopping)
		return;
	if (inv == NULL) {
		on_no_driver(a, why);
		return;
	}
	if (a->waiting_said)
		log_info("the driver is there");
	a->waiting_said = false;
	a->scanned_once = true;
	if (update_fleet(a, inv, &e) < 0) {
		/* A cut that does not fit never will: said at once, not met by the first pod. */
		if (first)
			fail(a, &e);
		else
			log_error("the cards have changed and cannot be cut; the old ones stay", KV_ERR(&e));
		return;
	}
	if (a->hook != NULL)
		hami_hook_take(a->hook, edits_driver(a->edits), fleet_inventory(a->fleet));
	resource_start(a->resource);
}

/* ---- the configuration */

/* Sizes are those of new containers: a running one keeps what its claim says. */
static int on_changed(void *arg, struct hm_err *e)
{
	struct agent *a = arg;

	if (a->fleet != NULL && hand_out(a, a->fleet, e) < 0)
		return -e->code;
	return agent_options_set_log(a->options, e);
}

static void on_restart(void *arg)
{
	struct agent *a = arg;
	sigset_t ending;

	/* A signal from here on is the next run's: this one's loop may not come to hear of it. */
	state_lock_signals(&ending);
	pthread_sigmask(SIG_BLOCK, &ending, NULL);
	a->again = !a->stopping;
	begin_stop(a);
}

static void on_refused(void *arg, const struct hm_err *why)
{
	struct agent *a = arg;

	cluster_tell_node(a->cluster, "Warning", "ConfigurationRefused", "%s", why->msg);
}

static int make_reload(struct agent *a, struct hm_err *e)
{
	const struct reload_config config = { a->options, on_changed, on_restart, on_refused, a };
	const char *trouble = a->options->hami.node_config_trouble;

	if (trouble != NULL)
		cluster_tell_node(a->cluster, "Warning", "ConfigurationRefused", "%s", trouble);
	return reload_new(a->loop, &config, &a->reload, e);
}

/* ---- parts calling parts */

static void on_started(void *arg)
{
	struct agent *a = arg;

	pod_names_want(a->names);
}

/* ---- life */

static int open_state(struct agent *a, struct hm_err *e)
{
	char source[1024];
	uint64_t used;

	if (selftest_run(a->options, &a->paths, e) < 0)
		return -e->code;
	reconcile_remove_temporaries(&a->paths);
	if (a->options->libvgpu == NULL && library_default_source(source, sizeof source, e) < 0)
		return -e->code;
	if (library_install(a->options->libvgpu != NULL ? a->options->libvgpu : source, a->paths.lib.s, a->library,
			    sizeof a->library, e) < 0)
		return -e->code;
	if (claims_open(a->paths.claims.s, &a->claims, e) < 0)
		return -e->code;
	used = reconcile_max_number(&a->paths);
	used = HM_MAX(used, claims_max_number(a->claims));
	if (counter_open(a->paths.counter.s, used + 1, &a->counter, e) < 0)
		return -e->code;
	a->pending = pending_new();
	if (a->pending == NULL)
		return hm_err_set(e, HM_ENOMEM, "start");
	if (agent_is_hami(a->options) && hami_hook_new(a->options, a->library, &a->hook, e) < 0)
		return -e->code;
	return edits_new(a->options, &a->paths, a->library, a->hook != NULL ? hami_hook_answer(a->hook) : NULL,
			 &a->edits, e);
}

static int make_loop(struct agent *a, struct hm_err *e)
{
	sigset_t ending;

	if (loop_new(&a->loop, e) < 0)
		return -e->code;
	a->started_ms = loop_now_ms(a->loop);
	if (loop_signal_new(a->loop, SIGTERM, on_signal, a, &a->term, e) < 0 ||
	    loop_signal_new(a->loop, SIGINT, on_signal, a, &a->interrupt, e) < 0 ||
	    loop_signal_new(a->loop, SIGQUIT, on_signal, a, &a->quit, e) < 0 ||
	    loop_timer_new(a->loop, on_closed, a, &a->stop, e) < 0)
		return -e->code;
	state_lock_signals(&ending);
	pthread_sigmask(SIG_UNBLOCK, &ending, NULL);
	return worker_new(a->loop, &a->worker, e);
}

static int make_single(struct agent *a, struct offer **offer, struct hm_err *e)
{
	const struct offer_mig_config config = {
		.options = a->options, .claims = a->claims, .resource = a->options->resource_name, .profile = ""
	};
	struct offer *whole = *offer, *mig;

	if (offer_mig_new(&config, &mig, e) == 0)
		return offer_single_new(whole, mig, offer, e);
	offer_free(whole);
	return -e->code;
}

static int make_offer(struct agent *a, struct offer **out, struct hm_err *e)
{
	const struct hami_mode_config hami = { .options = a->options,
					       .paths = &a->paths,
					       .claims = a->claims,
					       .cluster = a->cluster,
					       .worker = a->worker,
					       .driver = a->driver,
					       .cards = card_checks_health(a->checks),
					       .restart = on_restart,
					       .arg = a };

	if (!agent_is_hami(a->options))
		return offer_slices_new(a->options, &a->paths, a->claims, out, e);
	if (hami_mode_new(a->loop, &hami, &a->hami, e) < 0 || hami_mode_offer(a->hami, out, e) < 0)
		return -e->code;
	return strcmp(a->options->hami.mig_strategy, "single") == 0 ? make_single(a, out, e) : 0;
}

static int make_resource(struct agent *a, struct hm_err *e)
{
	struct resource_config config = { .service = { .options = a->options,
						       .paths = &a->paths,
						       .claims = a->claims,
						       .counter = a->counter,
						       .pending = a->pending,
						       .edits = a->edits,
						       .started = on_started,
						       .arg = a },
					  .socket = HM_PLUGIN_SOCKET,
					  .started_ms = a->started_ms,
					  .registered = on_registered,
					  .arg = a };
	struct offer *offer;

	if (strcmp(a->options->hami.mig_strategy, "mixed") == 0 && mig_static_new(a->loop, &config, &a->mig, e) < 0)
		return -e->code;
	if (make_offer(a, &offer, e) < 0)
		return -e->code;
	if (a->hami != NULL)
		config.socket = hami_mode_socket(a->hami);
	return resource_new(a->loop, offer, &config, &a->resource, e);
}

/* Mode hami lives of the API server; slices are served without, and tell of what happens where there is one. */
static int make_cluster(struct agent *a, struct hm_err *e)
{
	const struct agent_options *o = a->options;
	const struct cluster_config config = { .kubeconfig = o->kubeconfig,
					       .node = o->node_name,
					       .required = agent_is_hami(o),
					       .per_second = (uint32_t)o->kube_qps,
					       .burst = (uint32_t)o->kube_burst };

	return cluster_new(a->loop, &config, &a->cluster, e);
}

static int make_checks(struct agent *a, struct hm_err *e)
{
	const struct card_checks_config config = { a->options, &a->paths,  a->worker,         a->driver,
						   a->claims,  a->cluster, on_health_changed, a };

	return card_checks_new(a->loop, &config, &a->checks, e);
}

static int make_parts(struct agent *a, struct hm_err *e)
{
	const char *monitor_dir = a->hook != NULL ? hami_hook_monitor_dir(a->hook) : a->options->hami_monitor_dir;
	struct reconcile_config reconcile = { .paths = &a->paths,
					      .claims = a->claims,
					      .counter = a->counter,
					      .worker = a->worker,
					      .pending = a->pending };
	struct sampler_config sampler = {
		.proc = "/proc", .paths = &a->paths, .claims = a->claims, .driver = a->driver, .worker = a->worker
	};

	if (make_cluster(a, e) < 0 || make_checks(a, e) < 0 || make_resource(a, e) < 0 ||
	    pod_names_new(a->loop, a->paths.pod_resources.s, a->mig != NULL ? NULL : a->options->resource_name,
			  a->claims, &a->names, e) < 0)
		return -e->code;
	reconcile.names = a->names;
	reconcile.pods = a->hami != NULL ? hami_pods_watched(hami_mode_pods(a->hami)) : NULL;
	if (reconcile_new(a->loop, &reconcile, &a->reconcile, e) < 0)
		return -e->code;
	if (monitor_dir != NULL && hami_monitor_new(a->loop, monitor_dir, &a->paths, a->claims, &a->monitor, e) < 0)
		return -e->code;
	if (sweep_new(a->loop, "/proc", &a->paths, a->claims, &a->sweep, e) < 0)
		return -e->code;
	sampler.monitor = a->monitor;
	return sampler_new(a->loop, &sampler, &a->sampler, e);
}

/* HAMi's Service leads to METRICS_HAMI_ADDRESS: served there unasked, where it can be. */
static int make_metrics(struct agent *a, struct hm_err *e)
{
	const char *asked = a->options->metrics_bind_address;
	bool unasked = asked == NULL && agent_is_hami(a->options);

	if (!unasked && (asked == NULL || asked[0] == '\0'))
		return 0;
	if (card_usage_new(a->loop, a->worker, a->driver, &a->usage, e) < 0)
		return -e->code;
	a->metrics_sources = (struct metrics_sources) { .options = a->options,
							.paths = &a->paths,
							.claims = a->claims,
							.cluster = a->cluster,
							.publish = a->hami != NULL ? hami_mode_publish(a->hami) : NULL,
							.pods = a->hami != NULL ? hami_mode_pods(a->hami) : NULL,
							.driver = a->driver,
							.usage = a->usage,
							.health = card_checks_health(a->checks),
							.reload = a->reload,
							.mig = a->hami != NULL ? hami_mode_mig(a->hami) : NULL,
							.fleet = &a->fleet };
	show_resources(a);
	if (metrics_serve(a->loop, unasked ? METRICS_HAMI_ADDRESS : asked, &a->metrics_sources, &a->metrics, e) < 0) {
		if (!unasked)
			return -e->code;
		log_warn("no metrics are served", KV_ERR(e));
	}
	return 0;
}

static int start(struct agent *a, struct hm_err *e)
{
	const struct driver_listener listener = { on_scanned, a };
	const struct driver_place place = { a->options->nvml_library,
					    agent_is_hami(a->options) ? a->options->hami.driver_root_ctr_path : NULL };

	/* The driver first: its scan takes longest, and runs beside all else. */
	if (make_loop(a, e) < 0 || driver_new(a->loop, a->worker, &place, &listener, &a->driver, e) < 0)
		return -e->code;
	if (open_state(a, e) < 0 || make_parts(a, e) < 0)
		return -e->code;
	if (make_reload(a, e) < 0)
		return -e->code;
	a->health_sources = (struct health_sources) { a->resource, a->driver, a->reload };
	if (a->options->healthz_bind_address != NULL &&
	    health_serve(a->loop, a->options->healthz_bind_address, &a->health_sources, &a->health, e) < 0)
		return -e->code;
	if (make_metrics(a, e) < 0)
		return -e->code;
	library_clean(&a->paths, a->library, a->claims);
	return 0;
}

/* False where NVML hangs: its thread, and what it uses, are left behind. */
static bool take_down(struct agent *a)
{
	bool ended = worker_free(a->worker, JOIN_MS);

	reload_free(a->reload);
	http_server_free(a->health);
	http_server_free(a->metrics);
	card_usage_free(a->usage);
	resource_free(a->resource);
	mig_static_free(a->mig);
	hami_mode_free(a->hami);
	sweep_free(a->sweep);
	hami_monitor_free(a->monitor);
	reconcile_free(a->reconcile);
	pod_names_free(a->names);
	sampler_free(a->sampler);
	card_checks_free(a->checks);
	driver_free(a->driver, ended);
	cluster_free(a->cluster);
	fleet_free(a->fleet);
	edits_free(a->edits);
	hami_hook_free(a->hook);
	pending_free(a->pending);
	counter_free(a->counter);
	claims_free(a->claims);
	loop_timer_free(a->stop);
	loop_signal_free(a->term);
	loop_signal_free(a->interrupt);
	loop_signal_free(a->quit);
	if (ended)
		loop_free(a->loop);
	else
		log_warn("NVML still hangs; ending without it");
	return ended;
}

int agent_run(struct agent_options *o, struct hm_err *e)
{
	struct agent a = { .options = o };
	hm_auto_fd lock = -1;
	sigset_t ending;
	int r;

	if (agent_paths_init(&a.paths, o, e) < 0)
		return -e->code;
	state_lock_signals(&ending);
	pthread_sigmask(SIG_BLOCK, &ending, NULL); /* until the loop takes them */
	r = state_lock(a.paths.state.s, STATE_LOCK_WAIT_MS, &lock, e);
	if (r == 1)
		log_info("asked to end");
	if (r != 0)
		return r < 0 ? r : 0;
	r = start(&a, e);
	if (r == 0)
		r = loop_run(a.loop, e);
	if (r == 0 && a.failure.code != 0) {
		*e = a.failure;
		r = -e->code;
	}
	if (r == 0 && a.again) /* one that came just before */
		r = loop_run_once(a.loop, 0, e);
	if (!take_down(&a) && r == 0 && a.again)
		return hm_err_set(e, HM_EAGAIN, "the configuration needs a new start, and NVML hangs");
	return r == 0 && a.again ? AGENT_RUN_AGAIN : r;
}
