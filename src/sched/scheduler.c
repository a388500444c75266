#include "sched/scheduler.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>

#include "base/log.h"
#include "io/http_server.h"
#include "io/loop.h"
#include "sched/extender/preemption.h"
#include "sched/metrics/metrics.h"
#include "sched/options/version.h"
#include "sched/parts.h"
#include "sched/serve/server.h"

enum {
	STOP_MS = 5000 /* for requests in hand, and for what is on its way */,
	OTHER_FILES = 256,
	BIND_MAX_BYTES = 64 << 10
};

/* PARTS: it serves on, for those who have not heard yet that it ends. ENDS: what is in hand is answered. */
enum phase { RUNS, PARTS, ENDS, RELEASES };

struct scheduler {
	const struct sched_options *options;
	struct loop *loop;
	struct loop_signal *term, *interrupt;
	struct loop_timer *stop;
	struct secrets *secrets;
	struct parts parts;
	struct server *server;
	struct server_route routes[SERVER_MAX_ROUTES];
	size_t route_count;
	struct metrics_sources metrics_sources;
	struct http_page pages[1];
	struct http_server *metrics;
	enum phase phase;
};

/* ---- pages */

static void get_healthz(void *arg, struct server_request *r)
{
	(void)arg;
	server_answer_text(r, 200, "");
}

static bool is_ready(void *arg)
{
	const struct scheduler *s = arg;

	return s->phase == RUNS && view_is_synced(s->parts.view);
}

static bool decides(void *arg)
{
	const struct scheduler *s = arg;

	return parts_barred(&s->parts) == NULL;
}

static void get_readyz(void *arg, struct server_request *r)
{
	struct scheduler *s = arg;
	bool ready = is_ready(s);

	server_answer_text(r, ready ? 200 : 503, ready ? "" : s->phase != RUNS ? "ending\n" : "not synced\n");
}

static void get_version(void *arg, struct server_request *r)
{
	struct str body = { 0 };

	(void)arg;
	version_add_json(&body);
	server_answer(r, 200, SERVER_JSON, &body);
}

static void add_routes(struct scheduler *s)
{
	enum server_guard extender = strcmp(s->options->extender_clients, "any") == 0 ? SERVER_GUARDED : SERVER_LOCAL;
	const struct server_route routes[] = {
		{ "GET", "/healthz", .handle = get_healthz, .arg = s },
		{ "GET", "/readyz", .handle = get_readyz, .arg = s },
		{ "GET", "/version", .handle = get_version, .arg = s },
		{ "POST", "/filter", extender, 0, parts_answer_filter, &s->parts },
		{ "POST", "/preempt", extender, PREEMPTION_MAX_BYTES, parts_answer_preempt, &s->parts },
		{ "POST", "/bind", extender, BIND_MAX_BYTES, parts_answer_bind, &s->parts },
		{ "POST", "/webhook", SERVER_GUARDED, WEBHOOK_MAX_BYTES, admission_answer, s->parts.admission },
	};

	_Static_assert(HM_COUNT(routes) <= SERVER_MAX_ROUTES, "SERVER_MAX_ROUTES");
	memcpy(s->routes, routes, sizeof routes);
	s->route_count = HM_COUNT(routes);
}

/* ---- ending */

static void on_released(void *arg)
{
	struct scheduler *s = arg;

	loop_stop(s->loop);
}

/* The requests in hand have ended, or their time has. */
static void on_served(void *arg)
{
	struct scheduler *s = arg;

	if (s->phase == RELEASES)
		return;
	s->phase = RELEASES;
	loop_timer_arm(s->stop, STOP_MS);
	parts_release(&s->parts, on_released, s);
}

static void stop_serving(struct scheduler *s)
{
	s->phase = ENDS;
	loop_timer_arm(s->stop, STOP_MS);
	server_stop(s->server, on_served, s);
}

/* The phase's time is over. */
static void on_due(void *arg)
{
	struct scheduler *s = arg;

	if (s->phase == PARTS)
		stop_serving(s);
	else if (s->phase == ENDS)
		on_served(s);
	else
		loop_stop(s->loop);
}

/* The API server learns from the Service's endpoints that we end, a second or two late; a webhook that cannot be
 * reached by then has the pod refused. */
static void on_signal(void *arg)
{
	struct scheduler *s = arg;

	if (s->phase > PARTS)
		return;
	log_info(s->phase == RUNS ? "asked to end" : "asked again to end");
	if (s->phase == PARTS || s->options->shutdown_delay_ms == 0) {
		stop_serving(s);
		return;
	}
	s->phase = PARTS;
	server_part(s->server);
	loop_timer_arm(s->stop, s->options->shutdown_delay_ms);
}

/* ---- life */

/* A connection is a file descriptor, and the usual 1,024 are soon gone. */
static void allow_connections(const struct sched_options *o)
{
	rlim_t want = o->max_connections + OTHER_FILES;
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= want)
		return;
	l.rlim_cur = want < l.rlim_max ? want : l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur < want)
		log_warn("few files may be open at once: few connections", KV_U64("files", l.rlim_cur));
}

static int make_server(struct scheduler *s, struct hm_err *e)
{
	const struct sched_options *o = s->options;
	const struct secrets_files files = { o->cert_file, o->key_file, o->client_ca_file, o->token_file };
	struct server_config config = { .address = o->http_bind,
					.limits = { .header_ms = o->read_header_ms,
						    .body_ms = o->read_ms,
						    .write_ms = o->read_ms,
						    .idle_ms = o->idle_ms,
						    .connections = (size_t)o->max_connections,
						    .held_bytes = SERVER_MAX_HELD_BYTES } };

	if (secrets_new(s->loop, &files, &s->secrets, e) < 0 || parts_init(&s->parts, s->loop, o, e) < 0)
		return -e->code;
	add_routes(s);
	config.routes = s->routes;
	config.route_count = s->route_count;
	config.secrets = s->secrets;
	allow_connections(o);
	return server_new(s->loop, &config, &s->server, e);
}

static int make_metrics(struct scheduler *s, struct hm_err *e)
{
	s->metrics_sources = (struct metrics_sources) { .server = s->server,
							.routes = s->routes,
							.route_count = s->route_count,
							.secrets = s->secrets,
							.cluster = s->parts.cluster,
							.filter = s->parts.filter,
							.admission = s->parts.admission,
							.binder = s->parts.binder,
							.view = s->parts.view,
							.keys = s->parts.keys,
							.client = s->parts.client,
							.device = s->options->device,
							.old_names = s->options->legacy_metrics,
							.ready = is_ready,
							.decides = decides,
							.arg = s };
	s->pages[0] = (struct http_page) { .path = "/metrics", .parts = &metrics_parts };
	if (s->options->metrics_bind_address[0] == '\0')
		return 0;
	if (http_server_new(s->loop, s->options->metrics_bind_address, s->pages, HM_COUNT(s->pages),
			    &s->metrics_sources, &s->metrics, e) < 0)
		return hm_err_wrap(e, "--metrics-bind-address");
	return 0;
}

static int make_parts(struct scheduler *s, struct hm_err *e)
{
	if (loop_new(&s->loop, e) < 0 || loop_signal_new(s->loop, SIGTERM, on_signal, s, &s->term, e) < 0 ||
	    loop_signal_new(s->loop, SIGINT, on_signal, s, &s->interrupt, e) < 0 ||
	    loop_timer_new(s->loop, on_due, s, &s->stop, e) < 0 || make_server(s, e) < 0)
		return -e->code;
	return make_metrics(s, e);
}

static void free_parts(struct scheduler *s)
{
	http_server_free(s->metrics);
	server_free(s->server);
	parts_fini(&s->parts);
	secrets_free(s->secrets);
	loop_timer_free(s->stop);
	loop_signal_free(s->interrupt);
	loop_signal_free(s->term);
	loop_free(s->loop);
}

int scheduler_run(const struct sched_options *o, struct hm_err *e)
{
	struct scheduler s = { .options = o };
	int r;

	if (o->ignored.n > 0)
		log_info("options that have no effect here", KV("options", str_text(&o->ignored)));
	r = make_parts(&s, e);
	if (r == 0) {
		log_info("hami-scheduler starts", KV("version", version_of(VERSION_VERSION)),
			 KV("scheduler", o->scheduler_name), KV_U64("port", server_port(s.server)),
			 KV_U64("metrics_port", s.metrics != NULL ? http_server_port(s.metrics) : 0),
			 KV("tls", secrets_context(s.secrets) != NULL ? "on" : "off"));
		r = loop_run(s.loop, e);
	}
	free_parts(&s);
	return r;
}
