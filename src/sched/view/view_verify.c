#include "sched/view/view_verify.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/log.h"
#include "base/str.h"
#include "io/aside.h"

/* One child at a time, so that of two cores one is left to the loop. It gets all that came while the one before was at
 * work: what we write beside a child is copied, so that each costs us some 15 ms. LEAST is 0.15 s of a child's work.
 * What a child did not do we do, OWN in a turn of the loop: 0.2 s. */
enum { LEAST = 4000, OWN = 2000 };

struct item {
	struct signature_check check;
	uint64_t print;
	size_t asks, ask_count, uid, text, text_bytes; /* of batch.bytes */
};

/* What the items have of texts and asks stands in one block: pieces of the heap that outlive a page of pods would make
 * each later page slower. */
struct batch {
	struct view_verify *of;
	struct aside *aside; /* the child; NULL: it has not begun, or has ended */
	struct str bytes;
	struct item *items;
	size_t count, cap;
	uint8_t *good; /* what it said, of the first `said` */
	size_t said, settled;
};

struct view_verify {
	struct loop *loop;
	struct loop_timer *turn;
	struct view_verify_events events;
	struct batch *open, *running; /* NULL: none */
	bool flushed;                 /* the open one need not grow */
};

static void batch_free(struct batch *b)
{
	if (b == NULL)
		return;
	for (size_t i = 0; i < b->count; i++)
		signature_check_fini(&b->items[i].check);
	str_fini(&b->bytes);
	free(b->items);
	free(b->good);
	aside_free(b->aside);
	free(b);
}

bool view_verify_is_idle(const struct view_verify *v)
{
	return v->open == NULL && v->running == NULL;
}

static int check(const struct batch *b, size_t i, struct hm_err *e)
{
	const struct item *item = &b->items[i];

	return signature_check_end(&item->check, str_text(&b->bytes) + item->text, item->text_bytes, e);
}

/* In the child. */
static void work(void *arg, uint8_t *out, size_t n)
{
	const struct batch *b = arg;

	for (size_t i = 0; i < n; i++)
		out[i] = check(b, i, NULL) == 0;
}

static void tell_bad(struct view_verify *v, const struct batch *b, size_t i, const struct hm_err *why)
{
	const struct item *item = &b->items[i];
	const char *bytes = str_text(&b->bytes);

	v->events.bad(v->events.arg,
		      &(struct view_bad) { bytes + item->uid, item->print,
					   (const struct card_ask *)(const void *)(bytes + item->asks),
					   item->ask_count },
		      why);
}

/* What the child does not say is good we look at ourselves: we must say why it is not, and children may die. */
static bool settle(struct batch *b)
{
	struct hm_err why;
	size_t own = 0;

	for (; b->settled < b->count && own < OWN; b->settled++) {
		size_t i = b->settled;

		if (i < b->said && b->good[i] == 1)
			continue;
		own++;
		if (check(b, i, &why) < 0)
			tell_bad(b->of, b, i, &why);
	}
	return b->settled == b->count;
}

static void settle_running(struct view_verify *v)
{
	struct batch *b = v->running;

	loop_timer_arm(v->turn, 0);
	if (!settle(b))
		return;
	v->running = NULL;
	batch_free(b);
	if (view_verify_is_idle(v))
		v->events.idle(v->events.arg);
}

static void on_worked(void *arg, const uint8_t *bytes, size_t n)
{
	struct batch *b = arg;

	b->aside = NULL;
	b->good = n > 0 ? malloc(n) : NULL;
	if (b->good != NULL) {
		memcpy(b->good, bytes, n);
		b->said = n;
	}
	settle_running(b->of);
}

static void on_turn(void *arg)
{
	struct view_verify *v = arg;
	struct batch *b = v->open;
	struct hm_err e;

	if (v->running != NULL) {
		if (v->running->aside == NULL)
			settle_running(v);
		return;
	}
	if (b == NULL || (b->count < LEAST && !v->flushed))
		return;
	v->open = NULL;
	v->running = b;
	if (aside_start(v->loop, &(struct aside_work) { work, on_worked, b }, b->count, &b->aside, &e) < 0) {
		log_v(1, "signatures are checked in our own time", KV_ERR(&e));
		on_worked(b, NULL, 0);
	}
}

void view_verify_flush(struct view_verify *v)
{
	v->flushed = true;
	loop_timer_arm(v->turn, 0);
}

static struct batch *open_batch(struct view_verify *v)
{
	if (v->open == NULL)
		v->open = calloc(1, sizeof *v->open);
	if (v->open != NULL)
		v->open->of = v;
	return v->open;
}

/* Where it stands; the asks' alignment is that of what stands before them. */
static size_t put(struct str *to, const void *bytes, size_t n)
{
	static const char zeros[_Alignof(struct card_ask)];
	size_t at;

	str_add_n(to, zeros, (sizeof zeros - to->n % sizeof zeros) % sizeof zeros);
	at = to->n;
	str_add_n(to, bytes, n);
	return at;
}

int view_verify_add(struct view_verify *v, struct pod_hold *h, uint64_t print, struct hm_err *e)
{
	struct batch *b = open_batch(v);
	struct item *item;

	if (b == NULL || !array_reserve(&b->items, &b->cap, b->count + 1, sizeof b->items[0]))
		return hm_err_set(e, HM_ENOMEM, "a signature: out of memory");
	item = &b->items[b->count];
	*item = (struct item) { .print = print, .ask_count = h->ask.count, .text_bytes = h->checked.n };
	item->asks = put(&b->bytes, h->ask.containers, h->ask.count * sizeof h->ask.containers[0]);
	item->uid = put(&b->bytes, h->hold.uid, strlen(h->hold.uid) + 1);
	item->text = put(&b->bytes, str_text(&h->checked), h->checked.n);
	if (str_failed(&b->bytes))
		return hm_err_set(e, HM_ENOMEM, "a signature: out of memory");
	item->check = h->check;
	h->check = (struct signature_check) { 0 };
	b->count++;
	if (v->running == NULL && (b->count >= LEAST || v->flushed))
		loop_timer_arm(v->turn, 0);
	return 0;
}

int view_verify_new(struct loop *l, const struct view_verify_events *events, struct view_verify **out, struct hm_err *e)
{
	hm_auto(view_verify) *v = calloc(1, sizeof *v);

	if (v == NULL)
		return hm_err_set(e, HM_ENOMEM, "view: out of memory");
	v->loop = l;
	v->events = *events;
	if (loop_timer_new(l, on_turn, v, &v->turn, e) < 0)
		return -e->code;
	*out = HM_STEAL(v);
	return 0;
}

void view_verify_free(struct view_verify *v)
{
	if (v == NULL)
		return;
	loop_timer_free(v->turn);
	batch_free(v->open);
	batch_free(v->running);
	free(v);
}
