/* Checkpoints: a process's memory leaves the cards and comes back. Where the process is this one, its charge does, too,
 * and the restore is refused where it does not fit any more.
 *
 * The charge of another process stays. It alone changes its balances; what we took off our own in its place would come
 * back with our end, and twice with its. So others cannot have the memory meanwhile, and its restore always fits. */
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vgpu/hooks.h"
#include "vgpu/state.h"

static struct vgpu *of_self(int pid)
{
	return pid == (int)syscall(SYS_getpid) ? vgpu_get() : NULL;
}

/* What other threads have charged and not taken yet goes along: they wait in the driver until the process runs again.
 */
static void park(struct vgpu *v)
{
	v->is_parked = true;
	for (unsigned i = 0; i < v->card_count; i++) {
		struct vgpu_card *card = &v->cards[i];
		uint64_t bytes = 0;

		if (v->map.r != NULL && card->region_card >= 0)
			bytes = ledger_slot_used(v->map.r, v->ledger.slot, (unsigned)card->region_card);
		v->parked[i] = bytes <= REGION_MAX_BYTES ? bytes : 0;
		vgpu_uncharge(v, card, v->parked[i]);
	}
}

/* Gives the first `cards` cards' charge back. */
static void give_back(struct vgpu *v, unsigned cards)
{
	for (unsigned i = 0; i < cards; i++)
		vgpu_uncharge(v, &v->cards[i], v->parked[i]);
}

/* Asks no driver (as booking_charge may): its answers wait until the process runs again. */
static bool charge_again(struct vgpu *v, unsigned cards)
{
	for (unsigned i = 0; i < cards; i++) {
		if (v->parked[i] != 0 && !vgpu_try_charge(v, &v->cards[i], v->parked[i]) &&
		    !vgpu_charge_after_reaping(v, &v->cards[i], v->parked[i])) {
			give_back(v, i);
			return false;
		}
	}
	return true;
}

VGPU_EXPORT CUresult cuCheckpointProcessCheckpoint(int pid, CUcheckpointCheckpointArgs *args)
{
	CUresult rc = REAL(cuCheckpointProcessCheckpoint)(pid, args);
	struct vgpu *v = rc == CUDA_SUCCESS ? of_self(pid) : NULL;

	if (v != NULL)
		park(v);
	return rc;
}

static bool moves_between_cards(const CUcheckpointRestoreArgs *args)
{
	for (unsigned i = 0; args != NULL && args->gpuPairs != NULL && i < args->gpuPairsCount; i++) {
		const CUcheckpointGpuPair *p = &args->gpuPairs[i];

		if (memcmp(&p->oldUuid, &p->newUuid, sizeof p->oldUuid) != 0)
			return true;
	}
	return false;
}

VGPU_EXPORT CUresult cuCheckpointProcessRestore(int pid, CUcheckpointRestoreArgs *args)
{
	struct vgpu *v = of_self(pid);
	unsigned cards;
	CUresult rc;

	if (vgpu_get() != NULL && moves_between_cards(args))
		return CUDA_ERROR_NOT_SUPPORTED; /* it would be on cards where it is not charged */
	if (v == NULL || !v->is_parked)
		return REAL(cuCheckpointProcessRestore)(pid, args);
	cards = v->card_count;
	if (!charge_again(v, cards))
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = REAL(cuCheckpointProcessRestore)(pid, args);
	if (rc == CUDA_SUCCESS)
		v->is_parked = false;
	else
		give_back(v, cards);
	return rc;
}
