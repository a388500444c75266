#include "io/loop.h"

#include <event2/event.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"

struct loop {
	struct event_base *base;
	struct event *wake; /* ends the wait of loop_run_once */
};

struct loop_fd {
	struct event *ev;
	struct loop *loop;
	int fd;
	void (*cb)(void *arg, int events);
	void *arg;
};

struct loop_timer {
	struct event *ev;
	void (*cb)(void *arg);
	void *arg;
};

struct loop_signal {
	struct event *ev;
	void (*cb)(void *arg);
	void *arg;
};

static void wake(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
}

/* libevent's own complaints become log lines like all others. */
static void on_libevent_log(int severity, const char *msg)
{
	if (severity >= EVENT_LOG_WARN)
		log_warn("libevent", KV("what", msg));
}

int loop_new(struct loop **out, struct hm_err *e)
{
	struct loop *l = calloc(1, sizeof *l);
	struct event_config *cfg = event_config_new();

	event_set_log_callback(on_libevent_log);
	if (l != NULL && cfg != NULL) {
		event_config_set_flag(cfg, EVENT_BASE_FLAG_NO_CACHE_TIME | EVENT_BASE_FLAG_PRECISE_TIMER);
		l->base = event_base_new_with_config(cfg);
	}
	if (cfg != NULL)
		event_config_free(cfg);
	if (l != NULL && l->base != NULL)
		l->wake = evtimer_new(l->base, wake, NULL);
	if (l == NULL || l->wake == NULL) {
		loop_free(l);
		return hm_err_set(e, HM_ENOMEM, "event loop");
	}
	*out = l;
	return 0;
}

void loop_free(struct loop *l)
{
	if (l == NULL)
		return;
	if (l->wake != NULL)
		event_free(l->wake);
	if (l->base != NULL)
		event_base_free(l->base);
	free(l);
}

int loop_run(struct loop *l, struct hm_err *e)
{
	if (event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY) < 0)
		return hm_err_set(e, HM_EIO, "event loop failed");
	return 0;
}

int loop_run_once(struct loop *l, uint32_t wait_ms, struct hm_err *e)
{
	struct timeval tv = { wait_ms / 1000, (wait_ms % 1000) * 1000L };
	int r;

	if (wait_ms > 0 && evtimer_add(l->wake, &tv) < 0)
		return hm_err_set(e, HM_ENOMEM, "event loop: wake-up timer");
	r = event_base_loop(l->base, wait_ms > 0 ? EVLOOP_ONCE : EVLOOP_NONBLOCK);
	evtimer_del(l->wake);
	if (r < 0)
		return hm_err_set(e, HM_EIO, "event loop failed");
	return 0;
}

void loop_stop(struct loop *l)
{
	event_base_loopbreak(l->base);
}

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

static uint64_t read_clock_us(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

uint64_t loop_now_us(const struct loop *l)
{
	(void)l;
	return read_clock_us(CLOCK_MONOTONIC);
}

uint64_t loop_now_ms(const struct loop *l)
{
	return loop_now_us(l) / 1000;
}

uint64_t clock_wall_ms(void)
{
	return read_clock_us(CLOCK_REALTIME) / 1000;
}

static void on_fd(evutil_socket_t fd, short what, void *arg)
{
	struct loop_fd *f = arg;

	(void)fd;
	f->cb(f->arg, (what & EV_READ ? LOOP_READ : 0) | (what & EV_WRITE ? LOOP_WRITE : 0));
}

static short to_libevent(int events)
{
	return (short)((events & LOOP_READ ? EV_READ : 0) | (events & LOOP_WRITE ? EV_WRITE : 0) | EV_PERSIST);
}

int loop_fd_new(struct loop *l, int fd, int events, void (*cb)(void *, int), void *arg, struct loop_fd **out,
		struct hm_err *e)
{
	struct loop_fd *f = calloc(1, sizeof *f);

	if (f == NULL)
		return hm_err_set(e, HM_ENOMEM, "watch of a file descriptor");
	*f = (struct loop_fd) { NULL, l, fd, cb, arg };
	f->ev = event_new(l->base, fd, to_libevent(events), on_fd, f);
	if (f->ev == NULL || (events != 0 && event_add(f->ev, NULL) < 0)) {
		loop_fd_free(f);
		return hm_err_set(e, HM_EIO, "watch of a file descriptor");
	}
	*out = f;
	return 0;
}

int loop_fd_set(struct loop_fd *f, int events)
{
	event_del(f->ev);
	if (event_assign(f->ev, f->loop->base, f->fd, to_libevent(events), on_fd, f) < 0)
		return -HM_EIO;
	return events != 0 && event_add(f->ev, NULL) < 0 ? -HM_EIO : 0;
}

void loop_fd_free(struct loop_fd *f)
{
	if (f == NULL)
		return;
	if (f->ev != NULL)
		event_free(f->ev);
	free(f);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct loop_timer *t = arg;

	(void)fd, (void)what;
	t->cb(t->arg);
}

int loop_timer_new(struct loop *l, void (*cb)(void *), void *arg, struct loop_timer **out, struct hm_err *e)
{
	struct loop_timer *t = calloc(1, sizeof *t);

	if (t == NULL)
		return hm_err_set(e, HM_ENOMEM, "timer");
	*t = (struct loop_timer) { evtimer_new(l->base, on_timer, t), cb, arg };
	if (t->ev == NULL) {
		free(t);
		return hm_err_set(e, HM_ENOMEM, "timer");
	}
	*out = t;
	return 0;
}

void loop_timer_arm(struct loop_timer *t, uint64_t after_ms)
{
	struct timeval tv = { (time_t)(after_ms / 1000), (suseconds_t)(after_ms % 1000 * 1000) };

	evtimer_add(t->ev, &tv);
}

void loop_timer_disarm(struct loop_timer *t)
{
	evtimer_del(t->ev);
}

void loop_timer_free(struct loop_timer *t)
{
	if (t == NULL)
		return;
	event_free(t->ev);
	free(t);
}

static void on_signal(evutil_socket_t fd, short what, void *arg)
{
	struct loop_signal *s = arg;

	(void)fd, (void)what;
	s->cb(s->arg);
}

int loop_signal_new(struct loop *l, int signo, void (*cb)(void *), void *arg, struct loop_signal **out,
		    struct hm_err *e)
{
	struct loop_signal *s = calloc(1, sizeof *s);

	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "signal %d", signo);
	*s = (struct loop_signal) { evsignal_new(l->base, signo, on_signal, s), cb, arg };
	if (s->ev == NULL || evsignal_add(s->ev, NULL) < 0) {
		loop_signal_free(s);
		return hm_err_set(e, HM_EIO, "signal %d", signo);
	}
	*out = s;
	return 0;
}

void loop_signal_free(struct loop_signal *s)
{
	if (s == NULL)
		return;
	if (s->ev != NULL)
		event_free(s->ev);
	free(s);
}
