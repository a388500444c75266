#include "sched/view/view_verify.h"

#include <stdlib.h>
#include <string.h>

#include "core/link.h"
#include "io/worker.h"

/* A page of pods; some 20 ms of work. */
enum { BATCH = 500, END_MS = 5000 };

struct batch {
	struct worker_job job;
	struct link of_all;
	struct view_verify *of;
	size_t count;
	struct view_check checks[BATCH];
};

struct view_verify {
	struct worker *worker;
	struct view_verify_events events;
	struct batch *open; /* not submitted; NULL: none */
	struct link all;    /* batches, the open one too */
};

static void batch_free(struct batch *b)
{
	for (size_t i = 0; i < b->count; i++) {
		signature_check_fini(&b->checks[i].check);
		free(b->checks[i].asks);
	}
	link_remove(&b->of_all);
	free(b);
}

/* In the worker's thread: the batch is its own until it is done. */
static void run(struct worker_job *job)
{
	struct batch *b = HM_CONTAINER(job, struct batch, job);

	for (size_t i = 0; i < b->count; i++)
		(void)!signature_check_end(&b->checks[i].check, &b->checks[i].why);
}

static void done(struct worker_job *job)
{
	struct batch *b = HM_CONTAINER(job, struct batch, job);
	struct view_verify *v = b->of;

	for (size_t i = 0; i < b->count; i++)
		if (b->checks[i].why.code != 0)
			v->events.bad(v->events.arg, &b->checks[i]);
	batch_free(b);
	if (view_verify_is_idle(v))
		v->events.idle(v->events.arg);
}

bool view_verify_is_idle(const struct view_verify *v)
{
	return list_empty(&v->all);
}

void view_verify_flush(struct view_verify *v)
{
	struct batch *b = HM_STEAL(v->open);

	if (b != NULL)
		worker_submit(v->worker, &b->job);
}

static struct batch *open_batch(struct view_verify *v)
{
	struct batch *b = v->open;

	if (b != NULL)
		return b;
	b = calloc(1, sizeof *b);
	if (b == NULL)
		return NULL;
	b->job.run = run;
	b->job.done = done;
	b->of = v;
	link_append(&v->all, &b->of_all);
	v->open = b;
	return b;
}

int view_verify_add(struct view_verify *v, struct signature_check *check, const char *uid, uint64_t print,
		    const struct pod_ask *ask, struct hm_err *e)
{
	struct batch *b = open_batch(v);
	size_t bytes = ask->count * sizeof ask->containers[0], uid_bytes = strlen(uid) + 1;
	char *copy = b != NULL ? malloc(bytes + uid_bytes) : NULL;

	if (copy == NULL)
		return hm_err_set(e, HM_ENOMEM, "a signature: out of memory");
	if (bytes > 0)
		memcpy(copy, ask->containers, bytes);
	memcpy(copy + bytes, uid, uid_bytes);
	b->checks[b->count++] = (struct view_check) {
		.check = *check,
		.uid = copy + bytes,
		.print = print,
		.ask_count = ask->count,
		.asks = (struct card_ask *)copy,
	};
	*check = (struct signature_check) { 0 };
	if (b->count == BATCH)
		view_verify_flush(v);
	return 0;
}

int view_verify_new(struct loop *l, const struct view_verify_events *events, struct view_verify **out, struct hm_err *e)
{
	hm_auto(view_verify) *v = calloc(1, sizeof *v);
	int err;

	if (v == NULL)
		return hm_err_set(e, HM_ENOMEM, "view: out of memory");
	list_init(&v->all);
	v->events = *events;
	err = worker_new(l, &v->worker, e);
	if (err < 0)
		return err;
	*out = HM_STEAL(v);
	return 0;
}

void view_verify_free(struct view_verify *v)
{
	if (v == NULL)
		return;
	if (!worker_free(v->worker, END_MS))
		return; /* never seen: the thread hangs in OpenSSL, and what it uses must stay */
	LIST_FOR_EACH (&v->all, at)
		batch_free(HM_CONTAINER(at, struct batch, of_all));
	free(v);
}
