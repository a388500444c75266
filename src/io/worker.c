#include "io/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct queue {
	struct worker_job *first, **last;
};

struct worker {
	struct loop *loop;
	pthread_t thread;
	pthread_mutex_t lock; /* guards everything below */
	pthread_cond_t wake;
	struct queue todo, finished;
	bool stopping, ended, running;
	uint64_t since_ms;
	size_t pending;
	int event_fd;
	struct loop_fd *ready;
};

static void queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void queue_push(struct queue *q, struct worker_job *job)
{
	job->next = NULL;
	*q->last = job;
	q->last = &job->next;
}

static struct worker_job *queue_pop(struct queue *q)
{
	struct worker_job *job = q->first;

	if (job == NULL)
		return NULL;
	q->first = job->next;
	if (q->first == NULL)
		q->last = &q->first;
	return job;
}

static void *thread_main(void *arg)
{
	struct worker *w = arg;
	uint64_t one = 1;

	pthread_mutex_lock(&w->lock);
	while (!w->stopping) {
		struct worker_job *job = queue_pop(&w->todo);

		if (job == NULL) {
			pthread_cond_wait(&w->wake, &w->lock);
			continue;
		}
		w->running = true;
		w->since_ms = loop_now_ms(w->loop);
		pthread_mutex_unlock(&w->lock);
		job->run(job);
		pthread_mutex_lock(&w->lock);
		w->running = false;
		queue_push(&w->finished, job);
		if (write(w->event_fd, &one, sizeof one) < 0 && errno != EAGAIN)
			break;
	}
	w->ended = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

static void on_finished(void *arg, int events)
{
	struct worker *w = arg;
	uint64_t n;

	(void)events;
	if (read(w->event_fd, &n, sizeof n) < 0 && errno != EAGAIN)
		return;
	for (;;) {
		struct worker_job *job;

		pthread_mutex_lock(&w->lock);
		job = queue_pop(&w->finished);
		if (job != NULL)
			w->pending--;
		pthread_mutex_unlock(&w->lock);
		if (job == NULL)
			return;
		job->pending = false;
		job->done(job);
	}
}

static int start_thread(struct worker *w)
{
	pthread_attr_t attr;
	sigset_t all, before;
	int r;

	/* The loop handles signals: none may land in the worker. A small stack keeps the resident size down. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	r = pthread_create(&w->thread, &attr, thread_main, w);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return r;
}

int worker_new(struct loop *l, struct worker **out, struct hm_err *e)
{
	struct worker *w = calloc(1, sizeof *w);
	pthread_condattr_t attr;
	int r;

	if (w == NULL)
		return hm_err_set(e, HM_ENOMEM, "worker thread");
	w->loop = l;
	queue_init(&w->todo);
	queue_init(&w->finished);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	w->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = w->event_fd < 0 ? hm_err_errno(e, errno, "worker thread")
			    : loop_fd_new(l, w->event_fd, LOOP_READ, on_finished, w, &w->ready, e);
	if (r == 0) {
		r = start_thread(w);
		if (r == 0) {
			*out = w;
			return 0;
		}
		r = hm_err_errno(e, r, "worker thread");
	}
	loop_fd_free(w->ready);
	if (w->event_fd >= 0)
		close(w->event_fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return r;
}

void worker_submit(struct worker *w, struct worker_job *job)
{
	job->pending = true;
	pthread_mutex_lock(&w->lock);
	queue_push(&w->todo, job);
	w->pending++;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
}

uint64_t worker_busy_ms(const struct worker *w, uint64_t now_ms)
{
	struct worker *m = (struct worker *)(uintptr_t)w; /* the lock is no part of the value */
	uint64_t busy;

	pthread_mutex_lock(&m->lock);
	busy = m->running && now_ms > m->since_ms ? now_ms - m->since_ms : 0;
	pthread_mutex_unlock(&m->lock);
	return busy;
}

size_t worker_pending(const struct worker *w)
{
	struct worker *m = (struct worker *)(uintptr_t)w;
	size_t n;

	pthread_mutex_lock(&m->lock);
	n = m->pending;
	pthread_mutex_unlock(&m->lock);
	return n;
}

static bool wait_for_end(struct worker *w, uint32_t wait_ms)
{
	uint64_t until_us = loop_now_us(w->loop) + (uint64_t)wait_ms * 1000;
	struct timespec until = { (time_t)(until_us / 1000000), (long)(until_us % 1000000 * 1000) };
	bool ended;

	pthread_mutex_lock(&w->lock);
	w->stopping = true;
	pthread_cond_broadcast(&w->wake);
	while (!w->ended && pthread_cond_timedwait(&w->wake, &w->lock, &until) == 0)
		;
	ended = w->ended;
	pthread_mutex_unlock(&w->lock);
	return ended;
}

static void drop_all(struct queue *q)
{
	struct worker_job *job;

	while ((job = queue_pop(q)) != NULL)
		job->pending = false;
}

bool worker_free(struct worker *w, uint32_t wait_ms)
{
	if (w == NULL)
		return true;
	loop_fd_free(HM_STEAL(w->ready));
	if (!wait_for_end(w, wait_ms))
		return false;
	pthread_join(w->thread, NULL);
	drop_all(&w->todo);
	drop_all(&w->finished);
	close(w->event_fd);
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return true;
}
