#include "sim/cuda/kernels.h"

#include <string.h>

#include "core/num.h"
#include "sim/cuda/mem.h"
#include "sim/cuda/space.h"

unsigned cu_resident_blocks(unsigned device, unsigned threads, uint64_t shared_bytes)
{
	const struct sim_card_info *info = cu_info(device);
	unsigned warps = (threads + 31) / 32;
	uint64_t resident;

	if (threads == 0 || threads > 1024)
		return 0;
	resident = HM_MIN(info->threads_per_sm / (warps * 32), info->blocks_per_sm);
	if (shared_bytes > 0)
		resident = HM_MIN(resident, info->shared_per_sm / shared_bytes);
	return (unsigned)resident;
}

static uint64_t blocks(const struct cu_launch *l)
{
	return (uint64_t)l->grid[0] * l->grid[1] * l->grid[2]; /* at most 2^31 * 2^16 * 2^16 */
}

uint64_t cu_kernel_waves(unsigned device, const struct cu_launch *l)
{
	unsigned threads = l->block[0] * l->block[1] * l->block[2];
	unsigned sms = l->sms > 0 ? l->sms : cu_info(device)->sms;
	uint64_t at_once = (uint64_t)sms * cu_resident_blocks(device, threads, l->shared_bytes);

	return at_once > 0 ? (blocks(l) + at_once - 1) / at_once : blocks(l);
}

/* busy_ns(u64 ns): each block runs for ns. */
static CUresult run_busy(unsigned device, const struct cu_launch *l, uint64_t *busy_ns)
{
	if (!num_mul(cu_kernel_waves(device, l), l->params[0], busy_ns))
		*busy_ns = UINT64_MAX / 2;
	return CUDA_SUCCESS;
}

/* Bytes a microsecond that the card's memory takes: two transfers a clock over the bus. */
static uint64_t memory_bytes_per_us(unsigned device)
{
	const struct sim_card_info *info = cu_info(device);

	return HM_MAX((uint64_t)info->memory_clock_mhz * 2 * info->bus_width_bits / 8, 1U);
}

/* touch(u8 *ptr, u64 n): ptr[i] = i & 255, by all threads together; as long as writing n bytes takes, 1 us at least. */
static CUresult run_touch(unsigned device, const struct cu_launch *l, uint64_t *busy_ns)
{
	CUdeviceptr ptr = l->params[0];
	uint64_t n = l->params[1];

	*busy_ns = HM_MAX(n / memory_bytes_per_us(device) * 1000, (uint64_t)1000);
	if (!cu_window_covers(ptr, n, true))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	struct cu_region *r = cu_region_at(ptr);

	if (r != NULL)
		cu_managed_touch(r);
	for (uint64_t done = 0; done < n;) {
		uint64_t here = n - done;
		unsigned char *p = (unsigned char *)cu_window(ptr + done, &here, true);

		for (uint64_t i = 0; i < here; i++)
			p[i] = (unsigned char)(done + i);
		done += here;
	}
	return CUDA_SUCCESS;
}

/* meet(u32 *count, u64 ns): counts itself in, waits until two have, then runs for ns. Here the address alone says who
 * meets. */
static CUresult run_meet(unsigned device, const struct cu_launch *l, uint64_t *busy_ns)
{
	(void)device;
	*busy_ns = HM_MAX(l->params[1], (uint64_t)1);
	return CUDA_SUCCESS;
}

static const struct {
	const char *name;
	unsigned params;
	CUresult (*run)(unsigned device, const struct cu_launch *l, uint64_t *busy_ns);
} kernels[] = {
	{ "busy_ns", 1, run_busy },
	{ "touch", 2, run_touch },
	{ "meet", 2, run_meet },
};

CUresult cu_kernel_run(unsigned device, const struct cu_launch *l, uint64_t *busy_ns)
{
	const struct ptx_entry *e = l->function->entry;

	for (size_t i = 0; i < HM_COUNT(kernels); i++)
		if (strcmp(e->name, kernels[i].name) == 0 && e->params == kernels[i].params)
			return kernels[i].run(device, l, busy_ns);
	return CUDA_ERROR_NOT_SUPPORTED;
}

uint64_t cu_kernel_meets(const struct cu_launch *l)
{
	const struct ptx_entry *e = l->function->entry;

	return e->params == 2 && strcmp(e->name, "meet") == 0 ? l->params[0] : 0;
}
