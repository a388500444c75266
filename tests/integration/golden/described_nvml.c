/* An NVML that answers from the text that DESCRIBED_NVML names, read at nvmlInit. One thing a line:
 *
 *     gpu UUID MIB MINOR BUS NUMA NAME...    in NVML's order; NUMA -1: unknown
 *     anc I J LEVEL                          common ancestor of cards I and J
 *     nvl I LINK J                           NVLink of card I that leads to card J
 *     nvsw I LINK                            ... to a switch
 *     nomem I                                the memory query is not supported
 *     profile ID NAME SLICES INSTANCES MIB SMS STARTS SIZE   a MIG profile of every card; all are in MIG mode then */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "described_nvml.h"

enum { LINKS = 36, NO_LINK = -2, TO_SWITCH = -1, LINE_BYTES = 256 };

static struct card {
	char uuid[64], bus[NVML_PCI_BUS_ID_BYTES], name[NVML_NAME_V2_BYTES];
	unsigned mib, minor;
	int numa, no_memory;
	int link[LINKS], ancestor[CARDS];
} cards[CARDS];
static unsigned count;

static struct profile profiles[NVML_GPU_INSTANCE_PROFILE_COUNT];
static unsigned profile_count;

static void read_profile(const char *line)
{
	struct profile p;
	unsigned id;

	if (sscanf(line, "profile %u %31s %u %u %u %u %63s %u", &id, p.name, &p.slices, &p.instances, &p.mib, &p.sms,
		   p.starts, &p.size) != 8 ||
	    id >= NVML_GPU_INSTANCE_PROFILE_COUNT)
		return;
	profiles[id] = p;
	profile_count++;
}

static void read_gpu(const char *line)
{
	struct card *c = &cards[count];
	int at = 0;

	memset(c, 0, sizeof *c);
	for (size_t i = 0; i < LINKS; i++)
		c->link[i] = NO_LINK;
	for (size_t i = 0; i < CARDS; i++)
		c->ancestor[i] = NVML_TOPOLOGY_SYSTEM;
	if (count < CARDS &&
	    sscanf(line, "gpu %63s %u %u %31s %d %n", c->uuid, &c->mib, &c->minor, c->bus, &c->numa, &at) == 5) {
		snprintf(c->name, sizeof c->name, "%s", line + at);
		count++;
	}
}

static void read_line(const char *line)
{
	unsigned i, j, n;

	if (strncmp(line, "gpu ", 4) == 0)
		read_gpu(line);
	else if (sscanf(line, "anc %u %u %u", &i, &j, &n) == 3 && i < CARDS && j < CARDS)
		cards[i].ancestor[j] = cards[j].ancestor[i] = (int)n;
	else if (sscanf(line, "nvl %u %u %u", &i, &n, &j) == 3 && i < CARDS && n < LINKS)
		cards[i].link[n] = (int)j;
	else if (sscanf(line, "nvsw %u %u", &i, &n) == 2 && i < CARDS && n < LINKS)
		cards[i].link[n] = TO_SWITCH;
	else if (sscanf(line, "nomem %u", &i) == 1 && i < CARDS)
		cards[i].no_memory = 1;
	else
		read_profile(line);
}

static struct card *card_of(struct nvml_device *device)
{
	return (struct card *)(void *)device;
}

const struct profile *described_profile(unsigned id)
{
	return id < NVML_GPU_INSTANCE_PROFILE_COUNT && profiles[id].slices > 0 ? &profiles[id] : NULL;
}

unsigned described_index(struct nvml_device *card)
{
	return (unsigned)(card_of(card) - cards);
}

static int copy(const char *text, char *out, unsigned length)
{
	return snprintf(out, length, "%s", text) < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

static void fill_pci(const struct card *c, struct nvml_pci_info *pci)
{
	*pci = (struct nvml_pci_info) { 0 };
	snprintf(pci->bus_id, sizeof pci->bus_id, "%s", c->bus);
	sscanf(c->bus, "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
}

#pragma GCC visibility push(default)

int nvmlInit_v2(void)
{
	const char *path = getenv("DESCRIBED_NVML");
	FILE *f = path != NULL ? fopen(path, "re") : NULL;
	char line[LINE_BYTES];

	if (f == NULL)
		return NVML_ERROR_DRIVER_NOT_LOADED;
	count = profile_count = 0;
	memset(profiles, 0, sizeof profiles);
	while (fgets(line, sizeof line, f) != NULL) {
		line[strcspn(line, "\n")] = '\0';
		read_line(line);
	}
	fclose(f);
	return NVML_SUCCESS;
}

int nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *out)
{
	*out = count;
	return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
	*device = (struct nvml_device *)(void *)&cards[index];
	return index < count ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
	for (unsigned i = 0; i < count; i++) {
		if (strcmp(cards[i].uuid, uuid) == 0)
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	}
	return NVML_ERROR_NOT_FOUND;
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned length)
{
	const char *mig = described_mig_uuid(device);

	return copy(mig != NULL ? mig : card_of(device)->uuid, uuid, length);
}

int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned length)
{
	return copy(card_of(device)->name, name, length);
}

int nvmlDeviceGetMinorNumber(struct nvml_device *device, unsigned *minor)
{
	*minor = card_of(device)->minor;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	unsigned long long total = (unsigned long long)card_of(device)->mib << 20;

	*memory = (struct nvml_memory) { total, total, 0 };
	return card_of(device)->no_memory ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
	fill_pci(card_of(device), pci);
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryAffinity(struct nvml_device *device, unsigned words, unsigned long *nodes, unsigned scope)
{
	int numa = card_of(device)->numa;

	(void)scope;
	if (numa < 0 || words == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	memset(nodes, 0, words * sizeof *nodes);
	nodes[0] = 1UL << numa;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b, unsigned *level)
{
	*level = (unsigned)card_of(a)->ancestor[card_of(b) - cards];
	return NVML_SUCCESS;
}

static int link_of(struct nvml_device *device, unsigned link)
{
	return link < LINKS ? card_of(device)->link[link] : NO_LINK;
}

int nvmlDeviceGetNvLinkState(struct nvml_device *device, unsigned link, unsigned *active)
{
	*active = NVML_FEATURE_ENABLED;
	return link_of(device, link) == NO_LINK ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, unsigned link, struct nvml_pci_info *pci)
{
	int to = link_of(device, link);

	*pci = (struct nvml_pci_info) { .bus_id = "00000000:FF:00.0" };
	if (to >= 0 && to < CARDS)
		fill_pci(&cards[to], pci);
	return to == NO_LINK ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, unsigned link, unsigned *type)
{
	*type = link_of(device, link) == TO_SWITCH ? NVML_NVLINK_DEVICE_SWITCH : NVML_NVLINK_DEVICE_GPU;
	return link_of(device, link) == NO_LINK ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned *number, struct nvml_process_info_v1 *out)
{
	(void)device, (void)out;
	*number = 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMigMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
	(void)device;
	*current = *pending = NVML_DEVICE_MIG_ENABLE;
	return profile_count > 0 ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetGpuInstanceProfileInfo(struct nvml_device *device, unsigned number,
					struct nvml_gpu_instance_profile *info)
{
	const struct profile *p = described_profile(number);

	(void)device;
	if (p == NULL)
		return NVML_ERROR_NOT_SUPPORTED;
	*info = (struct nvml_gpu_instance_profile) { .id = number,
						     .slices = p->slices,
						     .instances = p->instances,
						     .multiprocessors = p->sms,
						     .memory_mib = p->mib };
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstanceProfileInfoV(struct nvml_device *device, unsigned number,
					 struct nvml_gpu_instance_profile_v2 *info)
{
	(void)device;
	snprintf(info->name, sizeof info->name, "MIG %s", profiles[number].name);
	return NVML_SUCCESS;
}

int nvmlDeviceGetGpuInstancePossiblePlacements_v2(struct nvml_device *device, unsigned id,
						  struct nvml_gpu_instance_placement *out, unsigned *number)
{
	const char *at = profiles[id].starts;
	unsigned start, n = 0;
	int used = 0;

	(void)device;
	while (n < *number && sscanf(at, "%u%n", &start, &used) == 1) {
		out[n++] = (struct nvml_gpu_instance_placement) { start, profiles[id].size };
		at += used + (at[used] == ',');
	}
	*number = n;
	return NVML_SUCCESS;
}
