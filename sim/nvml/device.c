/* Which cards there are, and what never changes about one. */
#include <string.h>

#include "core/fmt.h"
#include "sim/lib/sim_mig.h"
#include "sim/lib/sim_visible.h"
#include "sim/nvml/handle.h"
#include "sim/nvml/pci.h"

/* ---- Count and handles */

static int count_cards(const char *call, unsigned *count)
{
	const struct sim_node *n = NULL;
	int r = node_enter(call, &n);

	if (r == NVML_SUCCESS && count == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		*count = visible_count();
	return r;
}

int nvmlDeviceGetCount(unsigned *count)
{
	return count_cards(__func__, count);
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
	return count_cards(__func__, count);
}

/* A handle is given only for a card that answers. */
static int hand_out(const char *call, unsigned number, struct nvml_device **device)
{
	const struct sim_card *c = NULL;
	int r = card_enter(call, handle_of(number), &c, &number);

	if (r == NVML_SUCCESS)
		*device = handle_of(number);
	return r;
}

static int by_index(const char *call, unsigned index, struct nvml_device **device)
{
	const struct sim_node *n = NULL;
	int r = node_enter("", &n);

	if (r != NVML_SUCCESS)
		return r;
	if (device == NULL || index >= visible_count())
		return NVML_ERROR_INVALID_ARGUMENT;
	return hand_out(call, visible_card(index), device);
}

int nvmlDeviceGetHandleByIndex(unsigned index, struct nvml_device **device)
{
	return by_index(__func__, index, device);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct nvml_device **device)
{
	return by_index(__func__, index, device);
}

/* The first visible card that `match` likes. */
static int by_match(const char *call, const char *text, struct nvml_device **device,
		    bool (*match)(const struct sim_card_info *, const char *))
{
	const struct sim_node *n = NULL;
	int r = node_enter("", &n);

	if (r != NVML_SUCCESS)
		return r;
	if (text == NULL || device == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (unsigned i = 0; i < visible_count(); i++)
		if (match(&n->cards[visible_card(i)].info, text))
			return hand_out(call, visible_card(i), device);
	return NVML_ERROR_NOT_FOUND;
}

static bool has_uuid(const struct sim_card_info *info, const char *text)
{
	return strcmp(info->uuid, text) == 0;
}

static bool has_serial(const struct sim_card_info *info, const char *text)
{
	return info->serial[0] != '\0' && strcmp(info->serial, text) == 0;
}

static int by_mig_uuid(const char *call, const char *uuid, struct nvml_device **device)
{
	const struct sim_card *c = NULL;
	const struct sim_mig_ci *m = NULL;
	const struct sim_node *n = NULL;
	unsigned number = 0;
	int place, r = node_enter("", &n);

	if (r != NVML_SUCCESS)
		return r;
	if (device == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	place = sim_visible_mig(n, uuid, strlen(uuid), &number);
	if (place < 0 || visible_index(number) < 0)
		return NVML_ERROR_NOT_FOUND;
	r = mig_enter(call, mig_handle_of(number, (unsigned)place), &c, &number, &m);
	if (r == NVML_SUCCESS)
		*device = mig_handle_of(number, (unsigned)place);
	return r == NVML_ERROR_INVALID_ARGUMENT ? NVML_ERROR_NOT_FOUND : r;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, struct nvml_device **device)
{
	if (uuid != NULL && strncmp(uuid, "MIG-", 4) == 0)
		return by_mig_uuid(__func__, uuid, device);
	return by_match(__func__, uuid, device, has_uuid);
}

int nvmlDeviceGetHandleBySerial(const char *serial, struct nvml_device **device)
{
	return by_match(__func__, serial, device, has_serial);
}

int nvmlDeviceGetHandleByPciBusId(const char *bus_id, struct nvml_device **device)
{
	return by_match(__func__, bus_id, device, pci_matches);
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, struct nvml_device **device)
{
	return by_match(__func__, bus_id, device, pci_matches);
}

/* ---- Names and numbers */

int nvmlDeviceGetName(struct nvml_device *device, char *name, unsigned length)
{
	char text[SIM_NAME_BYTES + 64], profile[48];
	DEVICE(device, name);

	if (m == NULL)
		return copy_text(c->info.name, name, length);
	sim_mig_name(c, m, profile, sizeof profile);
	hm_fmt(text, sizeof text, "%s MIG %s", c->info.name, profile);
	return copy_text(text, name, length);
}

int nvmlDeviceGetUUID(struct nvml_device *device, char *uuid, unsigned length)
{
	DEVICE(device, uuid);
	return copy_text(m != NULL ? m->uuid : c->info.uuid, uuid, length);
}

int nvmlDeviceGetSerial(struct nvml_device *device, char *serial, unsigned length)
{
	CARD(device, serial);
	return c->info.serial[0] != '\0' ? copy_text(c->info.serial, serial, length) : NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetVbiosVersion(struct nvml_device *device, char *version, unsigned length)
{
	CARD(device, version);
	return copy_text(c->info.vbios, version, length);
}

ANSWER(nvmlDeviceGetIndex, (unsigned)visible_index(number))
ANSWER(nvmlDeviceGetMinorNumber, c->info.minor)
ANSWER(nvmlDeviceGetBrand, c->info.brand)
ANSWER(nvmlDeviceGetArchitecture, c->info.architecture)
ANSWER(nvmlDeviceGetMemoryBusWidth, c->info.bus_width_bits)

int nvmlDeviceGetCudaComputeCapability(struct nvml_device *device, int *major, int *minor)
{
	CARD(device, major);
	if (minor == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = (int)c->info.cc_major;
	*minor = (int)c->info.cc_minor;
	return NVML_SUCCESS;
}

int nvmlDeviceGetNumGpuCores(struct nvml_device *device, unsigned *cores)
{
	bool half;
	CARD(device, cores);

	/* FP32 lanes of an SM, CUDA programming guide, "Compute Capabilities": 64 for 7.x and 8.0, else 128. */
	half = c->info.cc_major == 7 || (c->info.cc_major == 8 && c->info.cc_minor == 0);
	*cores = c->info.sms * (half ? 64 : 128);
	return NVML_SUCCESS;
}

/* ---- Modes, all fixed */

ANSWER(nvmlDeviceGetBusType, NVML_BUS_TYPE_PCIE)
ANSWER(nvmlDeviceGetMaxPcieLinkGeneration, c->info.pcie_generation)
ANSWER(nvmlDeviceGetMaxPcieLinkWidth, c->info.pcie_width)
ANSWER(nvmlDeviceGetCurrPcieLinkGeneration, c->info.pcie_generation)
ANSWER(nvmlDeviceGetCurrPcieLinkWidth, c->info.pcie_width)
ANSWER(nvmlDeviceGetPersistenceMode, NVML_FEATURE_ENABLED)
ANSWER(nvmlDeviceGetComputeMode, NVML_COMPUTEMODE_DEFAULT)
ANSWER(nvmlDeviceGetDisplayActive, NVML_FEATURE_DISABLED)
ANSWER(nvmlDeviceGetDisplayMode, NVML_FEATURE_DISABLED)
ANSWER(nvmlDeviceGetVirtualizationMode, NVML_GPU_VIRTUALIZATION_MODE_NONE)
ANSWER(nvmlDeviceGetAccountingMode, NVML_FEATURE_ENABLED)
ANSWER(nvmlDeviceGetAccountingBufferSize, 4000) /* processes; what drivers answer */

int nvmlDeviceGetEccMode(struct nvml_device *device, unsigned *current, unsigned *pending)
{
	CARD(device, current);
	if (pending == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->info.ecc == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = *pending = NVML_FEATURE_ENABLED;
	return NVML_SUCCESS;
}

int nvmlDeviceGetTotalEccErrors(struct nvml_device *device, unsigned type, unsigned counter, unsigned long long *count)
{
	CARD(device, count);
	if (type > NVML_MEMORY_ERROR_UNCORRECTED || counter > NVML_AGGREGATE_ECC)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->info.ecc == 0)
		return NVML_ERROR_NOT_SUPPORTED;
	*count = type == NVML_MEMORY_ERROR_UNCORRECTED ? atomic_load(&c->ecc_uncorrected) : 0;
	return NVML_SUCCESS;
}

/* Rows are remapped from Ampere on, pages were retired before. */
int nvmlDeviceGetRemappedRows(struct nvml_device *device, unsigned *corrected, unsigned *uncorrected, unsigned *pending,
			      unsigned *failed)
{
	CARD(device, corrected);
	if (uncorrected == NULL || pending == NULL || failed == NULL)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (c->info.ecc == 0 || c->info.architecture < NVML_ARCH_AMPERE)
		return NVML_ERROR_NOT_SUPPORTED;
	*corrected = 0;
	*pending = atomic_load(&c->rows_pending);
	*failed = atomic_load(&c->rows_failed);
	*uncorrected = *pending;
	return NVML_SUCCESS;
}

int nvmlDeviceGetRetiredPagesPendingStatus(struct nvml_device *device, unsigned *pending)
{
	CARD(device, pending);
	if (c->info.ecc == 0 || c->info.architecture >= NVML_ARCH_AMPERE)
		return NVML_ERROR_NOT_SUPPORTED;
	*pending = atomic_load(&c->rows_pending);
	return NVML_SUCCESS;
}
