#include "gpu/scan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/str.h"
#include "core/cursor.h"
#include "core/fmt.h"
#include "gpu/driver.h"

bool driver_plain_word(const char *text, size_t cap)
{
	size_t n = strnlen(text, cap);

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)text[i];
		bool letter = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');

		if (!letter && c != '-')
			return false;
	}
	return n > 0 && n < cap;
}

static int read_uuid(struct gpu_driver *d, struct nvml_device *handle, struct card *card, struct hm_err *e)
{
	char uuid[NVML_UUID_BYTES] = { 0 };
	int result = d->nvmlDeviceGetUUID(handle, uuid, sizeof uuid);

	if (result != NVML_SUCCESS)
		return driver_error(d, result, "nvmlDeviceGetUUID", e);
	if (!driver_plain_word(uuid, sizeof card->uuid))
		return hm_err_set(e, HM_EPROTO, "nvmlDeviceGetUUID: \"%.*s\" is no UUID", (int)sizeof uuid - 1, uuid);
	hm_fmt(card->uuid, sizeof card->uuid, "%s", uuid);
	return 0;
}

static int read_memory(struct gpu_driver *d, struct nvml_device *handle, struct card *card, struct hm_err *e)
{
	struct nvml_memory memory = { 0 };
	struct nvml_memory_v2 v2 = { .version = NVML_MEMORY_V2 };
	int result = d->nvmlDeviceGetMemoryInfo(handle, &memory);

	if (result == NVML_ERROR_NOT_SUPPORTED) /* its memory is the machine's: an administrator says how much */
		return 0;
	if (result != NVML_SUCCESS)
		return driver_error(d, result, "nvmlDeviceGetMemoryInfo", e);
	card->memory_bytes = memory.total;
	if (NVML(d, nvmlDeviceGetMemoryInfo_v2, handle, &v2) == NVML_SUCCESS && v2.reserved < memory.total)
		card->reserved_bytes = v2.reserved;
	return 0;
}

/* What every card must answer to be served. */
static int read_needed(struct gpu_driver *d, struct nvml_device *handle, struct card *card, struct hm_err *e)
{
	int r = read_uuid(d, handle, card, e), result;

	if (r == 0)
		r = read_memory(d, handle, card, e);
	if (r < 0)
		return r;
	result = d->nvmlDeviceGetMinorNumber(handle, &card->minor);
	return result == NVML_SUCCESS ? 0 : driver_error(d, result, "nvmlDeviceGetMinorNumber", e);
}

/* "00000000:3B:00.0" is "0000:3b:00.0" in sysfs. */
static int numa_of_sysfs(const struct gpu_driver *d, const struct nvml_pci_info *pci)
{
	char path[512], text[16];
	hm_auto_fd fd = -1;
	uint64_t node = 0;
	ssize_t n;

	if (hm_fmt(path, sizeof path, "%s/%04x:%02x:%02x.0/numa_node", d->sysfs, pci->domain, pci->bus, pci->device) >=
	    sizeof path)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, sizeof text);
	if (n > 0 && text[n - 1] == '\n')
		n--;
	/* "-1" is no number here: unknown */
	return n > 0 && piece_u64((struct piece) { text, (size_t)n }, 1023, &node) ? (int)node : -1;
}

/* The NUMA node next to the card. Not nvmlDeviceGetNumaNodeId: that is the node which the card's own memory makes on
 * machines where it is system memory (Grace Hopper), and the kubelet knows no CPUs there. */
static int numa_of(struct gpu_driver *d, struct nvml_device *handle, const struct nvml_pci_info *pci)
{
	unsigned long nodes[16] = { 0 }; /* 1,024 nodes, the kernel's largest CONFIG_NODES_SHIFT */
	int node = -1;

	if (NVML(d, nvmlDeviceGetMemoryAffinity, handle, HM_COUNT(nodes), nodes, NVML_AFFINITY_SCOPE_NODE) ==
	    NVML_SUCCESS) {
		for (unsigned i = 0; i < HM_COUNT(nodes) * 64; i++) {
			if ((nodes[i / 64] >> (i % 64) & 1) == 0)
				continue;
			if (node >= 0) /* several: next to none in particular */
				return pci == NULL ? -1 : numa_of_sysfs(d, pci);
			node = (int)i;
		}
	}
	return node >= 0 || pci == NULL ? node : numa_of_sysfs(d, pci);
}

/* What may be missing. */
static void read_rest(struct gpu_driver *d, struct nvml_device *handle, struct card *card)
{
	struct nvml_pci_info pci = { 0 };
	bool has_pci = NVML(d, nvmlDeviceGetPciInfo_v3, handle, &pci) == NVML_SUCCESS;

	if (NVML(d, nvmlDeviceGetName, handle, card->model, sizeof card->model) != NVML_SUCCESS)
		hm_fmt(card->model, sizeof card->model, "unknown GPU");
	card->model[sizeof card->model - 1] = '\0';
	if (has_pci)
		hm_fmt(card->pci_bus_id, sizeof card->pci_bus_id, "%.*s", (int)sizeof pci.bus_id, pci.bus_id);
	card->numa_node = numa_of(d, handle, has_pci ? &pci : NULL);
	mig_read(d, handle, card);
	card->mig_enabled = card->mig.enabled;
}

/* The small card of a DGX Station, which no plugin of NVIDIA's or HAMi's offers. */
static bool is_display(const struct card *card)
{
	return strcmp(card->model, "DGX Display") == 0 || strcmp(card->model, "NVIDIA DGX Display") == 0;
}

static int read_card(struct gpu_driver *d, unsigned index, struct inventory *inv, struct nvml_device **handle,
		     struct hm_err *e)
{
	struct card card = { .index = index };
	int result, r;

	if (inv->count == HM_MAX_CARDS)
		return hm_err_set(e, HM_ELIMIT, "a node may have %d cards", (int)HM_MAX_CARDS);
	result = d->nvmlDeviceGetHandleByIndex_v2(index, handle);
	if (result != NVML_SUCCESS)
		return driver_error(d, result, "nvmlDeviceGetHandleByIndex", e);
	r = read_needed(d, *handle, &card, e);
	if (r < 0)
		return r;
	if (inventory_find(inv, card.uuid) != NULL)
		return hm_err_set(e, HM_EEXIST, "its UUID %s is another card's too", card.uuid);
	read_rest(d, *handle, &card);
	if (is_display(&card))
		return hm_err_set(e, HM_EUNSUPPORTED, "%s only drives a display", card.model);
	inv->cards[inv->count++] = card;
	return 0;
}

static int skip_card(struct inventory *inv, unsigned index, const struct hm_err *why, struct hm_err *e)
{
	hm_auto_str text = { 0 };
	char *line;

	str_addf(&text, "GPU %u: %s", index, why->msg);
	line = str_take(&text);
	if (line == NULL)
		return hm_err_set(e, HM_ENOMEM, "skipped cards");
	inv->skipped[inv->skipped_count++] = line;
	return 0;
}

static void read_versions(struct gpu_driver *d, struct inventory *inv)
{
	if (NVML(d, nvmlSystemGetDriverVersion, inv->driver_version, sizeof inv->driver_version) != NVML_SUCCESS)
		inv->driver_version[0] = '\0';
	inv->driver_version[sizeof inv->driver_version - 1] = '\0';
	if (NVML(d, nvmlSystemGetCudaDriverVersion_v2, &inv->cuda_version) != NVML_SUCCESS &&
	    NVML(d, nvmlSystemGetCudaDriverVersion, &inv->cuda_version) != NVML_SUCCESS)
		inv->cuda_version = 0;
}

static int read_cards(struct gpu_driver *d, unsigned count, struct inventory *inv, struct hm_err *e)
{
	struct nvml_device *handles[HM_MAX_CARDS] = { 0 };

	for (unsigned i = 0; i < count; i++) {
		struct nvml_device *handle = NULL;
		struct hm_err why;

		if (read_card(d, i, inv, &handle, &why) == 0) {
			handles[inv->count - 1] = handle;
			continue;
		}
		if (skip_card(inv, i, &why, e) < 0)
			return -HM_ENOMEM;
	}
	inv->links = calloc(inv->count * inv->count + 1, sizeof *inv->links);
	if (inv->links == NULL)
		return hm_err_set(e, HM_ENOMEM, "links");
	links_read(d, handles, inv);
	return 0;
}

int gpu_scan(struct gpu_driver *d, struct inventory **out, struct hm_err *e)
{
	enum { SANE_COUNT = 4096 };
	hm_auto(inventory) *inv = inventory_new();
	unsigned count = 0;
	int result;

	if (inv == NULL)
		return hm_err_set(e, HM_ENOMEM, "scan GPUs");
	result = d->nvmlDeviceGetCount_v2(&count);
	if (result != NVML_SUCCESS) {
		driver_error(d, result, "nvmlDeviceGetCount", e);
		return hm_err_wrap(e, "scan GPUs");
	}
	if (count > SANE_COUNT)
		return hm_err_set(e, HM_EPROTO, "scan GPUs: nvmlDeviceGetCount: %u cards make no sense", count);
	inv->cards = calloc(HM_MAX_CARDS, sizeof *inv->cards);
	inv->skipped = calloc((size_t)count + 1, sizeof *inv->skipped);
	if (inv->cards == NULL || inv->skipped == NULL)
		return hm_err_set(e, HM_ENOMEM, "scan GPUs");
	read_versions(d, inv);
	if (read_cards(d, count, inv, e) < 0)
		return hm_err_wrap(e, "scan GPUs");
	*out = HM_STEAL(inv);
	return 0;
}
