#include "model/slots.h"

#include <string.h>

#include "core/cursor.h"
#include "core/fmt.h"
#include "core/num.h"
#include "model/slots_internal.h"

enum { MIB_SHIFT = 20 };

static int check_config(const struct slots_config *config, struct hm_err *e)
{
	if (config->cores_per_device < 1 || config->cores_per_device > HM_MAX_SLOTS_PER_CARD)
		return hm_err_set(e, HM_EINVAL, "%llu slots per card are not between 1 and %d",
				  (unsigned long long)config->cores_per_device, (int)HM_MAX_SLOTS_PER_CARD);
	return 0;
}

/* What programs can have of a card. */
static uint64_t usable_bytes(const struct card *card)
{
	return card->memory_bytes - HM_MIN(card->reserved_bytes, card->memory_bytes);
}

/* MiB of one slot. */
static int slot_mib(const struct card *card, const struct slots_config *config, uint64_t *out, struct hm_err *e)
{
	uint64_t have = card->memory_bytes >> MIB_SHIFT;
	uint64_t most = config->oversubscribe ? have * SLOTS_MAX_SCALE : have;
	uint64_t slots = config->cores_per_device, mib = config->memory_mb_per_core, need;

	if (mib == 0)
		mib = (usable_bytes(card) >> MIB_SHIFT) / slots;
	if (mib == 0)
		return hm_err_set(e, HM_EINVAL,
				  "GPU %u (%s, %s): %llu slots of its %llu MiB leave less than 1 MiB each; fewer slots "
				  "per card are needed",
				  card->index, card->model, card->uuid, (unsigned long long)slots,
				  (unsigned long long)have);
	if (!num_mul(slots, mib, &need) || need > most)
		return hm_err_set(e, HM_EINVAL,
				  "GPU %u (%s, %s): %llu slots of %llu MiB do not fit its %llu MiB (at most %llu MiB "
				  "each, or %llu slots)",
				  card->index, card->model, card->uuid, (unsigned long long)slots,
				  (unsigned long long)mib, (unsigned long long)have, (unsigned long long)(most / slots),
				  (unsigned long long)(most / mib));
	*out = mib;
	return 0;
}

static int cut_card(const struct card *card, const struct slots_config *config, struct slot_card *out, struct hm_err *e)
{
	unsigned slots = (unsigned)config->cores_per_device;
	uint64_t mib = 0, usable = usable_bytes(card), promised;
	int r = slot_mib(card, config, &mib, e);

	if (r < 0)
		return r;
	*out = (struct slot_card) {
		.card = card,
		.slots = slots,
		.slot_memory_bytes = mib << MIB_SHIFT,
		.slot_cores = slots > 100 ? 1 : 100 / slots,
	};
	promised = slots * out->slot_memory_bytes;
	out->unused_memory_bytes = card->memory_bytes - HM_MIN(promised, card->memory_bytes);
	out->unbacked_memory_bytes = promised > usable ? promised - usable : 0;
	out->unused_cores = slots > 100 ? 0 : 100 - slots * out->slot_cores;
	return 0;
}

int slots_new(const struct inventory *inv, const struct slots_config *config, struct slots **out, struct hm_err *e)
{
	hm_auto(slots) *s = NULL;
	int r = check_config(config, e);

	if (r < 0)
		return r;
	if (inv->count > HM_MAX_CARDS)
		return hm_err_set(e, HM_ELIMIT, "%zu cards are more than the %d that one node may have", inv->count,
				  (int)HM_MAX_CARDS);
	s = calloc(1, sizeof *s);
	if (s == NULL)
		return hm_err_set(e, HM_ENOMEM, "slots");
	s->inv = inv;
	s->slicing = config->slicing;
	for (size_t i = 0; i < inv->count; i++) {
		if (inv->cards[i].mig_enabled || inv->cards[i].memory_bytes == 0)
			continue;
		r = cut_card(&inv->cards[i], config, &s->cards[s->count], e);
		if (r < 0)
			return r;
		s->uuid_n[s->count] = strlen(inv->cards[i].uuid);
		s->at[s->count++] = i;
	}
	*out = HM_STEAL(s);
	return 0;
}

void slots_free(struct slots *s)
{
	free(s);
}

size_t slots_card_count(const struct slots *s)
{
	return s->count;
}

const struct slot_card *slots_card(const struct slots *s, size_t card)
{
	return card < s->count ? &s->cards[card] : NULL;
}

size_t slots_total(const struct slots *s)
{
	size_t total = 0;

	for (size_t i = 0; i < s->count; i++)
		total += s->cards[i].slots;
	return total;
}

bool slots_has(const struct slots *s, struct slot_ref r)
{
	return r.card < s->count && r.number < s->cards[r.card].slots;
}

void slot_id_format(const struct slots *s, struct slot_ref r, char out[HM_DEVICE_ID_BYTES])
{
	const char *uuid = r.card < s->count ? s->cards[r.card].card->uuid : "?";

	hm_fmt(out, HM_DEVICE_ID_BYTES, "%s" HM_DEVICE_ID_SEPARATOR "%u", uuid, r.number);
}

static const char *find_separator(const char *id, size_t n)
{
	return memmem(id, n, HM_DEVICE_ID_SEPARATOR, sizeof HM_DEVICE_ID_SEPARATOR - 1);
}

int slot_id_parse(const struct slots *s, const char *id, struct slot_ref *out, struct hm_err *e)
{
	size_t n = strnlen(id, HM_DEVICE_ID_BYTES);
	const char *at = find_separator(id, n);
	struct piece uuid = { id, at == NULL ? 0 : (size_t)(at - id) };
	struct piece digits = { at == NULL ? id : at + 2, at == NULL ? 0 : n - uuid.n - 2 };
	uint64_t number = 0;

	/* One text for one slot: "07" would be a second name of 7. */
	if (n == HM_DEVICE_ID_BYTES || uuid.n == 0 || !piece_u64(digits, UINT32_MAX, &number) ||
	    (digits.n > 1 && digits.p[0] == '0'))
		return hm_err_set(e, HM_EPROTO, "device id \"%.*s\" is not <GPU-UUID>" HM_DEVICE_ID_SEPARATOR "<slot>",
				  (int)n, id);
	for (size_t i = 0; i < s->count; i++) {
		if (uuid.n != s->uuid_n[i] || memcmp(uuid.p, s->cards[i].card->uuid, uuid.n) != 0)
			continue;
		if (number >= s->cards[i].slots)
			return hm_err_set(e, HM_ENOTFOUND, "device id \"%s\": its card has %u slots", id,
					  s->cards[i].slots);
		*out = (struct slot_ref) { (unsigned)i, (unsigned)number };
		return 0;
	}
	return hm_err_set(e, HM_ENOTFOUND, "device id \"%s\": no such card here", id);
}

/* What a grant gathers on one card. */
struct tally {
	unsigned count, first, last;
	uint64_t seen[(HM_MAX_SLOTS_PER_CARD + 63) / 64];
};

static int tally_slot(const struct slots *s, struct slot_ref r, struct tally *tallies, struct hm_err *e)
{
	struct tally *t;
	uint64_t bit = 1ull << (r.number % 64);

	if (!slots_has(s, r))
		return hm_err_set(e, HM_ENOTFOUND, "slot %u of card %u does not exist here", r.number, r.card);
	t = &tallies[r.card];
	if ((t->seen[r.number / 64] & bit) != 0)
		return hm_err_set(e, HM_EINVAL, "slot %u of GPU %s is asked for twice", r.number,
				  s->cards[r.card].card->uuid);
	t->seen[r.number / 64] |= bit;
	t->first = t->count == 0 ? r.number : HM_MIN(t->first, r.number);
	t->last = HM_MAX(t->last, r.number);
	t->count++;
	return 0;
}

int slots_grant(const struct slots *s, const struct slot_ref *refs, size_t count, struct grant *out, struct hm_err *e)
{
	struct tally tallies[HM_MAX_CARDS] = { 0 };

	for (size_t i = 0; i < count; i++) {
		int r = tally_slot(s, refs[i], tallies, e);

		if (r < 0)
			return r;
	}
	out->count = 0;
	for (size_t i = 0; i < s->count; i++) {
		const struct tally *t = &tallies[i];
		const struct slot_card *on = &s->cards[i];

		if (t->count == 0)
			continue;
		out->cards[out->count++] = (struct grant_card) {
			.on = on,
			.count = t->count,
			.memory_bytes = t->count * on->slot_memory_bytes,
			.cores = HM_MIN(t->count * on->slot_cores, 100u),
			.first_number = t->first,
			.broken_run = t->last - t->first + 1 != t->count,
		};
	}
	return 0;
}
