#include "vgpu/booking.h"

#include "vgpu/hooks.h"
#include "vgpu/overhead.h"
#include "vgpu/owner.h"
#include "vgpu/pool.h"
#include "vgpu/spill.h"

static uint64_t round_to_pages(uint64_t bytes)
{
	if (bytes > UINT64_MAX - VGPU_PAGE_BYTES)
		return UINT64_MAX;
	return (bytes + VGPU_PAGE_BYTES - 1) / VGPU_PAGE_BYTES * VGPU_PAGE_BYTES;
}

/* Full: a pool may have given memory back since it was last looked at, and processes may have died. */
bool booking_charge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	if (HM_LIKELY(vgpu_try_charge(v, card, bytes)))
		return true;
	pools_refresh(v);
	return vgpu_try_charge(v, card, bytes) || vgpu_charge_after_reaping(v, card, bytes);
}

CUresult booking_open_on(struct booking *b, CUdevice device, uint64_t bytes)
{
	overhead_catch_up(b->v);
	b->charged = 0;
	b->spilled = false;
	b->card = vgpu_card_of(b->v, device);
	if (b->card == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->record = track_new(&b->v->track);
	if (b->record == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	b->record->card = (uint8_t)(b->card - b->v->cards);
	if (!booking_charge(b->v, b->card, bytes)) {
		track_free(&b->v->track, b->record);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	b->charged = bytes;
	return CUDA_SUCCESS;
}

CUresult booking_open(struct booking *b, uint64_t bytes)
{
	CUdevice device;
	CUresult rc;

	b->v = bytes != 0 ? vgpu_get() : NULL;
	if (b->v == NULL)
		return CUDA_SUCCESS;
	rc = REAL(cuCtxGetDevice)(&device);
	if (rc != CUDA_SUCCESS)
		return rc; /* no context, not initialised: an allocation would say the same */
	return booking_open_on(b, device, round_to_pages(bytes));
}

void booking_cancel(struct booking *b)
{
	vgpu_uncharge(b->v, b->card, b->charged);
	track_free(&b->v->track, b->record);
}

static void unref_page(struct vgpu *v, struct vgpu_card *card, uint64_t page)
{
	if (track_unref(&v->track, TRACK_PAGE, page))
		vgpu_uncharge(v, card, VGPU_PAGE_BYTES);
}

/* Counts the allocation in its page. The page is paid for from what is booked if it is new to us. */
static bool ref_page(struct booking *b, uint64_t page)
{
	struct record *spare;

	if (track_ref_known(&b->v->track, TRACK_PAGE, page))
		return true;
	spare = track_new(&b->v->track);
	if (spare == NULL)
		return false;
	spare->kind = TRACK_PAGE;
	spare->key = page;
	if (!track_ref(&b->v->track, spare)) {
		track_free(&b->v->track, spare);
		return true;
	}
	if (b->charged < VGPU_PAGE_BYTES) {
		if (!booking_charge(b->v, b->card, VGPU_PAGE_BYTES)) {
			track_unref(&b->v->track, TRACK_PAGE, page);
			return false;
		}
		b->charged += VGPU_PAGE_BYTES;
	}
	b->charged -= VGPU_PAGE_BYTES;
	return true;
}

/* An allocation smaller than a page lies in one, or across two. */
static bool settle_small(struct booking *b, CUdeviceptr ptr, uint64_t bytes)
{
	uint64_t first = ptr / VGPU_PAGE_BYTES, last = (ptr + bytes - 1) / VGPU_PAGE_BYTES;

	b->record->small = 1;
	b->record->bytes = bytes;
	if (!ref_page(b, first))
		return false;
	if (last != first && !ref_page(b, last)) {
		unref_page(b->v, b->card, first);
		return false;
	}
	return true;
}

/* What was booked becomes what it costs; the rest goes back. */
static bool settle(struct booking *b, CUdeviceptr ptr, uint64_t bytes)
{
	uint64_t cost = round_to_pages(bytes);

	if (bytes < VGPU_PAGE_BYTES) {
		if (!settle_small(b, ptr, bytes))
			return false;
	} else {
		if (cost > b->charged) {
			if (!booking_charge(b->v, b->card, cost - b->charged))
				return false;
			b->charged = cost;
		}
		b->record->bytes = cost;
		b->charged -= cost;
	}
	vgpu_uncharge(b->v, b->card, b->charged);
	b->charged = 0;
	return true;
}

CUresult booking_close(struct booking *b, CUresult rc, CUdeviceptr *out, uint64_t bytes)
{
	if (b->v == NULL)
		return rc;
	if (rc != CUDA_SUCCESS) {
		booking_cancel(b);
		return rc;
	}
	if (!settle(b, *out, bytes)) {
		REAL(cuMemFree_v2)(*out);
		booking_cancel(b);
		*out = 0;
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (HM_UNLIKELY(b->spilled))
		spill_count(b->v, b->card, b->record->bytes);
	b->record->kind = TRACK_POINTER;
	b->record->key = *out;
	b->record->owner = owner_current(b->v);
	track_put(&b->v->track, b->record);
	return CUDA_SUCCESS;
}

void pointer_uncharge(struct vgpu *v, struct record *r)
{
	struct vgpu_card *card = &v->cards[r->card];
	uint64_t first = r->key / VGPU_PAGE_BYTES, last = (r->key + r->bytes - 1) / VGPU_PAGE_BYTES;

	if (!r->small) {
		vgpu_uncharge(v, card, r->bytes);
	} else {
		unref_page(v, card, first);
		if (last != first)
			unref_page(v, card, last);
	}
	track_free(&v->track, r);
}
