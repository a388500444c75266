/* Handles over a driver that does what the simulated one does not: gives a retained handle another value, and uses a
 * value again while the hook that freed it is not done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "vgpu/booking.h"
#include "vgpu/hooks.h"

struct vgpu_real vgpu_real;

static struct vgpu *v;
static uint64_t charged, next_handle, retained;
static CUresult answer;
static void (*meanwhile)(void); /* another thread's call, before the driver's return */

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
	assert_ptr_equal(card, &its->cards[0]);
	assert_true(bytes <= charged);
	charged -= bytes;
}

CUresult booking_open_on(struct booking *b, CUdevice device, uint64_t bytes)
{
	b->card = &b->v->cards[device];
	b->record = track_new(&b->v->track);
	b->charged = bytes;
	charged += bytes;
	return CUDA_SUCCESS;
}

void booking_cancel(struct booking *b)
{
	charged -= b->charged;
	track_free(&b->v->track, b->record);
}

static CUresult create(CUmemGenericAllocationHandle *out, size_t bytes, const CUmemAllocationProp *prop,
		       unsigned long long flags)
{
	(void)bytes;
	(void)prop;
	(void)flags;
	*out = next_handle;
	return answer;
}

static CUresult free_handle(CUmemGenericAllocationHandle handle)
{
	void (*other)(void) = meanwhile;

	(void)handle;
	meanwhile = NULL;
	if (other != NULL)
		other();
	return answer;
}

static CUresult retain(CUmemGenericAllocationHandle *out, void *ptr)
{
	(void)ptr;
	*out = retained;
	return answer;
}

static CUresult map(CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
		    unsigned long long flags)
{
	(void)ptr;
	(void)bytes;
	(void)offset;
	(void)handle;
	(void)flags;
	return answer;
}

static CUresult unmap(CUdeviceptr ptr, size_t bytes)
{
	(void)ptr;
	(void)bytes;
	return free_handle(0);
}

static CUresult create_object(CUmemGenericAllocationHandle *out, const CUmulticastObjectProp *prop)
{
	(void)prop;
	*out = next_handle;
	return answer;
}

static CUresult bind_memory(CUmemGenericAllocationHandle object, size_t offset, CUmemGenericAllocationHandle memory,
			    size_t memory_offset, size_t bytes, unsigned long long flags)
{
	(void)object;
	(void)offset;
	(void)memory;
	(void)memory_offset;
	(void)bytes;
	(void)flags;
	return answer;
}

static int setup(void **state)
{
	(void)state;
	v = mmap(NULL, sizeof *v, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(v, MAP_FAILED);
	charged = 0;
	answer = CUDA_SUCCESS;
	meanwhile = NULL;
	vgpu_real = (struct vgpu_real) { .cuMemCreate = create,
					 .cuMemRelease = free_handle,
					 .cuMemRetainAllocationHandle = retain,
					 .cuMemMap = map,
					 .cuMemUnmap = unmap,
					 .cuMulticastCreate = create_object,
					 .cuMulticastBindMem = bind_memory };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (unsigned i = 0; i < TRACK_CHUNKS && v->track.chunks[i] != NULL; i++)
		munmap(v->track.chunks[i], TRACK_CHUNK_RECORDS * sizeof(struct record));
	if (v->track.buckets != NULL)
		munmap(v->track.buckets, sizeof(uint32_t) << v->track.bits);
	munmap(v, sizeof *v);
	return 0;
}

static void make(uint64_t handle, size_t bytes)
{
	const CUmemAllocationProp prop = { .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemGenericAllocationHandle out;

	next_handle = handle;
	assert_int_equal(cuMemCreate(&out, bytes, &prop, 0), CUDA_SUCCESS);
}

static void another_value_keeps_the_memory(void **state)
{
	CUmemGenericAllocationHandle out;

	(void)state;
	make(0x100, 500);
	assert_int_equal(cuMemMap(0x40000, 0x1000, 0, 0x100, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(0x100), CUDA_SUCCESS);
	retained = 0x200;
	assert_int_equal(cuMemRetainAllocationHandle(&out, (void *)0x40fff), CUDA_SUCCESS); // NOLINT
	assert_int_equal(cuMemRetainAllocationHandle(&out, (void *)0x40000), CUDA_SUCCESS); // NOLINT
	assert_int_equal(cuMemUnmap(0x40000, 0x1000), CUDA_SUCCESS);
	assert_int_equal(cuMemMap(0x80000, 0x1000, 0, 0x200, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(0x200), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(0x200), CUDA_SUCCESS);
	assert_int_equal(charged, 500);
	assert_int_equal(cuMemUnmap(0x80000, 0x1000), CUDA_SUCCESS);
	assert_int_equal(charged, 0);
}

static void same_value_again(void)
{
	make(0x100, 7);
}

static void a_value_used_again_is_another_handle(void **state)
{
	(void)state;
	make(0x100, 500);
	meanwhile = same_value_again;
	assert_int_equal(cuMemRelease(0x100), CUDA_SUCCESS);
	assert_int_equal(charged, 7);
	assert_int_equal(cuMemMap(0x40000, 0x1000, 0, 0x100, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(0x100), CUDA_SUCCESS);
	assert_int_equal(charged, 7);
	meanwhile = same_value_again;
	assert_int_equal(cuMemUnmap(0x40000, 0x1000), CUDA_SUCCESS);
	assert_int_equal(charged, 7); /* of the third */
	assert_int_equal(cuMemRelease(0x100), CUDA_SUCCESS);
	assert_int_equal(charged, 0);
}

static void what_fails_changes_nothing(void **state)
{
	CUmemGenericAllocationHandle out;

	(void)state;
	make(0x100, 500);
	next_handle = 0x300;
	assert_int_equal(cuMulticastCreate(&out, NULL), CUDA_SUCCESS);
	answer = CUDA_ERROR_INVALID_VALUE;
	assert_int_equal(cuMemRelease(0x100), answer);
	assert_int_equal(cuMemMap(0x40000, 0x1000, 0, 0x100, 0), answer);
	assert_int_equal(cuMulticastBindMem(0x300, 0, 0x100, 0, 500, 0), answer);
	assert_int_equal(cuMemRelease(0x300), answer);
	assert_int_equal(charged, 500);
	answer = CUDA_SUCCESS;
	assert_int_equal(cuMulticastBindMem(0x300, 0, 0x100, 0, 500, 0), CUDA_SUCCESS);
	assert_int_equal(cuMemRelease(0x100), CUDA_SUCCESS);
	assert_int_equal(charged, 500);
	assert_int_equal(cuMemRelease(0x300), CUDA_SUCCESS);
	assert_int_equal(charged, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		TEST(another_value_keeps_the_memory),
		TEST(a_value_used_again_is_another_handle),
		TEST(what_fails_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
