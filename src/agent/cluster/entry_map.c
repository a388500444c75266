#include "agent/cluster/entry_map.h"

#include <stdlib.h>
#include <string.h>

#include "contract/hami.h"
#include "contract/region_layout.h"
#include "core/fmt.h"
#include "hami/entry_order.h"

/* ---- which entry */

static size_t count_filled(const struct pod_devices *d)
{
	size_t count = 0;

	for (size_t i = 0; i < d->entry_count; i++)
		count += entry_is_filled(d, i);
	return count;
}

static size_t count_asking(const struct pod_view *pod)
{
	size_t count = 0;

	for (size_t i = 0; i < pod->container_count; i++)
		count += pod->containers[i].gpus > 0;
	return count;
}

/* All of the pod's containers count: none is taken for one that its scheduler has no entries for. */
static bool is_in_order(const struct pod_view *pod, const struct pod_devices *d, size_t *container_of)
{
	uint32_t cards[POD_MAX_CONTAINERS];

	for (size_t i = 0; i < pod->container_count; i++)
		cards[i] = pod->containers[i].gpus;
	return entry_order(d, cards, pod->container_count, 0, container_of);
}

static int check_count(const struct pod_devices *d, size_t entry, const struct pod_container *c, struct hm_err *e)
{
	if (d->entries[entry].count != c->gpus)
		return hm_err_set(e, HM_EINVAL, "container %s asks for %u devices, its entry (number %zu) has %zu",
				  c->name, c->gpus, entry + 1, d->entries[entry].count);
	return 0;
}

int entry_map_find(const struct pod_view *pod, const struct pod_devices *devices, const char *container, size_t *entry,
		   struct hm_err *e)
{
	const struct pod_container *c = pod_view_container(pod, container);
	hm_auto_heap size_t *container_of = calloc(devices->entry_count + 1, sizeof *container_of);

	if (container_of == NULL)
		return hm_err_set(e, HM_ENOMEM, "%zu entries", devices->entry_count);
	if (c == NULL)
		return hm_err_set(e, HM_ENOTFOUND, "the pod has no container \"%s\"", container);
	if (c->gpus == 0)
		return hm_err_set(e, HM_EINVAL, "container %s asks for no device", container);
	if (!is_in_order(pod, devices, container_of))
		return hm_err_set(
			e, HM_EINVAL,
			"%zu entries with devices (of %zu) fit neither the %zu containers that ask for them nor "
			"the pod's %zu containers by position",
			count_filled(devices), entry_order_written(devices), count_asking(pod), pod->container_count);
	for (*entry = 0; *entry < devices->entry_count; ++*entry)
		if (entry_is_filled(devices, *entry) && container_of[*entry] == (size_t)(c - pod->containers))
			return check_count(devices, *entry, c, e);
	return hm_err_set(e, HM_EINVAL, "the scheduler gave container %s nothing", container);
}

/* ---- what it amounts to */

static int check_share(const struct device_share *s, struct hm_err *e)
{
	if (s->uuid[0] == '\0')
		return hm_err_set(e, HM_EINVAL, "a device without a UUID");
	if (strcmp(s->type, HAMI_DEVICE_TYPE) != 0)
		return hm_err_set(e, HM_EINVAL, "%s is of type \"%s\"; this node has " HAMI_DEVICE_TYPE, s->uuid,
				  s->type);
	if (s->memory_mib <= 0)
		return hm_err_set(e, HM_EINVAL, "%d MiB of %s: a limit begins at 1 MiB", (int)s->memory_mib, s->uuid);
	if (s->cores < 0)
		return hm_err_set(e, HM_EINVAL, "%d percent of %s", (int)s->cores, s->uuid);
	return 0;
}

static struct claim_card *card_of(struct claim_card *cards, size_t *count, const char *uuid)
{
	for (size_t i = 0; i < *count; i++)
		if (strcmp(cards[i].uuid, uuid) == 0)
			return &cards[i];
	if (*count == HM_MAX_CARDS)
		return NULL;
	cards[*count] = (struct claim_card) { 0 };
	hm_fmt(cards[*count].uuid, sizeof cards[*count].uuid, "%s", uuid);
	return &cards[(*count)++];
}

static int add_share(const struct device_share *s, struct claim_card *cards, size_t *count, struct hm_err *e)
{
	struct claim_card *card;

	if (check_share(s, e) < 0)
		return -e->code;
	card = card_of(cards, count, s->uuid);
	if (card == NULL)
		return hm_err_set(e, HM_EINVAL, "more than %d cards", (int)HM_MAX_CARDS);
	card->memory_bytes += (uint64_t)s->memory_mib << 20;
	if (card->memory_bytes > REGION_MAX_BYTES)
		return hm_err_set(e, HM_EINVAL, "%d MiB of %s are more than can be counted", (int)s->memory_mib,
				  s->uuid);
	card->cores += s->cores == 0 ? 100 : (unsigned)s->cores;
	card->cores = HM_MIN(card->cores, 100U);
	return 0;
}

int entry_map_cards(const struct pod_devices *devices, size_t entry, struct claim_card out[HM_MAX_CARDS], size_t *count,
		    struct hm_err *e)
{
	const struct devices_entry *of = &devices->entries[entry];

	*count = 0;
	for (size_t i = 0; i < of->count; i++)
		if (add_share(&devices->shares[of->first + i], out, count, e) < 0)
			return -e->code;
	return 0;
}

int entry_map_claim(const struct pod_view *pod, const char *container, struct claim *out, struct hm_err *e)
{
	hm_auto_pod_devices devices = { 0 };
	size_t entry;

	if (devices_text_parse(pod->annotations[POD_ALLOCATED], &devices, e) < 0 ||
	    entry_map_find(pod, &devices, container, &entry, e) < 0 ||
	    entry_map_cards(&devices, entry, out->cards, &out->card_count, e) < 0)
		return hm_err_wrap(e, HAMI_POD_ALLOCATED);
	out->entry = (unsigned)entry;
	return 0;
}
