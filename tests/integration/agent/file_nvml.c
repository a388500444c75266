/* What it answers is read anew at each nvmlInit and each count from the file that FILE_NVML names: words with numbers,
 *
 *     ready 1 cards 8 mib 81920 lost 2 hang 1 links 4 back 4
 *
 * ready 0: no driver; lost N: card N errs (-1: none); hang: the next call lasts until the file says hang 0; links: how
 * many NVLinks card 0 says that it has to card 1; back: the other way. A missing file is no driver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/nvml.h"

#pragma GCC visibility push(default)

static struct {
	int ready, cards, mib, lost, hang, links, back;
} now;
static int initialised; /* since the driver was last away: a reloaded one wants a new nvmlInit */

static void read_file(void)
{
	const char *path = getenv("FILE_NVML");
	FILE *f = path != NULL ? fopen(path, "re") : NULL;
	char word[16];
	int n;

	memset(&now, 0, sizeof now);
	now.lost = -1;
	while (f != NULL && fscanf(f, "%15s %d", word, &n) == 2) {
		now.ready = strcmp(word, "ready") == 0 ? n : now.ready;
		now.cards = strcmp(word, "cards") == 0 ? n : now.cards;
		now.mib = strcmp(word, "mib") == 0 ? n : now.mib;
		now.lost = strcmp(word, "lost") == 0 ? n : now.lost;
		now.hang = strcmp(word, "hang") == 0 ? n : now.hang;
		now.links = strcmp(word, "links") == 0 ? n : now.links;
		now.back = strcmp(word, "back") == 0 ? n : now.back;
	}
	if (f != NULL)
		fclose(f);
}

static void look(void)
{
	for (read_file(); now.hang != 0; read_file())
		usleep(20000);
}

/* Handles are 1-based card numbers. */
static int card_of(struct nvml_device *device)
{
	return (int)(long)device - 1;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	look();
	initialised = now.ready;
	return now.ready ? NVML_SUCCESS : NVML_ERROR_DRIVER_NOT_LOADED;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
	return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
	look();
	*count = (unsigned)now.cards;
	initialised = initialised && now.ready;
	return initialised ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
	*device = (struct nvml_device *)(long)(index + 1);
	return (int)index == now.lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device);
int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
	size_t n = strlen(uuid);
	int card = n < 2 ? -1 : (uuid[n - 2] - '0') * 10 + uuid[n - 1] - '0';

	if (card < 0 || card >= now.cards)
		return NVML_ERROR_NOT_FOUND;
	*device = (struct nvml_device *)(long)(card + 1);
	return card == now.lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned length);
int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned length)
{
	snprintf(uuid, length, "GPU-00000000-0000-0000-0000-0000000000%02d", card_of(device));
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory);
int nvmlDeviceGetMemoryInfo(struct nvml_device *device, struct nvml_memory *memory)
{
	unsigned long long total = (unsigned long long)now.mib << 20;

	(void)device;
	*memory = (struct nvml_memory) { total, total, 0 };
	return NVML_SUCCESS;
}

int nvmlDeviceGetMinorNumber(struct nvml_device *device, unsigned *minor);
int nvmlDeviceGetMinorNumber(struct nvml_device *device, unsigned *minor)
{
	*minor = (unsigned)card_of(device);
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryAffinity(struct nvml_device *device, unsigned words, unsigned long *nodes, unsigned scope);
int nvmlDeviceGetMemoryAffinity(struct nvml_device *device, unsigned words, unsigned long *nodes, unsigned scope)
{
	(void)words, (void)scope;
	nodes[0] = 1UL << (card_of(device) / 4);
	return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned *count, struct nvml_process_info_v1 *out);
int nvmlDeviceGetComputeRunningProcesses(struct nvml_device *device, unsigned *count, struct nvml_process_info_v1 *out)
{
	(void)device, (void)out;
	*count = 0;
	return NVML_SUCCESS;
}

/* ---- NVLinks. Cards have PCI addresses only where there are any. */

static int pci_of(int card, struct nvml_pci_info *pci)
{
	*pci = (struct nvml_pci_info) { .bus = (unsigned)card + 1 };
	snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", (unsigned)card + 1);
	return NVML_SUCCESS;
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci);
int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
	return now.links + now.back > 0 ? pci_of(card_of(device), pci) : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkState(struct nvml_device *device, unsigned link, unsigned *active);
int nvmlDeviceGetNvLinkState(struct nvml_device *device, unsigned link, unsigned *active)
{
	const int links[] = { now.links, now.back };

	*active = card_of(device) < 2 && (int)link < links[card_of(device)] ? NVML_FEATURE_ENABLED : 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, unsigned link, struct nvml_pci_info *pci);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, unsigned link, struct nvml_pci_info *pci)
{
	(void)link;
	return pci_of(1 - card_of(device), pci);
}
