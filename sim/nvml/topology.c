/* NUMA, PCI distance, peer access and NVLink. */
#include <string.h>

#include "core/macros.h"
#include "sim/nvml/handle.h"
#include "sim/nvml/pci.h"

enum { FIRST_SWITCH_BUS = 0xc4 /* NVSwitches of a DGX A100 sit at c4:00.0 and up */ };

/* ---- Affinity */

int nvmlDeviceGetNumaNodeId(struct nvml_device *device, unsigned *node)
{
	CARD(device, node);
	if (c->info.numa_node < 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*node = (unsigned)c->info.numa_node;
	return NVML_SUCCESS;
}

int nvmlDeviceGetMemoryAffinity(struct nvml_device *device, unsigned words, unsigned long *nodes, unsigned scope)
{
	unsigned node;
	CARD(device, nodes);

	if (words == 0 || scope > NVML_AFFINITY_SCOPE_SOCKET)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->info.numa_node < 0)
		return NVML_ERROR_NOT_SUPPORTED;
	node = (unsigned)c->info.numa_node;
	if (node / 64 >= words)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memset(nodes, 0, words * sizeof *nodes);
	nodes[node / 64] |= 1UL << (node % 64);
	return NVML_SUCCESS;
}

static int cpu_affinity(const struct sim_card *c, unsigned words, unsigned long *cpus)
{
	if (words == 0)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < words; i++)
		cpus[i] = i < SIM_CPU_WORDS ? (unsigned long)c->info.cpu_mask[i] : 0;
	return NVML_SUCCESS;
}

int nvmlDeviceGetCpuAffinity(struct nvml_device *device, unsigned words, unsigned long *cpus)
{
	CARD(device, cpus);
	return cpu_affinity(c, words, cpus);
}

int nvmlDeviceGetCpuAffinityWithinScope(struct nvml_device *device, unsigned words, unsigned long *cpus, unsigned scope)
{
	CARD(device, cpus);
	return scope > NVML_AFFINITY_SCOPE_SOCKET ? NVML_ERROR_INVALID_ARGUMENT : cpu_affinity(c, words, cpus);
}

/* ---- Two cards */

static unsigned level_between(const struct sim_card *a, unsigned b)
{
	static const unsigned levels[] = {
		[SIM_PCI_SAME] = NVML_TOPOLOGY_INTERNAL,     [SIM_PCI_SINGLE] = NVML_TOPOLOGY_SINGLE,
		[SIM_PCI_MULTIPLE] = NVML_TOPOLOGY_MULTIPLE, [SIM_PCI_HOSTBRIDGE] = NVML_TOPOLOGY_HOSTBRIDGE,
		[SIM_PCI_NODE] = NVML_TOPOLOGY_NODE,         [SIM_PCI_SYSTEM] = NVML_TOPOLOGY_SYSTEM,
	};

	return levels[a->info.pci_level[b] % HM_COUNT(levels)];
}

int nvmlDeviceGetTopologyCommonAncestor(struct nvml_device *a, struct nvml_device *b, unsigned *level)
{
	unsigned other;
	CARD(a, level);

	if (!handle_number(b, &other))
		return NVML_ERROR_INVALID_ARGUMENT;
	*level = level_between(c, other);
	return NVML_SUCCESS;
}

int nvmlDeviceGetTopologyNearestGpus(struct nvml_device *device, unsigned level, unsigned *count,
				     struct nvml_device **devices)
{
	unsigned room, found = 0;
	CARD(device, count);

	room = *count;
	if (room > 0 && devices == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < visible_count(); i++) {
		unsigned other = visible_card(i);

		if (other == number || level_between(c, other) != level)
			continue;
		if (found < room)
			devices[found] = handle_of(other);
		found++;
	}
	*count = room == 0 ? found : HM_MIN(found, room);
	return NVML_SUCCESS;
}

int nvmlDeviceOnSameBoard(struct nvml_device *a, struct nvml_device *b, int *same)
{
	unsigned other;
	CARD(a, same);

	if (!handle_number(b, &other))
		return NVML_ERROR_INVALID_ARGUMENT;
	*same = other == number || c->info.pci_level[other] == SIM_PCI_SAME;
	return NVML_SUCCESS;
}

int nvmlDeviceGetP2PStatus(struct nvml_device *a, struct nvml_device *b, unsigned index, unsigned *status)
{
	unsigned other;
	CARD(a, status);

	if (!handle_number(b, &other) || index >= NVML_P2P_CAPS_INDEX_UNKNOWN)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (other == number)
		*status = NVML_P2P_STATUS_OK;
	else if (index == NVML_P2P_CAPS_INDEX_NVLINK)
		*status = c->info.nvlinks[other] > 0 ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
	else if (c->info.brand == NVML_BRAND_GEFORCE)
		*status = NVML_P2P_STATUS_GPU_NOT_SUPPORTED; /* the driver does not offer it on these */
	else
		*status = NVML_P2P_STATUS_OK;
	return NVML_SUCCESS;
}

/* ---- One NVLink */

static int find_link(const struct sim_card *c, unsigned link, const struct sim_link **out)
{
	if (c->info.links[0].remote == SIM_LINK_NONE)
		return NVML_ERROR_NOT_SUPPORTED;
	if (link >= SIM_MAX_LINKS || c->info.links[link].remote == SIM_LINK_NONE)
		return NVML_ERROR_INVALID_ARGUMENT;
	*out = &c->info.links[link];
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkState(struct nvml_device *device, unsigned link, unsigned *active)
{
	const struct sim_link *l;
	int r;
	CARD(device, active);

	r = find_link(c, link, &l);
	if (r == NVML_SUCCESS)
		*active = NVML_FEATURE_ENABLED;
	return r;
}

int nvmlDeviceGetNvLinkVersion(struct nvml_device *device, unsigned link, unsigned *version)
{
	const struct sim_link *l;
	int r;
	CARD(device, version);

	r = find_link(c, link, &l);
	if (r == NVML_SUCCESS) /* NVLink 3 came with Ampere, 4 with Hopper, 5 with Blackwell */
		*version = c->info.architecture >= NVML_ARCH_BLACKWELL ? 5
			   : c->info.architecture >= NVML_ARCH_HOPPER  ? 4
			   : c->info.architecture >= NVML_ARCH_AMPERE  ? 3
								       : 2;
	return r;
}

int nvmlDeviceGetNvLinkCapability(struct nvml_device *device, unsigned link, unsigned capability, unsigned *result)
{
	const struct sim_link *l;
	int r;
	CARD(device, result);

	if (capability > NVML_NVLINK_CAP_VALID)
		return NVML_ERROR_INVALID_ARGUMENT;
	r = find_link(c, link, &l);
	if (r == NVML_SUCCESS)
		*result = capability == NVML_NVLINK_CAP_P2P_SUPPORTED || capability == NVML_NVLINK_CAP_P2P_ATOMICS ||
			  capability == NVML_NVLINK_CAP_VALID;
	return r;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(struct nvml_device *device, unsigned link, unsigned *type)
{
	const struct sim_link *l;
	int r;
	CARD(device, type);

	r = find_link(c, link, &l);
	if (r == NVML_SUCCESS)
		*type = l->remote == SIM_LINK_SWITCH ? NVML_NVLINK_DEVICE_SWITCH : NVML_NVLINK_DEVICE_GPU;
	return r;
}

static int remote_pci(const char *call, struct nvml_device *device, unsigned link, struct nvml_pci_info *pci)
{
	const struct sim_card *c = NULL;
	const struct sim_link *l;
	unsigned number;
	int r = card_enter(call, device, &c, &number);

	if (r == NVML_SUCCESS && pci == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		r = find_link(c, link, &l);
	if (r != NVML_SUCCESS)
		return r;
	if (l->remote == SIM_LINK_GPU)
		pci_of_card(&sim_node()->cards[l->card].info, pci);
	else
		pci_fill(pci, 0, FIRST_SWITCH_BUS + l->card, 0,
			 c->info.architecture >= NVML_ARCH_HOPPER ? 0x22a310de : 0x1af110de, 0);
	return NVML_SUCCESS;
}

int nvmlDeviceGetNvLinkRemotePciInfo(struct nvml_device *device, unsigned link, struct nvml_pci_info *pci)
{
	return remote_pci(__func__, device, link, pci);
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(struct nvml_device *device, unsigned link, struct nvml_pci_info *pci)
{
	return remote_pci(__func__, device, link, pci);
}
