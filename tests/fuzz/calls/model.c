#include "fuzz/calls/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "region/ledger.h"
#include "vgpu/state.h"

struct me me;

uint32_t random_below(uint32_t n)
{
	me.random ^= me.random << 13;
	me.random ^= me.random >> 7;
	me.random ^= me.random << 17;
	return (uint32_t)((me.random >> 32) * n >> 32);
}

void fail(const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "fuzz_calls: seed %lu, step %lu, process %u: %s: ", me.seed, me.step, me.index, me.doing);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fprintf(stderr, "\n");
	_exit(1);
}

struct object *object_new(enum object_kind kind, int card)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (me.m.objects[i].kind == OBJECT_NONE) {
			me.m.objects[i] = (struct object) { .kind = kind, .card = card };
			return &me.m.objects[i];
		}
	}
	return NULL;
}

struct object *object_any(enum object_kind kind)
{
	unsigned from = random_below(OBJECTS);

	for (unsigned i = 0; i < OBJECTS; i++) {
		struct object *o = &me.m.objects[(from + i) % OBJECTS];

		if (o->kind == kind)
			return o;
	}
	return NULL;
}

struct object *object_by_handle(enum object_kind kind, uint64_t handle)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (me.m.objects[i].kind == kind && me.m.objects[i].handle == handle)
			return &me.m.objects[i];
	}
	return NULL;
}

int current_card(void)
{
	const struct object *o = object_by_handle(OBJECT_CONTEXT, me.m.current);

	return me.m.current != 0 && o != NULL ? o->card : -1;
}

uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

void pages_change(const struct object *o, int by)
{
	uint64_t first = o->handle % (UINT64_C(1) << 40) / FAKE_PAGE;
	uint64_t last = (o->handle + o->bytes - 1) % (UINT64_C(1) << 40) / FAKE_PAGE;

	for (uint64_t page = first; page <= last; page++)
		me.m.page_refs[o->card][page] += (unsigned)by;
}

struct expected {
	uint64_t low, high; /* of the charge */
	uint64_t taken;
	uint64_t overhead; /* contexts and code */
	uint64_t loose;    /* of what is taken: may be above the limit */
};

static void add_object(struct expected *e, const struct object *o)
{
	switch (o->kind) {
	case OBJECT_POINTER:
		if (o->bytes >= FAKE_PAGE)
			e->taken += round_up(o->bytes, FAKE_PAGE);
		break;
	case OBJECT_ARRAY:
	case OBJECT_MIPMAP:
	case OBJECT_HANDLE: e->taken += o->bytes; break;
	case OBJECT_POOL:
		e->taken += o->reserved;
		e->loose += o->reserved; /* what it grew by too much it keeps, and hands out */
		e->high += o->looked > o->reserved ? o->looked - o->reserved : 0;
		break;
	case OBJECT_MODULE: e->overhead += o->bytes; break;
	case OBJECT_CONTEXT: e->overhead += FAKE_CONTEXT_BYTES; break;
	default: break;
	}
}

static struct expected expected_on(int card)
{
	struct expected e = { 0 };
	uint64_t *peak = &me.m.overhead_peak[card];

	for (unsigned i = 0; i < OBJECTS; i++) {
		if (me.m.objects[i].kind != OBJECT_NONE && me.m.objects[i].card == card)
			add_object(&e, &me.m.objects[i]);
	}
	for (unsigned i = 0; i < PAGES; i++)
		e.taken += me.m.page_refs[card][i] != 0 ? FAKE_PAGE : 0;
	e.taken += me.m.graphs[card].reserved;
	e.loose += me.m.graphs[card].reserved;
	e.low = e.taken;
	e.high += e.taken;
	*peak = e.overhead == 0 ? 0 : HM_MAX(*peak, e.overhead);
	e.taken += e.overhead;
	if (!me.world->nvml) {
		e.loose += e.overhead;
	} else if (me.m.managed) {
		/* Measurements are lower bounds, and none where managed memory may be on another card. */
		e.high += *peak;
		e.loose += e.overhead;
	} else {
		e.low += e.overhead;
		e.high += e.overhead;
	}
	return e;
}

static uint64_t charged_on(int card)
{
	struct vgpu *v = vgpu_get();
	struct vgpu_card *c = v != NULL ? vgpu_card_of(v, card) : NULL;

	if (c == NULL || v->mode != VGPU_ON)
		fail("libvgpu does not hold limits: mode %d", v != NULL ? (int)v->mode : -1);
	return ledger_slot_used(v->map.r, v->ledger.slot, (unsigned)c->region_card);
}

static uint64_t others(int card)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < FAKE_PROCESSES; i++)
		sum += i != me.index ? me.world->processes[i].charged[card] : 0;
	return sum;
}

bool granted(CUresult rc, int card, uint64_t bytes)
{
	bool asked_for = fake_failed();
	uint64_t used;

	if (rc == CUDA_SUCCESS && !asked_for)
		return true;
	if (asked_for && (rc == CUDA_ERROR_OUT_OF_MEMORY || rc == CUDA_ERROR_UNKNOWN))
		return false;
	if (rc != CUDA_ERROR_OUT_OF_MEMORY)
		fail("answered %d", rc);
	pools_looked_at(); /* before it refuses */
	used = charged_on(card) + others(card);
	if (me.alone && used + bytes <= me.world->limit[card])
		fail("refused %lu bytes on card %d, where %lu of %lu are used", bytes, card, used,
		     me.world->limit[card]);
	return false;
}

void expect(CUresult rc, CUresult wanted)
{
	if (rc != wanted)
		fail("answered %d, not %d", rc, wanted);
}

static void looked_at(int card)
{
	for (unsigned i = 0; i < OBJECTS; i++) {
		if (me.m.objects[i].card == card && !me.m.objects[i].doomed)
			me.m.objects[i].looked = me.m.objects[i].reserved;
	}
}

void pools_looked_at(void)
{
	for (int card = 0; card < FAKE_CARDS; card++)
		looked_at(card);
}

static void check_card(int card)
{
	struct fake_process *self = &me.world->processes[me.index];
	struct expected e = expected_on(card);
	uint64_t charged = charged_on(card), loose = 0;

	if (self->taken[card] != e.taken)
		fail("the driver gave %lu bytes of card %d, the model has %lu", self->taken[card], card, e.taken);
	if (charged < e.low || charged > e.high)
		fail("charged are %lu bytes of card %d, not %lu to %lu", charged, card, e.low, e.high);
	if (charged == e.low)
		looked_at(card);
	self->charged[card] = charged;
	self->loose[card] = e.loose;
	for (unsigned i = 0; i < FAKE_PROCESSES; i++)
		loose += me.world->processes[i].loose[card];
	if (me.alone && me.world->taken[card] > me.world->limit[card] + loose)
		fail("%lu bytes of card %d are taken, %lu of them may pass the limit of %lu",
		     (uint64_t)me.world->taken[card], card, loose, me.world->limit[card]);
	if (me.world->overruns != 0)
		fail("within a call the driver had given more than the limit");
}

void check_books(void)
{
	for (int card = 0; card < FAKE_CARDS; card++)
		check_card(card);
}

void check_sum(int card)
{
	struct vgpu *v = vgpu_get();
	uint64_t used = ledger_used(v->map.r, (unsigned)vgpu_card_of(v, card)->region_card);

	if (me.alone && used != charged_on(card) + others(card))
		fail("%lu bytes of card %d are used, this process has %lu and the others %lu", used, card,
		     charged_on(card), others(card));
}
