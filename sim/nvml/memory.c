#include "core/macros.h"
#include "sim/lib/sim_mig.h"
#include "sim/nvml/handle.h"

static unsigned long long total_of(const struct sim_card *c, const struct sim_mig_ci *m)
{
	return m != NULL ? sim_mig_bytes(c, m->gi) : c->info.memory_bytes;
}

/* All that is not free; the ledger never exceeds the card, but it is read while others write. */
static unsigned long long used_of(const struct sim_card *c, const struct sim_mig_ci *m)
{
	unsigned long long used = m != NULL ? sim_mig_used(c, m->gi) : atomic_load(&c->used_bytes);

	return HM_MIN(used, total_of(c, m));
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	DEVICE(device, memory);
	memory->total = total_of(c, m);
	memory->used = used_of(c, m);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
	unsigned long long used;
	DEVICE(device, memory);

	if (memory->version != NVML_MEMORY_V2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	used = used_of(c, m);
	memory->total = total_of(c, m);
	memory->reserved = m != NULL ? 0 : c->info.reserved_bytes;
	memory->used = used - memory->reserved;
	memory->free = memory->total - used;
	return NVML_SUCCESS;
}

int nvmlDeviceGetBAR1MemoryInfo(struct nvml_device *device, struct nvml_bar1_memory *memory)
{
	CARD(device, memory);
	memory->total = c->info.bar1_bytes;
	memory->used = HM_MIN((unsigned long long)c->info.bar1_bytes, 1ULL << 20);
	memory->free = memory->total - memory->used;
	return NVML_SUCCESS;
}
