/* Links between cards:
 *  1. each active NVLink of a card leads to another card (its PCI address), or to an NVSwitch;
 *  2. two cards have the NVLinks that lead straight from one to the other, and through the switches as many as the card
 *     with fewer has (an NVSwitch joins all cards at full width);
 *  3. every two cards have their path in the PCIe tree, which is all that joins those without NVLinks. */
#include "gpu/driver.h"

#include <string.h>

struct card_ends { /* where the NVLinks of one card lead */
	unsigned to[HM_MAX_CARDS];
	unsigned to_switch;
};

/* -1: to no card of ours. */
static int card_at(const struct inventory *inv, const struct nvml_pci_info *pci)
{
	for (size_t i = 0; i < inv->count; i++) {
		if (inv->cards[i].pci_bus_id[0] != '\0' &&
		    strncasecmp(inv->cards[i].pci_bus_id, pci->bus_id, sizeof pci->bus_id) == 0)
			return (int)i;
	}
	return -1;
}

static void follow_link(struct gpu_driver *d, struct nvml_device *handle, unsigned link, const struct inventory *inv,
			struct card_ends *ends)
{
	struct nvml_pci_info pci = { 0 };
	unsigned type = NVML_NVLINK_DEVICE_UNKNOWN;
	int card = -1;

	if (NVML(d, nvmlDeviceGetNvLinkRemotePciInfo_v2, handle, link, &pci) == NVML_SUCCESS)
		card = card_at(inv, &pci);
	if (card >= 0)
		ends->to[card]++;
	else if (NVML(d, nvmlDeviceGetNvLinkRemoteDeviceType, handle, link, &type) == NVML_SUCCESS &&
		 type == NVML_NVLINK_DEVICE_SWITCH)
		ends->to_switch++;
}

static void read_ends(struct gpu_driver *d, struct nvml_device *handle, const struct inventory *inv,
		      struct card_ends *ends)
{
	enum { MAX_NVLINKS = 36 }; /* of the newest generation; older ones answer "invalid" above theirs */

	for (unsigned link = 0; link < MAX_NVLINKS; link++) {
		unsigned active = 0;

		if (NVML(d, nvmlDeviceGetNvLinkState, handle, link, &active) == NVML_SUCCESS &&
		    active == NVML_FEATURE_ENABLED)
			follow_link(d, handle, link, inv, ends);
	}
}

static enum link_kind pcie_path(struct gpu_driver *d, struct nvml_device *a, struct nvml_device *b)
{
	unsigned level = 0;

	if (NVML(d, nvmlDeviceGetTopologyCommonAncestor, a, b, &level) != NVML_SUCCESS)
		return LINK_NONE;
	switch (level) {
	case NVML_TOPOLOGY_INTERNAL: return LINK_BOARD;
	case NVML_TOPOLOGY_SINGLE: return LINK_SINGLE_SWITCH;
	case NVML_TOPOLOGY_MULTIPLE: return LINK_MULTI_SWITCH;
	case NVML_TOPOLOGY_HOSTBRIDGE: return LINK_HOSTBRIDGE;
	case NVML_TOPOLOGY_NODE: return LINK_NODE;
	case NVML_TOPOLOGY_SYSTEM: return LINK_SYSTEM;
	default: return LINK_NONE;
	}
}

/* From card i to card j; its opposite differs in `direct` alone. */
static struct card_link link_between(const struct card_ends *ends, size_t i, size_t j, enum link_kind path)
{
	/* A sick card may know only one of the two directions. */
	unsigned direct = HM_MAX(ends[i].to[j], ends[j].to[i]);
	unsigned switched = HM_MIN(ends[i].to_switch, ends[j].to_switch);
	unsigned nvlinks = direct + switched;

	return (struct card_link) { nvlinks > 0 ? LINK_NVLINK : path, (uint8_t)nvlinks, path, (uint8_t)ends[i].to[j],
				    (uint8_t)switched };
}

void links_read(struct gpu_driver *d, struct nvml_device *const *handles, struct inventory *inv)
{
	struct card_ends ends[HM_MAX_CARDS] = { 0 };

	for (size_t i = 0; i < inv->count && inv->count > 1; i++)
		read_ends(d, handles[i], inv, &ends[i]);
	for (size_t i = 0; i < inv->count; i++) {
		for (size_t j = 0; j < i; j++) {
			enum link_kind path = pcie_path(d, handles[i], handles[j]);

			inv->links[i * inv->count + j] = link_between(ends, i, j, path);
			inv->links[j * inv->count + i] = link_between(ends, j, i, path);
		}
	}
}
