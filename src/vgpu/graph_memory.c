/* Of each device (struct vgpu_graphs, under graph_lock):
 *   charged   what was reserved when it was last read
 *   needed    the sum of what launches under way may take
 *   promised  charged beyond `charged` for them, never more than `needed`; what they take becomes `charged`, whoever
 *             reads it first
 * A launch finds free = reserved - used - needed. While one is under way its memory may count both as used and as
 * needed: whoever is refused then looks again when one has ended.
 *
 * An epoch ends with each launch and with all else that takes or gives graph memory. In the one that its own last
 * launch began, a graph finds again what that launch had. */
#include "vgpu/graph_memory.h"

#include <sched.h>

#include "vgpu/booking.h"
#include "vgpu/clock.h"
#include "vgpu/hooks.h"
#include "vgpu/lock.h"

/* How long a launch at the limit waits for others to end; a call of the driver's may block. */
#define PATIENCE_NS UINT64_C(100000000)

static bool ask(CUdevice device, uint64_t *reserved, uint64_t *used)
{
	cuuint64_t r, u;

	if (REAL(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &r) != CUDA_SUCCESS ||
	    REAL(cuDeviceGetGraphMemAttribute)(device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &u) != CUDA_SUCCESS)
		return false;
	*reserved = r;
	*used = HM_MIN(u, r);
	return true;
}

static uint32_t next_epoch(struct vgpu_graphs *g)
{
	g->epoch += g->epoch < UINT32_MAX ? 1 : 2; /* 0 is none */
	return g->epoch;
}

/* False: over the limit; it is charged all the same. What is given back while launches are under way may have been free
 * memory that they counted on: it is promised to them instead. */
static bool account(struct vgpu *v, struct vgpu_card *card, struct vgpu_graphs *g, uint64_t reserved)
{
	uint64_t growth = reserved > g->charged ? reserved - g->charged : 0;
	uint64_t shrunk = g->charged > reserved ? g->charged - reserved : 0;
	uint64_t paid = HM_MIN(growth, g->promised), kept = HM_MIN(shrunk, g->needed - g->promised);
	bool fits = true;

	g->charged = reserved;
	g->promised = g->promised - paid + kept;
	if (shrunk > 0)
		next_epoch(g);
	if (growth > paid) {
		fits = vgpu_try_charge(v, card, growth - paid);
		if (!fits)
			vgpu_charge_taken(v, card, growth - paid);
	}
	vgpu_uncharge(v, card, shrunk - kept);
	return fits;
}

/* Under the lock. False: `credit`, which is charged already, is not enough and more does not fit; f->booked says how
 * much it would be. */
static bool book(struct vgpu *v, struct vgpu_card *card, struct graph_flight *f, uint32_t epoch, uint64_t credit)
{
	struct vgpu_graphs *g = &v->graphs[f->device];
	uint64_t reserved = g->charged, used = g->charged, free;
	bool same_epoch;

	if (ask(f->device, &reserved, &used))
		account(v, card, g, reserved);
	free = reserved - used > g->needed ? reserved - used - g->needed : 0;
	same_epoch = epoch != 0 && g->epoch == epoch;
	f->booked = f->need > free && !same_epoch ? f->need - free : 0;
	if (f->booked > credit && !vgpu_try_charge(v, card, f->booked - credit))
		return false;
	if (credit > f->booked)
		vgpu_uncharge(v, card, credit - f->booked);
	g->promised += f->booked;
	g->needed += f->need;
	g->flights++;
	f->epoch = next_epoch(g);
	return true;
}

bool graph_memory_open(struct vgpu *v, CUdevice device, uint64_t need, uint32_t epoch, struct graph_flight *f)
{
	struct vgpu_card *card = vgpu_card_of(v, device);
	uint64_t credit = 0, deadline = 0;

	*f = (struct graph_flight) { .device = device, .need = need };
	while (card != NULL) {
		bool fits, alone;

		lock_take(&v->graph_lock);
		fits = book(v, card, f, epoch, credit);
		alone = v->graphs[device].flights == 0;
		lock_release(&v->graph_lock);
		if (fits)
			return true;
		if (deadline == 0)
			deadline = clock_now_ns() + PATIENCE_NS;
		if (!alone && clock_now_ns() < deadline) {
			sched_yield();
			continue;
		}
		if (!booking_charge(v, card, f->booked - credit))
			break;
		credit = f->booked;
	}
	vgpu_uncharge(v, card, credit);
	return false;
}

bool graph_memory_close(struct vgpu *v, struct graph_flight *f, struct graph_seen *out)
{
	struct vgpu_graphs *g = &v->graphs[f->device];
	struct vgpu_card *card = vgpu_card_of(v, f->device);
	uint64_t reserved = 0, used = 0;
	bool seen;

	lock_take(&v->graph_lock);
	if (ask(f->device, &reserved, &used))
		account(v, card, g, reserved);
	g->flights--;
	g->needed -= f->need;
	if (g->promised > g->needed) {
		vgpu_uncharge(v, card, g->promised - g->needed);
		g->promised = g->needed;
	}
	seen = reserved > 0 && g->flights == 0 && v->graph_trims == 0 && g->epoch == f->epoch;
	lock_release(&v->graph_lock);
	*out = (struct graph_seen) { reserved, f->epoch };
	return seen;
}

bool graph_memory_refresh(struct vgpu *v, CUdevice device)
{
	struct vgpu_card *card = vgpu_card_of(v, device);
	uint64_t reserved, used;
	bool fits = true;

	if (card == NULL)
		return false;
	lock_take(&v->graph_lock);
	if (ask(device, &reserved, &used))
		fits = account(v, card, &v->graphs[device], reserved);
	lock_release(&v->graph_lock);
	return fits;
}

void graph_memory_refresh_all(struct vgpu *v)
{
	uint64_t devices = v->graph_devices;

	for (int i = 0; devices >> i != 0; i++) {
		if ((devices >> i & 1) != 0)
			graph_memory_refresh(v, i);
	}
}

void graph_memory_trim(struct vgpu *v, bool begins)
{
	lock_take(&v->graph_lock);
	v->graph_trims += begins ? 1 : UINT32_MAX;
	for (unsigned i = 0; i < HM_MAX_CARDS; i++)
		next_epoch(&v->graphs[i]);
	lock_release(&v->graph_lock);
}
