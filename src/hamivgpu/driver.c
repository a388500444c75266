#include "hamivgpu/view.h"

#include "base/array.h"
#include "core/fmt.h"

static int add_card(struct view *v, struct gpu_driver *driver, const struct card *from, struct hm_err *e)
{
	struct hamivgpu_card card = {
		.index = (int)from->index,
		.minor = (int)from->minor,
		.numa_node = from->numa_node,
		.mig_enabled = from->mig_enabled,
		.memory_total = from->memory_bytes,
		.memory_used = HAMIVGPU_UNKNOWN,
		.reserved = from->reserved_bytes,
		.busy_percent = -1,
	};
	uint64_t total, used;
	unsigned busy, memory;

	hm_fmt(card.uuid, sizeof card.uuid, "%s", from->uuid);
	hm_fmt(card.model, sizeof card.model, "%s", from->model);
	hm_fmt(card.pci_bus_id, sizeof card.pci_bus_id, "%s", from->pci_bus_id);
	/* A card that does not say is shown without; that is no news for the user. */
	if (gpu_memory(driver, from->uuid, &total, &used, NULL) == 0)
		card.memory_used = used;
	if (gpu_utilization(driver, from->uuid, &busy, &memory, NULL) == 0)
		card.busy_percent = (int)HM_MIN(busy, 100u);
	if (!HM_PUSH(v->cards, v->card_count, v->card_cap, card))
		return hm_err_set(e, HM_ENOMEM, "cards");
	return 0;
}

static int add_cards(struct view *v, struct gpu_driver *driver, const struct inventory *inv, struct hm_err *e)
{
	hm_fmt(v->node.driver_version, sizeof v->node.driver_version, "%s", inv->driver_version);
	v->node.cuda_version = inv->cuda_version;
	for (size_t i = 0; i < inv->count; i++) {
		int r = add_card(v, driver, &inv->cards[i], e);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < inv->skipped_count; i++) {
		int r = view_add_problem(v, inv->skipped[i], e);

		if (r < 0)
			return r;
	}
	return 0;
}

int view_read_driver(struct view *v, struct gpu_driver **driver, const char *library, struct hm_err *e)
{
	hm_auto(inventory) *inv = NULL;
	struct hm_err why;
	int r = *driver == NULL ? gpu_driver_open(library, driver, &why) : 0;

	if (r == 0)
		r = gpu_scan(*driver, &inv, &why);
	if (r == 0)
		return add_cards(v, *driver, inv, e);
	gpu_driver_close(HM_STEAL(*driver));
	if (r == -HM_ENOMEM)
		return hm_err_set(e, HM_ENOMEM, "%s", why.msg);
	view_error(&v->driver, &why);
	return 0;
}
