/* A pod as the API server may send it, and which of its containers gets what: bounded, nobody's entry twice, no card
 * without memory. */
#include "fuzz/fuzz.h"

#include <string.h>

#include "agent/cluster/entry_map.h"
#include "core/check.h"

static void look_at_cards(const struct pod_devices *devices, size_t entry)
{
	struct claim_card cards[HM_MAX_CARDS];
	struct hm_err e;
	size_t count;

	if (entry_map_cards(devices, entry, cards, &count, &e) < 0)
		return;
	CHECK(count > 0 && count <= HM_MAX_CARDS);
	for (size_t i = 0; i < count; i++)
		CHECK(cards[i].memory_bytes > 0 && cards[i].cores > 0 && cards[i].cores <= 100);
}

static void look_at_entries(const struct pod_view *v)
{
	hm_auto_pod_devices devices = { 0 };
	size_t last = 0, entry = 0;
	bool any = false;
	struct hm_err e;

	if (devices_text_parse(v->annotations[POD_ALLOCATED], &devices, &e) < 0)
		return;
	for (size_t i = 0; i < v->container_count; i++) {
		/* Of a name that stands twice the first is found. */
		if (pod_view_container(v, v->containers[i].name) != &v->containers[i] ||
		    entry_map_find(v, &devices, v->containers[i].name, &entry, &e) < 0)
			continue;
		CHECK(entry < devices.entry_count && (!any || entry > last));
		any = true;
		last = entry;
		look_at_cards(&devices, entry);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(cJSON) *tree = NULL;
	hm_auto(pod_view) *v = NULL;
	struct kube_object o;
	struct hm_err e;

	if (json_parse((const char *)data, n, &tree, &e) < 0 || kube_object_read(tree, &o, &e) < 0 ||
	    pod_view_new(&o, "nvidia.com/gpu", &v, &e) < 0)
		return 0;
	CHECK(v->container_count <= POD_MAX_CONTAINERS && (v->trouble == NULL || v->container_count == 0));
	look_at_entries(v);
	return 0;
}
