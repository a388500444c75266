/* Claiming a slot, without a lock:
 *  1. Find a head with who = 0; read meta = (uses, namespace 0).
 *  2. Compare-and-swap who from 0 to (pid, start time). Taken by another: next slot.
 *  3. Compare-and-swap meta from (uses, 0) to (uses, namespace). Failed: we were thought dead; go to 1.
 * The slot is ours, its lanes idle and its balances 0. A process killed between 2 and 3 leaves a half-claimed slot.
 *
 * Freeing one, under the reap lock:
 *  1. Clear its charge (ledger.c); skipped where it is half claimed, which has none.
 *  2. Compare-and-swap meta to (uses + 1, 0): from here on step 3 above fails for the old claimant.
 *  3. Compare-and-swap who to 0.
 * A process killed between 2 and 3 leaves a half-claimed slot as well.
 *
 * The lock is a POSIX record lock of the region's file: the kernel drops it when its holder dies, forked children do
 * not inherit it, and it works across pid namespaces. A holder that is stopped delays only the return of dead
 * processes' charge. */
#include "region/slots.h"

#include "core/macros.h"
#include "region/shared.h"

uint64_t slot_who(uint32_t pid, uint64_t start_time)
{
	return start_time << WHO_PID_BITS | (pid & ((1U << WHO_PID_BITS) - 1));
}

static uint64_t meta_pack(uint32_t uses, uint32_t namespace)
{
	return (uint64_t)uses << META_NAMESPACE_BITS | namespace;
}

static uint32_t meta_uses(uint64_t meta)
{
	return (uint32_t)(meta >> META_NAMESPACE_BITS);
}

struct region_slot_id slot_id(const struct region_head *head)
{
	struct region_slot_id id = { .who = shared_load(&head->who) };

	id.meta = shared_load(&head->meta);
	id.pid = (uint32_t)(id.who & ((1U << WHO_PID_BITS) - 1));
	id.start_time = id.who >> WHO_PID_BITS;
	id.pid_namespace = (uint32_t)id.meta;
	return id;
}

static bool claim(struct region_head *head, const struct process_id *me, uint64_t *who, uint64_t *meta)
{
	uint64_t seen = 0, vacant;

	if (shared_load(&head->who) != 0)
		return false;
	vacant = shared_load(&head->meta);
	if ((uint32_t)vacant != 0)
		return false;
	*who = slot_who(me->pid, me->start_time);
	if (!shared_cas(&head->who, &seen, *who))
		return false;
	*meta = meta_pack(meta_uses(vacant), me->pid_namespace);
	return shared_cas(&head->meta, &vacant, *meta);
}

bool slot_claim(struct region_layout *r, const struct process_id *me, struct ledger *l)
{
	/* Neighbouring pids start at neighbouring slots, and 200 processes that start at once do not queue up at slot
	 * 0. */
	unsigned first = me->pid % REGION_SLOTS;

	for (unsigned i = 0; i < REGION_SLOTS; i++) {
		unsigned slot = (first + i) % REGION_SLOTS;

		if (!claim(&r->heads[slot], me, &l->who, &l->meta))
			continue;
		l->region = r;
		l->slot = slot;
		for (unsigned lane = 0; lane < REGION_LANES; lane++)
			atomic_store(&l->lane_busy[lane], 0);
		for (unsigned card = 0; card < HM_MAX_CARDS; card++)
			atomic_store(&l->held[card], 0);
		ledger_clear_slot(r, slot); /* nothing to do, unless the file was scribbled upon */
		shared_add(&r->stats.attached, 1);
		return true;
	}
	return false;
}

static void free_head(struct region_head *head, struct region_slot_id id)
{
	uint64_t meta = id.meta, who = id.who;

	if (shared_cas(&head->meta, &meta, meta_pack(meta_uses(id.meta) + 1, 0)))
		shared_cas(&head->who, &who, 0);
}

unsigned slot_clear_if(struct region_layout *r, bool (*dead)(const struct region_slot_id *id, void *arg), void *arg)
{
	unsigned freed = 0;

	for (unsigned slot = 0; slot < REGION_SLOTS; slot++) {
		struct region_slot_id id = slot_id(&r->heads[slot]);

		if (id.who == 0 || !dead(&id, arg))
			continue;
		if (id.pid_namespace != 0) {
			ledger_clear_slot(r, slot);
			freed++;
		}
		free_head(&r->heads[slot], id);
	}
	if (freed > 0)
		shared_add(&r->stats.reaped, freed);
	return freed;
}
