#include "kube/pool.h"

#include "core/check.h"
#include "core/link.h"

struct pool_socket {
	struct link link;
	struct kube_pool *pool;
	struct loop_fd *watch;
	curl_socket_t fd;
};

struct kube_pool {
	struct loop *loop;
	CURLM *multi;
	struct loop_timer *timer;
	struct link sockets;
	struct kube_pool_events events;
	unsigned count;
};

static void act(struct kube_pool *p, curl_socket_t fd, int what)
{
	int running, left;
	CURLMsg *m;

	curl_multi_socket_action(p->multi, fd, what, &running);
	while ((m = curl_multi_info_read(p->multi, &left)) != NULL) {
		if (m->msg == CURLMSG_DONE)
			p->events.ended(m->easy_handle, m->data.result);
	}
	p->events.acted(p->events.arg);
}

static void on_timer(void *arg)
{
	act(arg, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(void *arg, int events)
{
	struct pool_socket *s = arg;

	act(s->pool, s->fd, (events & LOOP_READ ? CURL_CSELECT_IN : 0) | (events & LOOP_WRITE ? CURL_CSELECT_OUT : 0));
}

static int set_timer(CURLM *multi, long after_ms, void *arg)
{
	struct kube_pool *p = arg;

	(void)multi;
	if (after_ms < 0)
		loop_timer_disarm(p->timer);
	else
		loop_timer_arm(p->timer, (uint64_t)after_ms);
	return 0;
}

static void socket_free(struct pool_socket *s)
{
	link_remove(&s->link);
	loop_fd_free(s->watch);
	free(s);
}

static int set_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *of_socket)
{
	struct kube_pool *p = arg;
	struct pool_socket *s = of_socket;
	int events = (what & CURL_POLL_IN ? LOOP_READ : 0) | (what & CURL_POLL_OUT ? LOOP_WRITE : 0);

	(void)easy;
	if (what == CURL_POLL_REMOVE) {
		if (s != NULL)
			socket_free(s);
		return 0;
	}
	if (s != NULL)
		return loop_fd_set(s->watch, events) < 0 ? -1 : 0;
	s = calloc(1, sizeof *s);
	if (s == NULL)
		return -1;
	s->pool = p;
	s->fd = fd;
	if (loop_fd_new(p->loop, fd, events, on_socket, s, &s->watch, NULL) < 0) {
		free(s);
		return -1;
	}
	link_append(&p->sockets, &s->link);
	curl_multi_assign(p->multi, fd, s);
	return 0;
}

int kube_pool_new(struct loop *l, unsigned max_connections, const struct kube_pool_events *events,
		  struct kube_pool **out, struct hm_err *e)
{
	hm_auto(kube_pool) *p = calloc(1, sizeof *p);

	if (p == NULL)
		return hm_err_set(e, HM_ENOMEM, "connections");
	p->loop = l;
	p->events = *events;
	list_init(&p->sockets);
	if (loop_timer_new(l, on_timer, p, &p->timer, e) < 0)
		return -HM_ENOMEM;
	p->multi = curl_multi_init();
	if (p->multi == NULL)
		return hm_err_set(e, HM_ENOMEM, "connections");
	curl_multi_setopt(p->multi, CURLMOPT_TIMERFUNCTION, set_timer);
	curl_multi_setopt(p->multi, CURLMOPT_TIMERDATA, p);
	curl_multi_setopt(p->multi, CURLMOPT_SOCKETFUNCTION, set_socket);
	curl_multi_setopt(p->multi, CURLMOPT_SOCKETDATA, p);
	curl_multi_setopt(p->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_MULTIPLEX);
	curl_multi_setopt(p->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)max_connections);
	curl_multi_setopt(p->multi, CURLMOPT_MAXCONNECTS, (long)max_connections);
	*out = HM_STEAL(p);
	return 0;
}

void kube_pool_free(struct kube_pool *p)
{
	if (p == NULL)
		return;
	CHECK(p->count == 0);
	if (p->multi != NULL)
		curl_multi_cleanup(p->multi); /* calls set_socket and set_timer */
	LIST_FOR_EACH (&p->sockets, it)
		socket_free(HM_CONTAINER(it, struct pool_socket, link));
	loop_timer_free(p->timer);
	free(p);
}

int kube_pool_add(struct kube_pool *p, CURL *easy, struct hm_err *e)
{
	CURLMcode r = curl_multi_add_handle(p->multi, easy);

	if (r != CURLM_OK)
		return hm_err_set(e, r == CURLM_OUT_OF_MEMORY ? HM_ENOMEM : HM_EINTERNAL, "libcurl: %s",
				  curl_multi_strerror(r));
	p->count++;
	return 0;
}

void kube_pool_remove(struct kube_pool *p, CURL *easy)
{
	CHECK(curl_multi_remove_handle(p->multi, easy) == CURLM_OK);
	p->count--;
}

unsigned kube_pool_count(const struct kube_pool *p)
{
	return p->count;
}
