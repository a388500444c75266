#include "agent/agent.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/cards/cards.h"
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
#include "agent/offers.h"
#include "agent/options/paths.h"
#include "agent/pages.h"
#include "agent/processes/hami_monitor.h"
#include "agent/processes/sampler.h"
#include "agent/processes/sweep.h"
#include "agent/reload/reload.h"
#include "agent/reload/selftest.h"
#include "base/log.h"

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
	struct hami_hook *hook; /* NULL: not in mode hami */
	struct cards *cards;
	struct cluster *cluster;
	struct offers *offers;
	struct reconcile *reconcile;
	struct sweep *sweep;
	struct hami_monitor *monitor; /* NULL: not wanted */
	struct sampler *sampler;
	struct pod_names *names;
	struct reload *reload;
	struct pages *pages;
	bool stopping;
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
	offers_stop(a->offers);
	pages_stop(a->pages);
	cards_stop(a->cards, on_closed, a);
	loop_timer_arm(a->stop, STOP_MS);
}

static void on_signal(void *arg)
{
	struct agent *a = arg;

	log_info("asked to end");
	a->again = false;
	begin_stop(a);
}

/* ---- parts calling parts */

static void on_failed(void *arg, const struct hm_err *why)
{
	struct agent *a = arg;

	a->failure = *why;
	begin_stop(a);
}

static int on_cards(void *arg, const struct fleet *f, struct hm_err *e)
{
	struct agent *a = arg;

	if (offers_take(a->offers, f, e) < 0)
		return -e->code;
	pages_take(a->pages, f);
	return 0;
}

static void on_scanned(void *arg)
{
	struct agent *a = arg;

	if (a->hook != NULL)
		hami_hook_take(a->hook, edits_driver(a->edits), fleet_inventory(cards_fleet(a->cards)));
	offers_start(a->offers);
}

static void on_registered(void *arg)
{
	struct agent *a = arg;

	pod_names_new_kubelet(a->names);
}

static void on_started(void *arg)
{
	struct agent *a = arg;

	pod_names_want(a->names);
}

static enum pod_life on_life(void *arg, const struct claim *c)
{
	struct agent *a = arg;

	return pod_names_life(a->names, c);
}

/* ---- the configuration */

/* Sizes are those of new containers: a running one keeps what its claim says. */
static int on_changed(void *arg, struct hm_err *e)
{
	struct agent *a = arg;

	if (cards_fleet(a->cards) != NULL && on_cards(a, cards_fleet(a->cards), e) < 0)
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
	used = reconcile_max_number(&a->paths, a->options->resource_name);
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

static int make_offers(struct agent *a, struct hm_err *e)
{
	const struct offers_config config = { .options = a->options,
					      .paths = &a->paths,
					      .claims = a->claims,
					      .counter = a->counter,
					      .pending = a->pending,
					      .edits = a->edits,
					      .cluster = a->cluster,
					      .worker = a->worker,
					      .cards = a->cards,
					      .started_ms = a->started_ms,
					      .started = on_started,
					      .life = on_life,
					      .registered = on_registered,
					      .restart = on_restart,
					      .arg = a };

	return offers_new(a->loop, &config, &a->offers, e);
}

/* Who runs, and who has ended. */
static int make_watchers(struct agent *a, struct hm_err *e)
{
	const char *monitor_dir = a->hook != NULL ? hami_hook_monitor_dir(a->hook) : a->options->hami_monitor_dir;
	struct reconcile_config reconcile = { .paths = &a->paths,
					      .resource = a->options->resource_name,
					      .claims = a->claims,
					      .counter = a->counter,
					      .worker = a->worker,
					      .pending = a->pending };
	struct sampler_config sampler = { .proc = "/proc",
					  .paths = &a->paths,
					  .claims = a->claims,
					  .driver = cards_driver(a->cards),
					  .worker = a->worker };
	const struct hami_mode *hami = offers_hami(a->offers);

	if (pod_names_new(a->loop, a->paths.pod_resources.s,
			  offers_has_mig(a->offers) ? NULL : a->options->resource_name, a->claims, &a->names, e) < 0)
		return -e->code;
	reconcile.names = a->names;
	reconcile.pods = hami != NULL ? hami_pods_watched(hami_mode_pods(hami)) : NULL;
	if (reconcile_new(a->loop, &reconcile, &a->reconcile, e) < 0)
		return -e->code;
	if (monitor_dir != NULL && hami_monitor_new(a->loop, monitor_dir, &a->paths, a->claims, &a->monitor, e) < 0)
		return -e->code;
	if (sweep_new(a->loop, "/proc", &a->paths, a->claims, &a->sweep, e) < 0)
		return -e->code;
	sampler.monitor = a->monitor;
	return sampler_new(a->loop, &sampler, &a->sampler, e);
}

static int make_pages(struct agent *a, struct hm_err *e)
{
	const struct pages_config config = { .options = a->options,
					     .paths = &a->paths,
					     .claims = a->claims,
					     .cluster = a->cluster,
					     .offers = a->offers,
					     .reload = a->reload,
					     .cards = a->cards,
					     .worker = a->worker };

	return pages_new(a->loop, &config, &a->pages, e);
}

static int start(struct agent *a, struct hm_err *e)
{
	const struct cards_listener cards = { on_cards, on_scanned, on_failed, a };

	if (make_loop(a, e) < 0 || cards_new(a->loop, a->worker, a->options, &cards, &a->cards, e) < 0 ||
	    open_state(a, e) < 0 || make_cluster(a, e) < 0 ||
	    cards_check(a->cards, &a->paths, a->claims, a->cluster, e) < 0 || make_offers(a, e) < 0 ||
	    make_watchers(a, e) < 0 || make_reload(a, e) < 0 || make_pages(a, e) < 0)
		return -e->code;
	library_clean(&a->paths, a->library, a->claims);
	return 0;
}

/* False where NVML hangs: its thread, and what it uses, are left behind. */
static bool take_down(struct agent *a)
{
	bool ended = worker_free(a->worker, JOIN_MS);

	pages_free(a->pages);
	reload_free(a->reload);
	offers_free(a->offers);
	sweep_free(a->sweep);
	hami_monitor_free(a->monitor);
	reconcile_free(a->reconcile);
	pod_names_free(a->names);
	sampler_free(a->sampler);
	cards_free(a->cards, ended);
	cluster_free(a->cluster);
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
