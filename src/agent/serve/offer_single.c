#include "agent/serve/offer_single.h"

#include <stdlib.h>

#include "agent/serve/offer_mig.h"

struct offer_single {
	struct offer offer;
	struct offer *whole, *mig, *now;
	/* As `now`'s in what the service reads of a class. */
	struct offer_class class;
};

static struct offer_single *single_of(struct offer *o)
{
	return HM_CONTAINER(o, struct offer_single, offer);
}

static struct offer *now_of(const struct offer *o)
{
	return HM_CONTAINER(o, const struct offer_single, offer)->now;
}

static int take(struct offer *o, const struct fleet *f, struct hm_err *e)
{
	struct offer_single *s = single_of(o);
	int mig = offer_mig_uniform(fleet_inventory(f), e);
	struct offer *next = mig > 0 ? s->mig : s->whole;

	if (mig < 0 || next->class->take(next, f, e) < 0)
		return -e->code;
	s->now = next;
	s->class.ids_are_held = next->class->ids_are_held;
	s->class.others_start = next->class->others_start;
	s->class.allocate_wait_ms = next->class->allocate_wait_ms;
	return 0;
}

static int list(const struct offer *o, struct fleet_devices *out, struct hm_err *e)
{
	return now_of(o)->class->list(now_of(o), out, e);
}

static int prefer(struct offer *o, const struct dp_preferred_request *req, const char **out, size_t *count,
		  struct hm_err *e)
{
	return now_of(o)->class->prefer(now_of(o), req, out, count, e);
}

static void call(struct offer *o)
{
	if (now_of(o)->class->call != NULL)
		now_of(o)->class->call(now_of(o));
}

static int claim(struct offer *o, const char *const *ids, size_t count, uint64_t number, struct claim *out,
		 struct hm_err *e)
{
	return now_of(o)->class->claim(now_of(o), ids, count, number, out, e);
}

static int start(struct offer *o, const struct prestart_target *target, const char *const *ids, size_t count,
		 const struct claim *old, struct claim *out, struct hm_err *e)
{
	return now_of(o)->class->start(now_of(o), target, ids, count, old, out, e);
}

static void answered(struct offer *o, const struct claim *c, bool ok)
{
	if (now_of(o)->class->answered != NULL)
		now_of(o)->class->answered(now_of(o), c, ok);
}

static void started(struct offer *o, const struct claim *c)
{
	struct offer *whole = single_of(o)->whole;

	if (whole->class->started != NULL)
		whole->class->started(whole, c);
}

static void free_single(struct offer *o)
{
	struct offer_single *s = single_of(o);

	offer_free(s->whole);
	offer_free(s->mig);
	free(s);
}

static const struct offer_class single_class = {
	.name = "single",
	.take = take,
	.list = list,
	.prefer = prefer,
	.call = call,
	.claim = claim,
	.start = start,
	.answered = answered,
	.started = started,
	.free = free_single,
};

int offer_single_new(struct offer *take_whole, struct offer *take_mig, struct offer **out, struct hm_err *e)
{
	struct offer_single *s = calloc(1, sizeof *s);

	if (s == NULL) {
		offer_free(take_whole);
		offer_free(take_mig);
		return hm_err_set(e, HM_ENOMEM, "strategy single");
	}
	*s = (struct offer_single) { .whole = take_whole, .mig = take_mig, .now = take_whole, .class = single_class };
	s->offer = (struct offer) { &s->class, take_whole->resource };
	*out = &s->offer;
	return 0;
}
