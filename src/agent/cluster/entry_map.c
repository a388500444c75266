#include "agent/cluster/entry_map.h"

#include <string.h>

#include "contract/hami.h"
#include "contract/region_layout.h"
#include "core/fmt.h"

/* ---- which entry */

static bool is_filled(const struct pod_devices *d, size_t entry)
{
	const struct devices_entry *e = &d->entries[entry];

	for (size_t i = 0; i < e->count; i++)
		if (d->shares[e->first + i].uuid[0] != '\0')
			return true;
	return false;
}

static size_t count_filled(const struct pod_devices *d)
{
	size_t count = 0;

	for (size_t i = 0; i < d->entry_count; i++)
		count += is_filled(d, i);
	return count;
}

static size_t count_asking(const struct pod_view *pod)
{
	size_t count = 0;

	for (size_t i = 0; i < pod->container_count; i++)
		count += pod->containers[i].gpus > 0;
	return count;
}

/* The k-th filled one, which is there. */
static size_t find_filled(const struct pod_devices *d, size_t k)
{
	size_t i = 0;

	for (;; i++)
		if (is_filled(d, i) && k-- == 0)
			return i;
}

/* The last ";" ends an entry and begins none. */
static size_t count_written(const struct pod_devices *d)
{
	return d->entry_count - (d->entry_count > 0 && d->entries[d->entry_count - 1].count == 0);
}

static bool fits_by_position(const struct pod_view *pod, const struct pod_devices *d)
{
	if (count_written(d) != pod->container_count)
		return false;
	for (size_t i = 0; i < pod->container_count; i++)
		if (is_filled(d, i) && pod->containers[i].gpus == 0)
			return false;
	return true;
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
	size_t filled = count_filled(devices), asking = count_asking(pod), k = 0;

	if (c == NULL)
		return hm_err_set(e, HM_ENOTFOUND, "the pod has no container \"%s\"", container);
	if (c->gpus == 0)
		return hm_err_set(e, HM_EINVAL, "container %s asks for no device", container);
	if (filled == asking) {
		for (const struct pod_container *before = pod->containers; before < c; before++)
			k += before->gpus > 0;
		*entry = find_filled(devices, k);
		return check_count(devices, *entry, c, e);
	}
	*entry = (size_t)(c - pod->containers);
	if (!fits_by_position(pod, devices))
		return hm_err_set(
			e, HM_EINVAL,
			"%zu entries with devices (of %zu) fit neither the %zu containers that ask for them nor "
			"the pod's %zu containers by position",
			filled, count_written(devices), asking, pod->container_count);
	if (!is_filled(devices, *entry))
		return hm_err_set(e, HM_EINVAL, "the scheduler gave container %s nothing", container);
	return check_count(devices, *entry, c, e);
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
