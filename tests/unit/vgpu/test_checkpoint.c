/* What the simulated driver cannot: checkpoints of another process, and a restore that the driver refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "vgpu/hooks.h"
#include "vgpu/state.h"

struct vgpu_real vgpu_real;

static struct region_layout region;
static struct vgpu state;
static uint64_t charged[2], room;
static CUresult answer;
static int calls;

struct vgpu *vgpu_get(void)
{
	return &state;
}

uint64_t ledger_slot_used(const struct region_layout *r, unsigned slot, unsigned card)
{
	(void)r;
	(void)slot;
	return charged[card];
}

bool vgpu_try_charge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	bool fits = bytes <= room;

	if (fits) {
		charged[card - v->cards] += bytes;
		room -= bytes;
	}
	return fits;
}

bool vgpu_charge_after_reaping(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	return vgpu_try_charge(v, card, bytes);
}

void vgpu_uncharge(struct vgpu *v, struct vgpu_card *card, uint64_t bytes)
{
	charged[card - v->cards] -= bytes;
	room += bytes;
}

static CUresult checkpoint(int pid, CUcheckpointCheckpointArgs *args)
{
	(void)pid;
	(void)args;
	calls++;
	return answer;
}

static CUresult restore(int pid, CUcheckpointRestoreArgs *args)
{
	(void)pid;
	(void)args;
	calls++;
	return answer;
}

static int setup(void **unused)
{
	(void)unused;
	state = (struct vgpu) { .card_count = 2, .map = { .r = &region } };
	state.cards[1].region_card = 1;
	charged[0] = 300;
	charged[1] = 40;
	room = 0;
	answer = CUDA_SUCCESS;
	calls = 0;
	vgpu_real = (struct vgpu_real) { .cuCheckpointProcessCheckpoint = checkpoint,
					 .cuCheckpointProcessRestore = restore };
	return 0;
}

#define assert_charged(a, b)                                                                                           \
	do {                                                                                                           \
		assert_int_equal(charged[0], a);                                                                       \
		assert_int_equal(charged[1], b);                                                                       \
	} while (0)

static void another_process_stays_charged(void **unused)
{
	(void)unused;
	assert_int_equal(cuCheckpointProcessCheckpoint(getpid() + 1, NULL), CUDA_SUCCESS);
	assert_charged(300, 40);
	assert_int_equal(cuCheckpointProcessRestore(getpid() + 1, NULL), CUDA_SUCCESS);
	assert_charged(300, 40);
	assert_int_equal(calls, 2);
}

static void what_the_driver_refuses(void **unused)
{
	(void)unused;
	answer = CUDA_ERROR_NOT_SUPPORTED;
	assert_int_equal(cuCheckpointProcessCheckpoint(getpid(), NULL), answer);
	assert_int_equal(cuCheckpointProcessRestore(getpid(), NULL), answer);
	assert_charged(300, 40);
	answer = CUDA_SUCCESS;
	assert_int_equal(cuCheckpointProcessCheckpoint(getpid(), NULL), CUDA_SUCCESS);
	assert_charged(0, 0);
	answer = CUDA_ERROR_OUT_OF_MEMORY;
	assert_int_equal(cuCheckpointProcessRestore(getpid(), NULL), answer);
	assert_charged(0, 0);
	answer = CUDA_SUCCESS;
	assert_int_equal(cuCheckpointProcessRestore(getpid(), NULL), CUDA_SUCCESS);
	assert_charged(300, 40);
}

/* All cards or none, and the driver is not asked. */
static void what_does_not_fit(void **unused)
{
	(void)unused;
	assert_int_equal(cuCheckpointProcessCheckpoint(getpid(), NULL), CUDA_SUCCESS);
	room = 320;
	assert_int_equal(cuCheckpointProcessRestore(getpid(), NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_charged(0, 0);
	assert_int_equal(room, 320);
	assert_int_equal(calls, 1);
}

static void another_process_moved_to_another_card(void **unused)
{
	CUcheckpointGpuPair pair = { { { 1 } }, { { 2 } } };
	CUcheckpointRestoreArgs args = { .gpuPairs = &pair, .gpuPairsCount = 1 };

	(void)unused;
	assert_int_equal(cuCheckpointProcessRestore(getpid() + 1, &args), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(calls, 0);
	pair.newUuid = pair.oldUuid;
	assert_int_equal(cuCheckpointProcessRestore(getpid() + 1, &args), CUDA_SUCCESS);
	assert_int_equal(calls, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup(name, setup)
		TEST(another_process_stays_charged),
		TEST(what_the_driver_refuses),
		TEST(what_does_not_fit),
		TEST(another_process_moved_to_another_card),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
