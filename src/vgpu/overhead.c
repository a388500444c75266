/* Which line of the driver's list is ours? The driver names processes by the pids of the host, which a process in a pid
 * namespace cannot know. So:
 *  1. List before the process makes its first context on a card, and after.
 *  2. A new line of our own pid is ours (no pid namespace, or a driver that translates). Else the new lines are
 *     candidates: one, unless another process on the card began in the same moment.
 *  3. Of several candidates the smallest figure counts: ours is among them, so never too much is charged.
 *
 * The figure and what we know are read one after the other while other threads allocate. A charge comes before its
 * allocation and goes after its free, so what we know, read before and after, errs to the high side, and too little is
 * charged; the next measurement corrects it. Managed memory is charged in full, wherever its pages are: from its first
 * use on measurements are lower bounds, and only the end of the last context lowers the charge. Its pages may lie on a
 * card where they are not charged: with contexts on several cards the charge does not rise either. */
#include "vgpu/overhead.h"

#include <errno.h>

#include "vgpu/booking.h"
#include "vgpu/clock.h"
#include "vgpu/driver.h"
#include "vgpu/hooks.h"
#include "vgpu/lock.h"
#include "vgpu/pool.h"

enum { NVML_UNTRIED, NVML_READY, NVML_NONE };
enum { EXPECT_SECONDS = 10, PAUSE = 49 }; /* see overhead.h */
#define SECOND_NS UINT64_C(1000000000)

/* Loads NVML unless the program has. It stays until the process ends; a program's own nvmlShutdown leaves it running,
 * as NVML counts its users. */
static bool have_nvml(struct vgpu *v)
{
	int saved = errno;

	if (v->nvml == NVML_UNTRIED)
		v->nvml = driver_load(DRIVER_NVML) && REAL(nvmlInit_v2)() == NVML_SUCCESS ? NVML_READY : NVML_NONE;
	errno = saved;
	return v->nvml == NVML_READY;
}

static bool list_lines(struct vgpu *v, const struct vgpu_card *card, struct nvml_process_info *lines, unsigned *count)
{
	struct nvml_device *device;
	int saved = errno, rc;

	if (!have_nvml(v) || REAL(nvmlDeviceGetHandleByUUID)(card->limit.uuid, &device) != NVML_SUCCESS)
		return false;
	*count = OVERHEAD_LINES;
	rc = REAL(nvmlDeviceGetComputeRunningProcesses_v3)(device, count, lines);
	if (rc == NVML_ERROR_FUNCTION_NOT_FOUND) {
		*count = OVERHEAD_LINES;
		rc = REAL(nvmlDeviceGetComputeRunningProcesses_v2)(device, count, lines);
	}
	errno = saved;
	return rc == NVML_SUCCESS && *count <= OVERHEAD_LINES;
}

static struct vgpu_overhead *measured(struct vgpu *v, const struct vgpu_card *card)
{
	return &v->overhead[card - v->cards];
}

static bool was_there(const struct overhead *o, uint32_t pid)
{
	for (unsigned i = 0; i < o->count; i++) {
		if (o->before[i] == pid)
			return true;
	}
	return false;
}

/* Steps 2 and 3. */
static void identify(const struct overhead *o, const struct nvml_process_info *lines, unsigned count)
{
	struct vgpu_overhead *m = measured(o->v, o->card);

	bool sees_host_pids = vgpu_pid_namespace(o->v) == VGPU_HOST_PID_NAMESPACE;
	unsigned fresh = 0;

	m->pid_count = 0;
	for (unsigned i = 0; i < count; i++) {
		bool is_fresh = !was_there(o, lines[i].pid);

		if (lines[i].pid == o->v->pid && (is_fresh || sees_host_pids)) {
			m->pids[0] = lines[i].pid;
			m->pid_count = 1;
			return;
		}
		if (is_fresh && fresh < VGPU_OVERHEAD_PIDS)
			m->pids[fresh] = lines[i].pid;
		fresh += is_fresh;
	}
	if (!sees_host_pids && fresh <= VGPU_OVERHEAD_PIDS)
		m->pid_count = fresh;
}

/* 0: no line is ours any more. */
static uint64_t own_figure(const struct vgpu_overhead *m, const struct nvml_process_info *lines, unsigned count)
{
	uint64_t figure = UINT64_MAX;

	for (unsigned i = 0; i < count; i++) {
		for (unsigned j = 0; j < m->pid_count; j++) {
			if (lines[i].pid == m->pids[j])
				figure = HM_MIN(figure, lines[i].used);
		}
	}
	return figure != UINT64_MAX ? figure : 0; /* all ones: the driver does not say */
}

/* What this process is charged on the card beside what was measured. */
static uint64_t known(struct vgpu *v, const struct vgpu_card *card)
{
	uint64_t all = ledger_slot_used(v->map.r, v->ledger.slot, (unsigned)card->region_card);
	uint64_t overhead = measured(v, card)->charged;

	return all > overhead && all <= REGION_MAX_BYTES ? all - overhead : 0;
}

/* A card to which managed memory that is charged on this one, or the other way round, may have moved. */
static bool has_other_card(const struct vgpu *v, const struct vgpu_overhead *m)
{
	for (unsigned i = 0; i < v->card_count; i++) {
		if (&v->overhead[i] != m && v->overhead[i].pid_count != 0)
			return true;
	}
	return false;
}

/* The charge there should be. False: it cannot be known. `o`: tells lines that were there before, or NULL. */
static bool measure(struct vgpu *v, struct vgpu_card *card, const struct overhead *o, uint64_t *out)
{
	struct vgpu_overhead *m = measured(v, card);
	struct nvml_process_info lines[OVERHEAD_LINES];
	uint64_t before, after, figure;
	unsigned count;

	pools_refresh(v);
	before = known(v, card);
	if (!list_lines(v, card, lines, &count))
		return false;
	if (m->pid_count == 0 && o != NULL)
		identify(o, lines, count);
	if (m->pid_count == 0)
		return false;
	figure = own_figure(m, lines, count);
	after = HM_MAX(before, known(v, card));
	*out = figure > after ? figure - after : 0;
	if (v->uses_managed && figure != 0 && m->charged != 0)
		*out = has_other_card(v, m) ? m->charged : HM_MAX(*out, m->charged);
	return true;
}

static bool adjust(struct vgpu *v, struct vgpu_card *card, const struct overhead *o, bool may_refuse)
{
	struct vgpu_overhead *m = measured(v, card);
	bool fits = true;
	uint64_t target;

	lock_take(&v->overhead_lock);
	if (v->mode == VGPU_ON && card->region_card >= 0 && !v->is_parked && measure(v, card, o, &target)) {
		if (target < m->charged)
			vgpu_uncharge(v, card, m->charged - target);
		else if (target > m->charged && may_refuse)
			fits = booking_charge(v, card, target - m->charged);
		else if (target > m->charged)
			vgpu_charge_taken(v, card, target - m->charged);
		if (fits)
			m->charged = target;
	}
	lock_release(&v->overhead_lock);
	return fits;
}

void overhead_before(struct overhead *o, CUdevice device)
{
	struct nvml_process_info lines[OVERHEAD_LINES];

	o->v = vgpu_get();
	o->card = o->v != NULL ? vgpu_card_of(o->v, device) : NULL;
	o->count = 0;
	o->unmeasured = false;
	if (o->card == NULL)
		return;
	lock_take(&o->v->overhead_lock);
	if (measured(o->v, o->card)->pid_count == 0) {
		if (!list_lines(o->v, o->card, lines, &o->count))
			o->unmeasured = true;
		for (unsigned i = 0; !o->unmeasured && i < o->count; i++)
			o->before[i] = lines[i].pid;
	}
	lock_release(&o->v->overhead_lock);
}

bool overhead_after(struct overhead *o)
{
	if (o->v == NULL || o->unmeasured)
		return true;
	return o->card != NULL && adjust(o->v, o->card, o, true);
}

bool overhead_grew(void)
{
	struct vgpu *v = vgpu_get();
	struct vgpu_card *card;
	CUdevice device;

	if (v == NULL || REAL(cuCtxGetDevice)(&device) != CUDA_SUCCESS)
		return true;
	card = vgpu_card_of(v, device);
	return card != NULL && (measured(v, card)->pid_count == 0 || adjust(v, card, NULL, true));
}

void overhead_settle(struct vgpu *v)
{
	for (unsigned i = 0; i < v->card_count; i++) {
		if (v->overhead[i].pid_count != 0)
			adjust(v, &v->cards[i], NULL, false);
	}
}

void overhead_expect(struct vgpu *v)
{
	v->expect_until_ns = clock_now_ns() + EXPECT_SECONDS * SECOND_NS;
}

void overhead_measure_expected(struct vgpu *v)
{
	uint64_t until = v->expect_until_ns, start = clock_now_ns(), after = v->measure_after_ns;

	if (start < after || !atomic_compare_exchange_strong(&v->measure_after_ns, &after, UINT64_MAX))
		return; /* measured a moment ago, or by another thread now */
	overhead_settle(v);
	if (start > until)
		atomic_compare_exchange_strong(&v->expect_until_ns, &until, 0);
	v->measure_after_ns = clock_now_ns() + (clock_now_ns() - start) * PAUSE;
}
