/* A device id that is taken names one slot of one card, and that slot's id is the very same text. */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/fmt.h"
#include "model/slots.h"

static struct slots *two_cards(void)
{
	static struct card cards[2];
	static struct inventory inv = { .cards = cards, .count = 2 };
	const struct slots_config config = { 12, 0, SLICING_STATIC };
	struct slots *s = NULL;
	struct hm_err e;

	for (unsigned i = 0; i < 2; i++) {
		hm_fmt(cards[i].uuid, sizeof cards[i].uuid, "GPU-%u", i);
		cards[i].memory_bytes = UINT64_C(1) << 34;
	}
	CHECK(slots_new(&inv, &config, &s, &e) == 0);
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	hm_auto(slots) *s = two_cards();
	hm_auto_heap char *id = malloc(n + 1);
	char back[HM_DEVICE_ID_BYTES];
	struct slot_ref r = { 99, 99 };
	struct hm_err e;

	CHECK(id != NULL);
	memcpy(id, data, n);
	id[n] = '\0';
	if (slot_id_parse(s, id, &r, &e) < 0)
		return 0;
	CHECK(r.card < 2 && r.number < 12);
	slot_id_format(s, r, back);
	CHECK(strcmp(id, back) == 0);
	return 0;
}
