/* PCI addresses and how NVML writes them. */
#ifndef HM_SIM_NVML_PCI_H
#define HM_SIM_NVML_PCI_H

#include "abi/nvml.h"
#include "sim/lib/sim_state.h"

void pci_fill(struct nvml_pci_info *out, unsigned domain, unsigned bus, unsigned device, unsigned device_id,
	      unsigned subsystem_id);
void pci_of_card(const struct sim_card_info *info, struct nvml_pci_info *out);
/* True where text is the card's address: "0000:3b:00.0", "00000000:3B:00.0" or "3b:00.0". */
bool pci_matches(const struct sim_card_info *info, const char *text);

#endif
