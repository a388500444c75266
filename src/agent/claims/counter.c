#include "agent/claims/counter.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "core/link.h"
#include "core/macros.h"
#include "io/file.h"

/* Far beyond any node's life, and far from overflow. */
static const uint64_t max_number = 1ULL << 62;

struct counter {
	char *path;
	uint64_t next, end; /* [next, end) is ours to give; the file holds at least `end` */
	pthread_mutex_t lock;
	uint64_t stored; /* under the lock, as is the file: both threads may want to write it */
	/* The worker's while the job is pending. */
	struct worker_job job;
	uint64_t until;
	struct hm_err failure; /* code 0: none */
};

static int read_file(const char *path, uint64_t *out, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	struct cur c;

	if (file_read(path, 64, &text, e) < 0)
		return -e->code;
	c = cur_of(str_text(&text), text.n);
	*out = cur_u64(&c, '\n', max_number);
	if (!cur_at_end(&c))
		return hm_err_set(e, HM_EPROTO, "read %s: not a number and a line end", path);
	return 0;
}

/* A full disk has no room for a new file, but for other digits in the old one. They never get fewer, and lie in one
 * sector, which disks write whole. */
static bool overwrite(const char *path, const char *text, size_t n)
{
	hm_auto_fd fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && pwrite(fd, text, n, 0) == (ssize_t)n && fdatasync(fd) == 0;
}

/* An Allocate that errs ends its pod for good, and one that is answered waits for room where its container starts. */
static int write_number(const struct counter *c, uint64_t until, struct hm_err *e)
{
	char text[32];
	size_t n = hm_fmt(text, sizeof text, "%llu\n", (unsigned long long)until);

	if (file_replace(c->path, text, n, 0644, e) == 0 || overwrite(c->path, text, n))
		return 0;
	return hm_err_wrap(e, "reserve Allocate numbers");
}

/* Any thread's. */
static int store(struct counter *c, uint64_t until, struct hm_err *e)
{
	int r = 0;

	pthread_mutex_lock(&c->lock);
	if (c->stored < until) {
		r = write_number(c, until, e);
		if (r == 0)
			c->stored = until;
	}
	pthread_mutex_unlock(&c->lock);
	return r;
}

static int reserve(struct counter *c, struct hm_err *e)
{
	if (store(c, c->end + COUNTER_BLOCK, e) < 0)
		return -e->code;
	c->end += COUNTER_BLOCK;
	return 0;
}

int counter_open(const char *path, uint64_t floor, struct counter **out, struct hm_err *e)
{
	hm_auto(counter) *c = calloc(1, sizeof *c);
	struct hm_err why;
	uint64_t stored = 0;

	if (c == NULL)
		return hm_err_set(e, HM_ENOMEM, "Allocate numbers");
	pthread_mutex_init(&c->lock, NULL);
	if ((c->path = strdup(path)) == NULL)
		return hm_err_set(e, HM_ENOMEM, "Allocate numbers");
	if (read_file(path, &stored, &why) < 0 && why.code != HM_ENOTFOUND)
		log_warn("the file of Allocate numbers cannot be used; going on above all numbers in use", KV_ERR(&why),
			 KV_U64("from", floor));
	stored = HM_MAX(stored, floor);
	c->next = c->end = HM_MAX(stored, (uint64_t)1);
	if (reserve(c, e) < 0)
		return -e->code;
	*out = HM_STEAL(c);
	return 0;
}

void counter_free(struct counter *c)
{
	if (c == NULL || c->job.pending)
		return; /* the hung call still uses the job */
	pthread_mutex_destroy(&c->lock);
	free(c->path);
	free(c);
}

int counter_take(struct counter *c, uint64_t *out, struct hm_err *e)
{
	if (c->next == c->end && reserve(c, e) < 0)
		return -e->code;
	*out = c->next++;
	return 0;
}

static void store_in_worker(struct worker_job *job)
{
	struct counter *c = HM_CONTAINER(job, struct counter, job);

	c->failure.code = 0;
	(void)!store(c, c->until, &c->failure); /* the failure says it */
}

static void on_stored(struct worker_job *job)
{
	struct counter *c = HM_CONTAINER(job, struct counter, job);

	if (c->failure.code != 0)
		log_error("cannot reserve more Allocate numbers", KV_ERR(&c->failure));
	else
		c->end = HM_MAX(c->end, c->until);
}

void counter_refill(struct counter *c, struct worker *w)
{
	if (c->job.pending || c->end - c->next > COUNTER_BLOCK / 2)
		return;
	c->until = c->end + COUNTER_BLOCK;
	c->job = (struct worker_job) { store_in_worker, on_stored, NULL };
	worker_submit(w, &c->job);
}
