#include "agent/serve/registrar.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/log.h"
#include "core/fmt.h"
#include "io/dir_watch.h"
#include "kubelet/registration.h"

struct registrar {
	struct loop *loop;
	struct registrar_config config;
	struct agent_path socket;
	struct dir_watch *watch;
	struct dp_plugin *plugin;
	struct registration *registering;
	struct loop_timer *folder, *dial, *stream;
	bool started, registered;
	bool dropped;              /* the stream ended while registered; why is not known yet */
	uint64_t refused_since_ms; /* 0: the last dial was not refused */
	uint64_t lost_ms;          /* when the stream or the socket was last lost; 0: never */
	uint64_t backoff_ms;       /* 0: calm */
	char trouble[256];
};

static void serve(struct registrar *r);

/* True where this is news: the same trouble is not said at each try. */
static bool set_trouble(struct registrar *r, const char *text)
{
	bool news = strncmp(r->trouble, text, sizeof r->trouble - 1) != 0;

	hm_fmt(r->trouble, sizeof r->trouble, "%s", text);
	return news;
}

/* Without a kubelet's socket we only serve: a kubelet that looks for sockets by itself, or another's registration. */
static bool registers(const struct registrar *r)
{
	return r->config.paths->kubelet_socket.s[0] != '\0';
}

static void register_after(struct registrar *r, uint64_t ms)
{
	r->registered = false;
	registration_free(HM_STEAL(r->registering));
	loop_timer_disarm(r->stream);
	if (r->started && registers(r))
		loop_timer_arm(r->dial, ms);
}

/* ---- losing the resource */

static bool is_calm(const struct registrar *r)
{
	return r->lost_ms == 0 ||
	       loop_now_ms(r->loop) - r->lost_ms > HM_MAX((uint64_t)REGISTRAR_CALM_MS, 2 * r->backoff_ms);
}

/* How long to wait before claiming the resource again: not at all after a calm time, else longer each time. */
static uint64_t note_loss(struct registrar *r)
{
	if (is_calm(r))
		r->backoff_ms = 0;
	else if (r->backoff_ms == 0)
		r->backoff_ms = REGISTRAR_BACKOFF_MS;
	else
		r->backoff_ms = HM_MIN(2 * r->backoff_ms, (uint64_t)REGISTRAR_BACKOFF_MAX_MS);
	r->lost_ms = loop_now_ms(r->loop);
	return r->backoff_ms;
}

void registrar_watchers(struct registrar *r, size_t watchers)
{
	uint64_t wait = REGISTRAR_DROPPED_MS;

	if (watchers > 0) {
		loop_timer_disarm(r->stream);
		log_v(2, "the kubelet watches our devices", KV_U64("streams", watchers));
		return;
	}
	/* While another registration is on its way the old stream's end says nothing new. */
	if (!r->registered)
		return;
	log_v(1, "the kubelet closed our ListAndWatch stream");
	if (!is_calm(r)) {
		wait = note_loss(r);
		set_trouble(r, "another plugin has taken over the resource");
		log_error("ANOTHER PLUGIN HAS TAKEN OVER OUR RESOURCE: pods may get whole cards from it. Remove one of "
			  "the two from this node",
			  KV("resource", r->config.resource), KV_U64("next_try_ms", wait));
	}
	register_after(r, wait);
	r->dropped = true;
}

/* The stream ended, and the kubelet took the next registration without having restarted. */
static void judge_drop(struct registrar *r)
{
	if (!r->dropped)
		return;
	r->dropped = false;
	if (!is_calm(r))
		return; /* said when it happened */
	note_loss(r);
	log_warn("the kubelet dropped our devices though it did not restart: another plugin may serve this resource; "
		 "registered once more",
		 KV("resource", r->config.resource));
}

static void on_no_stream(void *arg)
{
	struct registrar *r = arg;

	log_warn("registered, but the kubelet does not ask for our devices; registering again",
		 KV("resource", r->config.resource));
	register_after(r, 0);
}

/* ---- registering */

static void refused(struct registrar *r, const struct hm_err *e)
{
	uint64_t now = loop_now_ms(r->loop);
	bool fast;

	r->dropped = false; /* the kubelet is down: that is why */
	if (r->refused_since_ms == 0)
		r->refused_since_ms = now;
	fast = now - r->refused_since_ms < REGISTRAR_REFUSED_FAST_MS;
	log_v(2, "the kubelet does not take registrations yet", KV_ERR(e));
	register_after(r, fast ? REGISTRAR_REFUSED_MS : REGISTRAR_RETRY_MS);
}

static void on_registered(void *arg, const struct hm_err *e)
{
	struct registrar *r = arg;

	registration_free(HM_STEAL(r->registering));
	if (e != NULL) {
		bool news = set_trouble(r, e->msg);

		if (e->code == HM_EAGAIN || e->code == HM_ENOTFOUND) {
			refused(r, e);
			return;
		}
		if (news)
			log_error("the kubelet refused our registration", KV("resource", r->config.resource),
				  KV_ERR(e));
		register_after(r, REGISTRAR_RETRY_MS);
		return;
	}
	r->refused_since_ms = 0;
	r->registered = true;
	set_trouble(r, "");
	judge_drop(r);
	log_info("registered", KV("resource", r->config.resource), KV("socket", r->socket.s),
		 KV_U64("after_start_ms", loop_now_ms(r->loop) - r->config.started_ms));
	if (dp_watchers(r->plugin) == 0)
		loop_timer_arm(r->stream, REGISTRAR_STREAM_MS);
	if (r->config.registered != NULL)
		r->config.registered(r->config.arg);
}

static void on_dial(void *arg)
{
	struct registrar *r = arg;
	const struct registration_request req = { r->config.paths->kubelet_socket.s, r->config.socket,
						  r->config.resource, on_registered, r };
	struct hm_err e;

	if (r->plugin == NULL || r->registering != NULL)
		return;
	if (registration_start(r->loop, &req, &r->registering, &e) < 0) {
		log_error("cannot register", KV_ERR(&e));
		register_after(r, REGISTRAR_RETRY_MS);
	}
}

/* ---- the folder and our socket in it */

static void on_folder_timer(void *arg)
{
	serve(arg);
}

static void close_folder(struct registrar *r)
{
	dir_watch_free(HM_STEAL(r->watch));
	r->registered = false;
	registration_free(HM_STEAL(r->registering));
	loop_timer_disarm(r->dial);
	loop_timer_disarm(r->stream);
	dp_plugin_free(HM_STEAL(r->plugin));
	loop_timer_arm(r->folder, REGISTRAR_FOLDER_MS);
}

/* A socket that nobody listens on is what a killed process leaves. */
static bool is_listened_on(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	hm_auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd >= 0 && hm_fmt(to.sun_path, sizeof to.sun_path, "%s", path) < sizeof to.sun_path &&
	       (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0 || errno == EAGAIN);
}

/* Other plugins for NVIDIA's resource have a socket of the same name. */
static void look_for_another(const struct registrar *r)
{
	if (is_listened_on(r->socket.s))
		log_error(
			"ANOTHER PLUGIN LISTENS ON OUR SOCKET, which is taken over: pods may get whole cards from it. "
			"Remove one of the two from this node",
			KV("socket", r->socket.s));
}

static void listen_anew(struct registrar *r)
{
	struct hm_err e;

	r->registered = false; /* what the old server's end tells is known */
	dp_plugin_free(HM_STEAL(r->plugin));
	if (dp_plugin_new(r->loop, r->socket.s, &r->config.handlers, &r->plugin, &e) < 0) {
		if (set_trouble(r, e.msg))
			log_error("cannot listen on our socket", KV_ERR(&e));
		close_folder(r);
		return;
	}
	r->config.served(r->config.arg, r->plugin);
}

static bool is_ours(const struct registrar *r)
{
	return r->plugin != NULL && dp_owns_socket(r->plugin);
}

/* A name came or went. What it means is looked up, not remembered: events are late by nature. */
static void on_our_socket(struct registrar *r)
{
	struct stat st;

	if (is_ours(r))
		return;
	if (lstat(r->socket.s, &st) == 0) {
		uint64_t wait = note_loss(r);

		set_trouble(r, "another plugin replaced our socket");
		log_error("ANOTHER PLUGIN HAS REPLACED OUR SOCKET: pods may get whole cards from it",
			  KV("socket", r->socket.s), KV_U64("next_try_ms", wait));
		if (wait > 0) {
			/* Two that replace each other's sockets would do it for ever. */
			close_folder(r);
			loop_timer_arm(r->folder, wait);
			return;
		}
	} else {
		log_info("our socket vanished; listening anew");
	}
	listen_anew(r);
	register_after(r, 0);
}

static void on_event(void *arg, enum dir_event event, const char *name)
{
	struct registrar *r = arg;

	if (event == DIR_GONE) {
		log_warn("the kubelet's plugin folder went away; waiting for it",
			 KV("folder", r->config.paths->plugin_dir.s));
		close_folder(r);
		return;
	}
	if (strcmp(name, r->config.socket) == 0)
		on_our_socket(r);
	else if (event == DIR_CREATED && strcmp(name, r->config.paths->kubelet_name) == 0) {
		log_info("the kubelet is back; registering");
		r->refused_since_ms = 0;
		r->dropped = false;
		if (!is_ours(r))
			listen_anew(r);
		register_after(r, 0);
	}
}

static void serve(struct registrar *r)
{
	const char *folder = r->config.paths->plugin_dir.s;
	struct hm_err e;

	/* Watch before listening: what happens in between is then an event. */
	if (dir_watch_new(r->loop, folder, on_event, r, &r->watch, &e) < 0) {
		if (set_trouble(r, e.msg))
			log_warn("waiting for the kubelet's plugin folder", KV_ERR(&e));
		loop_timer_arm(r->folder, REGISTRAR_FOLDER_MS);
		return;
	}
	look_for_another(r);
	listen_anew(r);
	if (r->plugin != NULL)
		register_after(r, 0);
}

/* ---- life */

int registrar_new(struct loop *l, const struct registrar_config *config, struct registrar **out, struct hm_err *e)
{
	hm_auto(registrar) *r = calloc(1, sizeof *r);

	if (r == NULL)
		return hm_err_set(e, HM_ENOMEM, "registrar");
	r->loop = l;
	r->config = *config;
	if (agent_path_socket(config->paths, config->socket, &r->socket, e) < 0)
		return -e->code;
	if (loop_timer_new(l, on_folder_timer, r, &r->folder, e) < 0 ||
	    loop_timer_new(l, on_dial, r, &r->dial, e) < 0 || loop_timer_new(l, on_no_stream, r, &r->stream, e) < 0)
		return hm_err_wrap(e, "registrar");
	*out = HM_STEAL(r);
	return 0;
}

void registrar_start(struct registrar *r)
{
	if (r->started)
		return;
	r->started = true;
	serve(r);
}

void registrar_free(struct registrar *r)
{
	if (r == NULL)
		return;
	r->registered = false;
	registration_free(r->registering);
	dir_watch_free(r->watch);
	dp_plugin_free(HM_STEAL(r->plugin));
	loop_timer_free(r->folder);
	loop_timer_free(r->dial);
	loop_timer_free(r->stream);
	free(r);
}

struct dp_plugin *registrar_plugin(const struct registrar *r)
{
	return r->plugin;
}

bool registrar_is_registered(const struct registrar *r)
{
	return registers(r) ? r->registered : r->plugin != NULL;
}

const char *registrar_trouble(const struct registrar *r)
{
	return r->trouble;
}
