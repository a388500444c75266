/* Pools over a driver that uses a destroyed pool's address again, as the simulated one does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "vgpu/graph_memory.h"
#include "vgpu/hooks.h"
#include "vgpu/overhead.h"
#include "vgpu/pool.h"
#include "vgpu/throttle.h"

#define MIB (UINT64_C(1) << 20)
#define POOL ((CUmemoryPool)0x1000)

struct vgpu_real vgpu_real;
static const struct region_compute off;
const struct region_compute *_Atomic throttle_cards = &off;
_Atomic uint32_t throttle_card_count = 1;

static struct vgpu *v;
static uint64_t charged, reserved;
static CUresult answer;

struct vgpu *vgpu_get(void)
{
	return v;
}

struct vgpu_card *vgpu_card_of(struct vgpu *its, CUdevice device)
{
	return &its->cards[device];
}

void vgpu_uncharge(struct vgpu *its, struct vgpu_card *card, uint64_t bytes)
{
	(void)its;
	(void)card;
	assert_true(bytes <= charged);
	charged -= bytes;
}

void vgpu_charge_taken(struct vgpu *its, struct vgpu_card *card, uint64_t bytes)
{
	(void)its;
	(void)card;
	charged += bytes;
}

void graph_memory_refresh_all(struct vgpu *its)
{
	(void)its;
}

void overhead_settle(struct vgpu *its)
{
	(void)its;
}

void throttle_settle(void)
{
}

static CUresult create(CUmemoryPool *out, const CUmemPoolProps *props)
{
	(void)props;
	*out = POOL;
	return CUDA_SUCCESS;
}

static CUresult destroy(CUmemoryPool pool)
{
	(void)pool;
	return answer;
}

static CUresult attribute(CUmemoryPool pool, CUmemPool_attribute which, void *out)
{
	(void)pool;
	*(cuuint64_t *)out = which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD ? 0 : reserved;
	return CUDA_SUCCESS;
}

static int set_up(void **state)
{
	(void)state;
	v = mmap(NULL, sizeof *v, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	vgpu_real.cuMemPoolCreate = create;
	vgpu_real.cuMemPoolDestroy = destroy;
	vgpu_real.cuMemPoolGetAttribute = attribute;
	answer = CUDA_SUCCESS;
	charged = reserved = 0;
	return v == MAP_FAILED ? -1 : 0;
}

static struct record *create_pool(void)
{
	const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool;

	assert_int_equal(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
	return pool_find(v, pool);
}

/* An allocation that brings the pool to so much; its record. */
static struct record *allocate(struct record *pool, uint64_t holds)
{
	struct record *r = track_new(&v->track);

	reserved = holds;
	vgpu_charge_taken(v, &v->cards[0], pool_take_growth(v, pool, holds, 0));
	pool->refs++;
	r->owner = (uintptr_t)pool;
	return r;
}

static void an_address_used_again_is_another_pool(void **state)
{
	struct record *first = create_pool(), *second, *in_first, *in_second;

	(void)state;
	in_first = allocate(first, 32 * MIB);
	assert_int_equal(cuMemPoolDestroy(POOL), CUDA_SUCCESS);
	assert_null(pool_find(v, POOL));
	second = create_pool();
	assert_non_null(second);
	assert_ptr_not_equal(first, second);
	in_second = allocate(second, 64 * MIB);
	assert_int_equal(charged, 96 * MIB);
	pool_pointer_freed(v, in_first);
	assert_int_equal(charged, 64 * MIB);
	reserved = 0;
	pool_pointer_freed(v, in_second);
	assert_int_equal(charged, 0);
	assert_ptr_equal(pool_find(v, POOL), second);
}

static void a_pool_that_is_not_destroyed_lives_on(void **state)
{
	struct record *pool = create_pool();

	(void)state;
	allocate(pool, 32 * MIB);
	answer = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(cuMemPoolDestroy(POOL), CUDA_ERROR_INVALID_VALUE);
	assert_ptr_equal(pool_find(v, POOL), pool);
	assert_int_equal(charged, 32 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(an_address_used_again_is_another_pool, set_up),
		cmocka_unit_test_setup(a_pool_that_is_not_destroyed_lives_on, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
