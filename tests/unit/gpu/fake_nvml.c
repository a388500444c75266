/* Built twice: as it is, and with FAKE_OLD as a library that has only the calls of the oldest drivers. */
#include "unit/gpu/fake_nvml.h"

#include <stdio.h>
#include <string.h>

#include "abi/nvml.h"

#pragma GCC visibility push(default)

extern struct fake fake;
struct fake fake;

static struct fake_card *card_of(struct nvml_device *device)
{
	return (struct fake_card *)(void *)device;
}

static int fault(const char *call, struct nvml_device *device)
{
	for (unsigned i = 0; i < FAKE_FAULTS; i++) {
		int card = fake.faults[i].card;

		if (fake.faults[i].call != NULL && strcmp(fake.faults[i].call, call) == 0 &&
		    (card < 0 || &fake.cards[card] == card_of(device)))
			return fake.faults[i].result;
	}
	return NVML_SUCCESS;
}

int fake_answer(const char *call, const void *card)
{
	return fault(call, (struct nvml_device *)(void *)card);
}

#define FAULT(device)                                                                                                  \
	do {                                                                                                           \
		int result_ = fault(__func__, device);                                                                 \
		if (result_ != NVML_SUCCESS)                                                                           \
			return result_;                                                                                \
	} while (0)

static int copy(char *out, unsigned length, const char *text)
{
	if (strlen(text) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	snprintf(out, length, "%s", text);
	return NVML_SUCCESS;
}

int nvmlInit_v2(void)
{
	FAULT(NULL);
	fake.inits++;
	return NVML_SUCCESS;
}

int nvmlShutdown(void)
{
	fake.inits--;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	FAULT(NULL);
	*count = fake.count;
	return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
	*device = (struct nvml_device *)(void *)&fake.cards[index];
	FAULT(*device);
	return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
	for (unsigned i = 0; i < fake.count; i++) {
		*device = (struct nvml_device *)(void *)&fake.cards[i];
		if (strcmp(fake.cards[i].uuid, uuid) != 0)
			continue;
		FAULT(*device);
		return NVML_SUCCESS;
	}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned length)
{
#ifndef FAKE_OLD
	if (fake_mig_uuid(device, uuid, length) == NVML_SUCCESS)
		return NVML_SUCCESS;
#endif
	FAULT(device);
	return copy(uuid, length, card_of(device)->uuid);
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	const struct fake_card *c = card_of(device);

	FAULT(device);
	*memory = (struct nvml_memory) { c->total, c->total - c->reserved - c->used, c->reserved + c->used };
	return NVML_SUCCESS;
}

int nvmlDeviceGetMinorNumber(struct nvml_device *device, unsigned *minor)
{
	FAULT(device);
	*minor = card_of(device)->minor;
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned *count, struct nvml_process_info_v1 *out)
{
	const struct fake_card *c = card_of(device);

	FAULT(device);
	if (c->compute_count > *count) {
		*count = c->compute_count;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = c->compute_count;
	for (unsigned i = 0; i < *count; i++)
		out[i] = (struct nvml_process_info_v1) { c->compute[i].pid, c->compute[i].used };
	return NVML_SUCCESS;
}

#ifndef FAKE_OLD
const char *nvmlErrorString(int result)
{
	return result == NVML_ERROR_GPU_IS_LOST ? "GPU is lost" : "some error";
}

int nvmlSystemGetDriverVersion(char *version, unsigned length)
{
	FAULT(NULL);
	return copy(version, length, "550.54.15");
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
	FAULT(NULL);
	*version = 12040;
	return NVML_SUCCESS;
}

int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned length)
{
	FAULT(device);
	return copy(name, length, card_of(device)->name);
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
	const struct fake_card *c = card_of(device);

	FAULT(device);
	memset(pci, 0, sizeof *pci);
	pci->domain = c->domain;
	pci->bus = c->bus;
	pci->device = c->device;
	return copy(pci->bus_id, sizeof pci->bus_id, c->bus_id);
}

int nvmlDeviceGetMemoryInfo_v2(struct nvml_device *device, struct nvml_memory_v2 *memory)
{
	const struct fake_card *c = card_of(device);

	FAULT(device);
	if (memory->version != NVML_MEMORY_V2)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	*memory = (struct nvml_memory_v2) { NVML_MEMORY_V2, c->total, c->reserved, c->total - c->reserved - c->used,
					    c->used };
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryAffinity(struct nvml_device *device, unsigned words, unsigned long *nodes, unsigned scope)
{
	FAULT(device);
	if (words == 0 || scope != NVML_AFFINITY_SCOPE_NODE)
		return NVML_ERROR_INVALID_ARGUMENT;
	nodes[0] = card_of(device)->numa_mask;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b, unsigned *level)
{
	FAULT(a);
	FAULT(b);
	*level = fake.ancestor;
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkState(struct nvml_device *device, unsigned link, unsigned *active)
{
	FAULT(device);
	if (link >= FAKE_LINKS)
		return NVML_ERROR_INVALID_ARGUMENT;
	*active = card_of(device)->links[link].to != -3;
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, unsigned link, struct nvml_pci_info *pci)
{
	int to = card_of(device)->links[link].to;

	FAULT(device);
	memset(pci, 0, sizeof *pci);
	return copy(pci->bus_id, sizeof pci->bus_id, to >= 0 ? fake.cards[to].bus_id : "00000000:FE:00.0");
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, unsigned link, unsigned *type)
{
	FAULT(device);
	*type = card_of(device)->links[link].to == -1 ? NVML_NVLINK_DEVICE_SWITCH : NVML_NVLINK_DEVICE_UNKNOWN;
	return NVML_SUCCESS;
}

int nvmlDeviceGetUtilizationRates(struct nvml_device *device, struct nvml_utilization *utilization)
{
	FAULT(device);
	*utilization = (struct nvml_utilization) { card_of(device)->busy, card_of(device)->memory_busy };
	return NVML_SUCCESS;
}

static int list(const struct fake_process *from, unsigned n, unsigned *count, struct nvml_process_info *out)
{
	if (n > *count) {
		*count = n;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = n;
	for (unsigned i = 0; i < n; i++)
		out[i] = (struct nvml_process_info) { from[i].pid, from[i].used, NVML_NO_INSTANCE, NVML_NO_INSTANCE };
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(struct nvml_device *device, unsigned *count, struct nvml_process_info *out)
{
	FAULT(device);
	return list(card_of(device)->compute, card_of(device)->compute_count, count, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(struct nvml_device *device, unsigned *count, struct nvml_process_info *out)
{
	FAULT(device);
	return list(card_of(device)->graphics, card_of(device)->graphics_count, count, out);
}

/* A card's samples that are newer. */
static int uses_of(struct fake_card *c, unsigned long long last_seen_us, unsigned room, unsigned *count,
		   struct fake_use *out)
{
	unsigned found = 0;

	c->use_calls++;
	for (unsigned i = 0; i < c->use_count; i++) {
		if (c->uses[i].at_us > last_seen_us || c->keeps_old)
			out[found++] = c->uses[i];
	}
	*count = found;
	if (found == 0)
		return NVML_ERROR_NOT_FOUND;
	return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

int nvmlDeviceGetProcessUtilization(struct nvml_device *device, struct nvml_process_utilization *samples,
				    unsigned *count, unsigned long long last_seen_us)
{
	struct fake_use uses[FAKE_PROCESSES];
	int result;

	FAULT(device);
	result = uses_of(card_of(device), last_seen_us, *count, count, uses);
	for (unsigned i = 0; result == NVML_SUCCESS && i < *count; i++)
		samples[i] = (struct nvml_process_utilization) { .pid = uses[i].pid,
								 .timestamp_us = uses[i].at_us,
								 .sm = uses[i].sm };
	return result;
}

int nvmlDeviceGetProcessesUtilizationInfo(struct nvml_device *device, struct nvml_processes_utilization_info *info)
{
	struct fake_use uses[FAKE_PROCESSES];
	int result;

	FAULT(device);
	if (info->version != NVML_PROCESSES_UTILIZATION_INFO_V1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	result = uses_of(card_of(device), info->last_seen_us, info->count, &info->count, uses);
	for (unsigned i = 0; result == NVML_SUCCESS && i < info->count; i++)
		info->processes[i] = (struct nvml_process_utilization_info) { .pid = uses[i].pid,
									      .timestamp_us = uses[i].at_us,
									      .sm = uses[i].sm };
	return result;
}

/* ---- events: a set is the card that was registered with it last */

struct nvml_event_set {
	struct fake_card *card;
	bool taken;
};

int nvmlEventSetCreate(struct nvml_event_set **set)
{
	static struct nvml_event_set sets[FAKE_CARDS];

	FAULT(NULL);
	for (unsigned i = 0; i < FAKE_CARDS; i++) {
		if (sets[i].taken)
			continue;
		sets[i] = (struct nvml_event_set) { NULL, true };
		*set = &sets[i];
		fake.event_sets++;
		return NVML_SUCCESS;
	}
	return NVML_ERROR_MEMORY;
}

int nvmlEventSetFree(struct nvml_event_set *set)
{
	set->taken = false;
	fake.event_sets--;
	return NVML_SUCCESS;
}

int nvmlDeviceGetSupportedEventTypes(struct nvml_device *device, unsigned long long *types)
{
	FAULT(device);
	*types = card_of(device)->event_types;
	return NVML_SUCCESS;
}

int nvmlDeviceRegisterEvents(struct nvml_device *device, unsigned long long types, struct nvml_event_set *set)
{
	FAULT(device);
	if ((types & ~card_of(device)->event_types) != 0)
		return NVML_ERROR_NOT_SUPPORTED;
	set->card = card_of(device);
	return NVML_SUCCESS;
}

int nvmlEventSetWait_v2(struct nvml_event_set *set, struct nvml_event_data *data, unsigned timeout_ms)
{
	struct fake_card *c = set->card;
	struct nvml_device *device = (struct nvml_device *)(void *)c;

	fake.event_waits++;
	if (timeout_ms > 0)
		return NVML_ERROR_INVALID_ARGUMENT; /* nobody may wait */
	FAULT(device);
	if (c->event_next == c->event_count)
		return NVML_ERROR_TIMEOUT;
	*data = (struct nvml_event_data) { device, c->events[c->event_next].type, c->events[c->event_next].data,
					   c->events[c->event_next].gpu_instance,
					   c->events[c->event_next].compute_instance };
	c->event_next++;
	return NVML_SUCCESS;
}

/* ---- what a card says of itself */

int nvmlDeviceGetFieldValues(struct nvml_device *device, int count, struct nvml_field_value *values)
{
	FAULT(device);
	for (int i = 0; i < count; i++) {
		bool known = values[i].field == 230 && card_of(device)->action >= 0;

		values[i].result = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
		values[i].value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
		values[i].value.ui = known ? (unsigned)card_of(device)->action : 0;
	}
	return NVML_SUCCESS;
}

int nvmlDeviceGetRemappedRows(struct nvml_device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
			      unsigned *failed)
{
	FAULT(device);
	if (card_of(device)->retires_pages)
		return NVML_ERROR_NOT_SUPPORTED;
	*corrected = *uncorrected = 1;
	*pending = card_of(device)->rows_pending;
	*failed = card_of(device)->rows_failed;
	return NVML_SUCCESS;
}

int nvmlDeviceGetRetiredPagesPendingStatus(struct nvml_device *device, unsigned *pending)
{
	FAULT(device);
	if (!card_of(device)->retires_pages)
		return NVML_ERROR_NOT_SUPPORTED;
	*pending = card_of(device)->rows_pending;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, unsigned type, unsigned counter, unsigned long long *count)
{
	FAULT(device);
	if (type != NVML_MEMORY_ERROR_UNCORRECTED || counter != NVML_VOLATILE_ECC)
		return NVML_ERROR_INVALID_ARGUMENT;
	*count = card_of(device)->ecc_uncorrected;
	return NVML_SUCCESS;
}
#endif
