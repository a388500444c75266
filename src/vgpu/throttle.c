#include "vgpu/throttle.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

#include "region/shared.h"
#include "region/sys.h"
#include "vgpu/clock.h"
#include "vgpu/hooks.h"
#include "vgpu/lock.h"
#include "vgpu/marks.h"

enum { RINGS = 16 };

#define MS UINT64_C(1000000)
#define SLEEP_NS MS                /* at a time, while waiting */
#define CROWDED_NS (200 * MS)      /* nothing finished for so long: what was launched may be waiting for us */
#define DEADLINE_NS BUCKET_DEBT_NS /* the longest wait */

struct throttle {
	struct throttle_ring *_Atomic only; /* of the one context seen so far, where there is one card */
	_Atomic uint32_t ring_lock;
	struct throttle_ring rings[RINGS];
	struct region_compute own[HM_MAX_CARDS]; /* of cards that are not in the region */
	bool shares; /* else there is nothing but waiting for containers of higher priority */
	struct estimates estimates;
};

static const struct region_compute always[HM_MAX_CARDS] = { { .hold_until_ns = 1 } }, never[HM_MAX_CARDS];

const struct region_compute *_Atomic throttle_cards = always;
_Atomic uint32_t throttle_card_count = 1;

/* Is there a share that could come to hold? */
static bool has_shares(const struct vgpu *v)
{
	if (v->policy == LIMIT_POLICY_DISABLE)
		return false;
	if (v->from_env)
		return v->env.any_cores;
	for (uint32_t i = 0; i < v->card_count; i++) {
		if (v->cards[i].limit.cores < 100)
			return true;
	}
	return false;
}

/* The node agent writes to the regions that it made: not to those of the environment. */
static bool may_be_held(const struct vgpu *v)
{
	return v->priority > 0 && !v->from_env && v->map.r != NULL;
}

/* Where there is no share. False: nothing is ever asked for either. */
static bool look_for_holds(const struct vgpu *v)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < v->card_count && may_be_held(v); i++)
		count = HM_MAX(count, (uint32_t)(v->cards[i].region_card + 1));
	throttle_cards = count > 0 ? v->map.r->compute : never;
	throttle_card_count = HM_MAX(count, UINT32_C(1));
	return count > 0;
}

static struct throttle *throttle_make(struct vgpu *v)
{
	struct throttle *none = NULL, *t;

	if (!has_shares(v) && !look_for_holds(v))
		return NULL;
	t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t == MAP_FAILED)
		return NULL;
	t->shares = has_shares(v);
	if (__atomic_compare_exchange_n((struct throttle **)&v->throttle, &none, t, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return t;
	munmap(t, sizeof *t);
	return none;
}

/* Where the region is lost (its place holds zeros), or has no such card, the limit is this process's alone. */
static void use_bucket(struct vgpu *v, struct throttle *t, struct throttle_ring *r)
{
	r->gate.shared = v->map.r != NULL && r->card->region_card >= 0 ? &v->map.r->compute[r->card->region_card]
								       : &t->own[r->card - v->cards];
}

static struct vgpu_card *current_card(struct vgpu *v)
{
	CUdevice device;

	if (vgpu_has_one_card(v))
		return &v->cards[0];
	return REAL(cuCtxGetDevice)(&device) == CUDA_SUCCESS ? vgpu_card_of(v, device) : NULL;
}

static struct throttle_ring *new_ring(struct vgpu *v, struct throttle *t, uint64_t ctx)
{
	struct vgpu_card *card = current_card(v);
	struct throttle_ring *r = NULL;

	if (card == NULL)
		return NULL;
	lock_take(&t->ring_lock);
	for (unsigned i = 0; i < RINGS && r == NULL; i++) {
		if (t->rings[i].ctx == 0 || t->rings[i].ctx == ctx)
			r = &t->rings[i];
	}
	if (r != NULL && r->ctx == 0) {
		t->only = r == &t->rings[0] && vgpu_has_one_card(v) ? r : NULL;
		r->card = card;
		r->gate.share = t->shares ? card->limit.cores : 100;
		use_bucket(v, t, r);
		atomic_store_explicit(&r->ctx, ctx, memory_order_release);
	}
	lock_release(&t->ring_lock);
	return r;
}

/* A context beyond those there is room for shares a ring of its card, unmeasured. */
static struct throttle_ring *any_ring(struct vgpu *v, struct throttle *t)
{
	const struct vgpu_card *card = current_card(v);

	for (unsigned i = 0; i < RINGS; i++) {
		if (t->rings[i].card == card)
			return &t->rings[i];
	}
	return NULL;
}

static struct throttle_ring *current_ring(struct vgpu *v, struct throttle *t)
{
	struct throttle_ring *r;
	CUcontext ctx = NULL;

	if (REAL(cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS || ctx == NULL)
		return NULL;
	for (unsigned i = 0; i < RINGS; i++) {
		if (atomic_load_explicit(&t->rings[i].ctx, memory_order_acquire) == (uintptr_t)ctx)
			return &t->rings[i];
	}
	r = new_ring(v, t, (uintptr_t)ctx);
	return r != NULL ? r : any_ring(v, t);
}

/* True also where the driver will not say: then it is no time for calls of ours. */
static bool may_capture(const struct launch *l)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
	CUresult rc = l->per_thread ? REAL(cuStreamIsCapturing_ptsz)(l->stream, &status)
				    : REAL(cuStreamIsCapturing)(l->stream, &status);

	return rc != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE;
}

static bool is_held(const struct launch *l, uint64_t now)
{
	return may_be_held(l->v) && bucket_is_ahead(shared_load(&l->ring->gate.shared->hold_until_ns), now);
}

static bool is_open(const struct launch *l, uint64_t now)
{
	return l->ring->gate.share >= 100 || (l->v->policy == LIMIT_POLICY_DEFAULT &&
					      bucket_is_ahead(shared_load(&l->ring->gate.shared->open_until_ns), now));
}

/* Not for a launch that has passed the gate: it would count as finished. */
static void poll(struct throttle_ring *r, uint64_t now)
{
	if (!marks_try_lock(r))
		return;
	marks_poll(r, now);
	if (r->pending == 0)
		gate_idle(&r->gate);
	marks_unlock(r);
}

/* False: this launch is not counted. */
static bool wait_turn(const struct launch *l)
{
	struct throttle_ring *r = l->ring;
	uint64_t now = clock_now_ns(), from = now, progress = now, wait;
	int64_t done = r->gate.done_ns;
	bool own = atomic_load_explicit(&r->ctx, memory_order_relaxed) != 0, told = false;

	if (may_capture(l))
		return false;
	for (;; now = clock_now_ns()) {
		if (own)
			poll(r, now);
		if (r->gate.done_ns != done)
			progress = now;
		done = r->gate.done_ns;
		if (is_held(l, now)) {
			from = progress = now;
			wait = SLEEP_NS;
		} else if (is_open(l, now)) {
			return false;
		} else {
			wait = gate_ask(&r->gate, now, l->estimate_ns, now - progress > CROWDED_NS);
		}
		if (wait == 0)
			return true;
		if (now - from > DEADLINE_NS)
			break;
		if (!told)
			shared_add(&r->gate.shared->waits, 1);
		told = true;
		sys_sleep_us((long)(HM_MIN(wait, SLEEP_NS) / 1000) + 1);
	}
	gate_force(&r->gate, now, l->estimate_ns);
	shared_add(&r->gate.shared->overdue, 1);
	return true;
}

static void begin_mark(struct launch *l, struct throttle *t, uint32_t launches)
{
	struct throttle_ring *r = l->ring;
	CUcontext ctx = NULL;
	uint64_t now;

	if (may_capture(l) || REAL(cuCtxGetCurrent)(&ctx) != CUDA_SUCCESS)
		return;
	if ((uintptr_t)ctx != r->ctx) {
		t->only = NULL; /* a second context: from now on each launch asks for its own */
		return;
	}
	if (!marks_try_lock(r))
		return;
	now = clock_now_ns();
	marks_poll(r, now);
	l->mark = marks_begin(r, l->stream, l->per_thread);
	if (l->mark == NULL) {
		marks_unlock(r);
		return;
	}
	l->mark->row = l->row;
	l->mark->at_ns = now;
	l->mark->estimate_ns = l->estimate_ns;
	l->mark->launches = launches;
	l->mark->launched_ns = gate_launched(&r->gate);
}

static void before(struct launch *l, uint64_t key)
{
	struct throttle *t = l->v->throttle;
	uint32_t launches;

	if (HM_UNLIKELY(t == NULL)) {
		t = l->v->mode == VGPU_ON ? throttle_make(l->v) : NULL;
		if (t == NULL)
			return;
	}
	if (!t->shares && throttle_is_off())
		return;
	l->ring = t->only;
	if (l->ring == NULL)
		l->ring = current_ring(l->v, t);
	if (l->ring == NULL)
		return;
	if (l->ring->gate.share >= 100) {
		if (may_be_held(l->v) && shared_load(&l->ring->gate.shared->hold_until_ns) != 0)
			wait_turn(l);
		l->ring = NULL;
		return;
	}
	l->row = estimate_find(&t->estimates, key);
	l->estimate_ns = atomic_load_explicit(&l->row->ns, memory_order_relaxed);
	if (!gate_pass(&l->ring->gate, l->estimate_ns) && !wait_turn(l)) {
		l->ring = NULL;
		return;
	}
	if (estimate_wants_mark(&t->estimates, l->row, &launches))
		begin_mark(l, t, launches);
}

void throttle_before(struct launch *l, uint64_t key, CUstream stream, bool per_thread)
{
	int saved = errno;

	*l = (struct launch) { .v = vgpu_get(), .stream = stream, .per_thread = per_thread };
	if (l->v != NULL)
		before(l, key);
	else
		throttle_cards = never;
	errno = saved;
}

CUresult throttle_after(struct launch *l, CUresult rc)
{
	if (l->mark != NULL) {
		marks_end(l->ring, l->mark, l->stream, l->per_thread, rc == CUDA_SUCCESS);
		marks_unlock(l->ring);
	}
	if (l->ring != NULL && HM_UNLIKELY(rc != CUDA_SUCCESS))
		gate_cancel(&l->ring->gate, l->estimate_ns);
	return rc;
}

static __attribute__((noinline)) void settle(void)
{
	struct vgpu *v = vgpu_get();
	struct throttle *t = v != NULL ? v->throttle : NULL;
	int saved = errno;

	for (unsigned i = 0; t != NULL && i < RINGS; i++) {
		if (t->rings[i].pending != 0)
			poll(&t->rings[i], clock_now_ns());
	}
	errno = saved;
}

void throttle_settle(void)
{
	if (!throttle_is_off())
		settle();
}

void throttle_forget(struct vgpu *v, uint64_t ctx)
{
	struct throttle *t = v->throttle;

	for (unsigned i = 0; t != NULL && i < RINGS; i++) {
		struct throttle_ring *r = &t->rings[i];

		if (r->ctx != ctx)
			continue;
		t->only = NULL;
		while (!marks_try_lock(r))
			sched_yield();
		marks_drop(r, clock_now_ns());
		r->ctx = 0;
		marks_unlock(r);
	}
}
