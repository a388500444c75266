/* One allocation's charge, from before the driver is called until its outcome is known:
 *
 *     rc = booking_open(&b, bytes);            charges the current device's card, or refuses
 *     if (rc != CUDA_SUCCESS) return rc;
 *     rc = REAL(cuMemAlloc_v2)(out, bytes);
 *     return booking_close(&b, rc, out, bytes);  corrects the charge, or gives it back
 *
 * Charged is what the driver takes: pages of 2 MiB. An allocation of 2 MiB or more has pages of its own; smaller ones
 * share pages, found by their addresses, each charged once. */
#ifndef HM_VGPU_BOOKING_H
#define HM_VGPU_BOOKING_H

#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "vgpu/state.h"

#define VGPU_PAGE_BYTES (UINT64_C(2) << 20)

struct booking {
	struct vgpu *v; /* NULL: nothing is booked, the driver's answer stands */
	struct vgpu_card *card;
	struct record *record;
	uint64_t charged;
	bool spilled; /* what the driver gave is managed memory: spill.h */
};

/* bytes: an upper bound, or the exact size. 0 books nothing: the driver refuses it. */
CUresult booking_open(struct booking *b, uint64_t bytes);
/* As booking_open, for an exact number of bytes of a given device. */
CUresult booking_open_on(struct booking *b, CUdevice device, uint64_t bytes);
CUresult booking_close(struct booking *b, CUresult rc, CUdeviceptr *out, uint64_t bytes);
/* Charges a card, seeing to pools and dead processes before it refuses. */
bool booking_charge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes);
/* Gives all back: the driver did not allocate. */
void booking_cancel(struct booking *b);

/* Returns a pointer's charge; the record is freed. */
void pointer_uncharge(struct vgpu *v, struct record *r);

#endif
