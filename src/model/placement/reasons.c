#include "model/placement/reasons.h"

#include <string.h>

#include "core/fmt.h"

const char *card_reason_word(enum card_reason r)
{
	static const char *const words[REASON_COUNT] = {
		[REASON_NOT_HEALTHY] = "CardNotHealth",
		[REASON_CORDONED] = "CardCordoned",
		[REASON_TYPE] = "CardTypeMismatch",
		[REASON_NUMA] = "NumaNotFit",
		[REASON_UUID] = "CardUuidMismatch",
		[REASON_SLOTS] = "CardTimeSlicingExhausted",
		[REASON_EXCLUSIVE] = "ExclusiveDeviceAllocateConflict",
		[REASON_QUOTA] = "ResourceQuotaNotFit",
		[REASON_MEMORY] = "CardInsufficientMemory",
		[REASON_CORES] = "CardInsufficientCore",
		[REASON_CORES_EXHAUSTED] = "CardComputeUnitsExhausted",
		[REASON_MIG_PLACE] = "CardMigTopologyInfeasible",
		[REASON_CARDS_TOO_FEW] = "AllocatedCardsInsufficientRequest",
	};

	return words[r];
}

void refusal_write(const struct refusal *r, struct str *out)
{
	enum { PART_BYTES = 64 };
	char parts[REASON_COUNT][PART_BYTES];
	size_t n = 0;

	if (r->too_few_cards) {
		str_add(out, REASON_TOO_FEW_CARDS);
		return;
	}
	for (int i = 0; i < REASON_COUNT; i++) {
		char part[PART_BYTES];
		size_t at = n;

		if (r->counts[i] == 0)
			continue;
		hm_fmt(part, sizeof part, "%u/%u %s", r->counts[i], r->cards, card_reason_word((enum card_reason)i));
		for (; at > 0 && strcmp(parts[at - 1], part) > 0; at--)
			memcpy(parts[at], parts[at - 1], PART_BYTES);
		memcpy(parts[at], part, PART_BYTES);
		n++;
	}
	for (size_t i = 0; i < n; i++)
		str_addf(out, "%s%s", i > 0 ? ", " : "", parts[i]);
}
