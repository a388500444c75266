#include "sim/nvml/pci.h"

#include <string.h>

#include "core/cursor.h"
#include "core/fmt.h"
#include "sim/nvml/handle.h"

static void upper(char *s)
{
	for (; *s != '\0'; s++)
		if (*s >= 'a' && *s <= 'f')
			*s = (char)(*s - 'a' + 'A');
}

void pci_fill(struct nvml_pci_info *out, unsigned domain, unsigned bus, unsigned device, unsigned device_id,
	      unsigned subsystem_id)
{
	memset(out, 0, sizeof *out);
	out->domain = domain;
	out->bus = bus;
	out->device = device;
	out->pci_device_id = device_id;
	out->pci_subsystem_id = subsystem_id;
	hm_fmt(out->bus_id_legacy, sizeof out->bus_id_legacy, "%04x:%02x:%02x.0", domain & 0xffff, bus, device);
	hm_fmt(out->bus_id, sizeof out->bus_id, "%08x:%02x:%02x.0", domain, bus, device);
	upper(out->bus_id_legacy);
	upper(out->bus_id);
}

void pci_of_card(const struct sim_card_info *info, struct nvml_pci_info *out)
{
	pci_fill(out, info->pci_domain, info->pci_bus, info->pci_device, info->pci_device_id, info->pci_subsystem_id);
}

static bool hex(struct piece s, unsigned *out)
{
	*out = 0;
	for (size_t i = 0; i < s.n; i++) {
		const char *digits = "0123456789abcdef0123456789ABCDEF", *at = strchr(digits, s.p[i]);

		if (at == NULL || s.p[i] == '\0')
			return false;
		*out = *out << 4 | (unsigned)((at - digits) % 16);
	}
	return s.n > 0 && s.n <= 8;
}

bool pci_matches(const struct sim_card_info *info, const char *text)
{
	unsigned domain = 0, bus, device;
	size_t n = strnlen(text, NVML_PCI_BUS_ID_BYTES);
	struct cur c = cur_of(text, n);
	const char *first = memchr(text, ':', n);
	struct piece part;

	if (first == NULL)
		return false;
	if (memchr(first + 1, ':', n - (size_t)(first + 1 - text)) != NULL && !hex(cur_until(&c, ':'), &domain))
		return false;
	part = cur_until(&c, ':');
	if (!hex(part, &bus))
		return false;
	part = cur_until(&c, '.');
	return !c.bad && hex(part, &device) && piece_is(cur_rest(&c), "0") && domain == info->pci_domain &&
	       bus == info->pci_bus && device == info->pci_device;
}

static int pci_info(const char *call, struct nvml_device *device, struct nvml_pci_info *pci)
{
	const struct sim_card *c = NULL;
	unsigned number;
	int r = card_enter(call, device, &c, &number);

	if (r == NVML_SUCCESS && pci == NULL)
		r = NVML_ERROR_INVALID_ARGUMENT;
	if (r == NVML_SUCCESS)
		pci_of_card(&c->info, pci);
	return r;
}

int nvmlDeviceGetPciInfo(struct nvml_device *device, struct nvml_pci_info *pci)
{
	return pci_info(__func__, device, pci);
}

int nvmlDeviceGetPciInfo_v2(struct nvml_device *device, struct nvml_pci_info *pci)
{
	return pci_info(__func__, device, pci);
}

int nvmlDeviceGetPciInfo_v3(struct nvml_device *device, struct nvml_pci_info *pci)
{
	return pci_info(__func__, device, pci);
}
